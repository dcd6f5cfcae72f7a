"""A model held against an implementation: how far apart the two are, part by part.

Every figure is max|Δ| / max|the implementation's value|. Each layer is judged alone, on the implementation's own input
of that layer, so that one wrong layer does not hide behind another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from specc.ir import Model, NodeVariant, Phase
from specc.oracle.arrays import Array
from specc.verify.implementation import Implementation, Trace
from specc.verify.locate import Departure, apart, locate_layer, locate_outside, pairs
from specc.verify.whole import Cache, Step, Whole


@dataclass(frozen=True)
class Limits:
    """How far apart two right models may be: a layer, one with a recurrence, whose parallel form in published code
    cancels, and a node inside a layer, where the error of all nodes before it has grown or cancelled."""

    layer: float = 1e-14
    recurrent: float = 2e-14
    node: float = 1e-13


NUDGE = 1e-7
"""A change of a stream, small enough to grow in proportion and large enough to stand above rounding."""


@dataclass(frozen=True)
class Text:
    """One text under one draw of weights; its tokens from `start` on are also given one at a time."""

    draw: int
    tokens: Array
    start: int


@dataclass(frozen=True)
class Figure:
    """A part of the model: `embed`, `node`, `layer`, `head` alone, and for all of them together `stack`, `logits`,
    `chunks` (a prefill in parts), `decode`."""

    part: str
    kind: str
    layer: int | None
    draw: int
    length: int
    value: float
    limit: float

    @property
    def ok(self) -> bool:
        return self.value <= self.limit


def layer_kind(model: Model, layer: int) -> str:
    """The layer classes that tell it from others; `layer` where all are alike."""
    classes = dict.fromkeys(n.layer_class for n in model.in_layer(layer) if n.layer_class != "all")
    return "_".join(str(c) for c in classes) or "layer"


def layer_limit(model: Model, layer: int, limits: Limits) -> float:
    return limits.recurrent if any(_recurrent(n) for n in model.in_layer(layer)) else limits.layer


def _recurrent(node: NodeVariant) -> bool:
    return any(bound.formula.recs for _, bounds in node.bound for bound in bounds)


def judge(
    whole: Whole, other: Implementation, text: Text, limits: Limits = Limits()
) -> tuple[list[Figure], list[Departure]]:
    """All figures of one text, and where the two part for the parts that differ."""
    trace = other.prefill(text.tokens)
    decoded = other.decode(text.tokens, text.start)
    figures, departures = compare_parts(whole, trace, text, limits)
    figures += _together(whole, trace, decoded, text, together_limits(whole, text.tokens, limits))
    return figures, departures


def together_limits(whole: Whole, tokens: Array, limits: Limits = Limits()) -> list[float]:
    """How far the stream after each layer, and last the logits, may be apart where every part keeps its limit: the
    limit of each part times what the parts after it make of a small change."""
    model, generator = whole.model, np.random.default_rng(0)
    streams = _rest(whole, whole.before(tokens), 0)
    allowed = [0.0] * model.layer_count + [limits.layer]
    for i in range(model.layer_count + 1):
        own = limits.layer if i == 0 else layer_limit(model, i - 1, limits)
        size = NUDGE * np.abs(streams[i]).max(initial=0.0)
        moved = _rest(whole, streams[i] + size * generator.choice([-1.0, 1.0], streams[i].shape), i)
        for k, (new, old) in enumerate(zip(moved[1:], streams[i + 1 :], strict=True), start=i):
            allowed[k] += own * max(1.0, apart(new, old) / NUDGE)
        if i:
            allowed[i - 1] += own
    return allowed


def _rest(whole: Whole, h: Array, start: int) -> list[Array]:
    """A stream before layer `start`, those after each layer from there on, and the logits."""
    found = [h]
    for i in range(start, whole.model.layer_count):
        found.append(whole.layer(i, found[-1], Cache()))
    return [*found, whole.after(found[-1])]


def compare_parts(
    whole: Whole,
    trace: Trace,
    text: Text,
    limits: Limits = Limits(),
    layers: Iterable[int] | None = None,
    locate: bool = True,
) -> tuple[list[Figure], list[Departure]]:
    """The parts alone: what stands before the layers, each of `layers` (all), what stands after them. Without `locate`
    no departure is looked for."""
    if trace.hidden is None:
        return [], []
    model, hidden = whole.model, trace.hidden
    figures = [_figure("embed", "", None, text, whole.before(text.tokens), hidden[0], limits.layer)]
    for i in range(model.layer_count) if layers is None else layers:
        steps: list[Step] = []
        found = whole.layer(i, hidden[i], Cache(), steps=steps)
        kind, limit = layer_kind(model, i), layer_limit(model, i, limits)
        figures += _nodes(model, steps, i, trace, text, limits.node)
        figures.append(_figure("layer", kind, i, text, found, hidden[i + 1], limit))
    figures.append(_figure("head", "", None, text, whole.after(hidden[-1], steps := []), trace.logits, limits.layer))
    figures += _nodes(model, steps, None, trace, text, limits.node)
    return figures, [_locate(whole, trace, text, f, limits.node) for f in figures if locate and not f.ok]


def _nodes(
    model: Model, steps: Sequence[Step], layer: int | None, trace: Trace, text: Text, limit: float
) -> list[Figure]:
    """The worst of the nodes that taps show: finer than a layer, whose later nodes may cancel what one does."""
    kind = "" if layer is None else layer_kind(model, layer)
    known = [pair for step in steps for pair in pairs(model, step, layer, trace)]
    found = [_figure("node", kind, layer, text, pair.ours, pair.theirs, limit) for pair in known]
    return [worst(found)] if found else []


def _locate(whole: Whole, trace: Trace, text: Text, figure: Figure, limit: float) -> Departure:
    if figure.layer is not None:
        return locate_layer(whole, trace, figure.layer, limit)
    return locate_outside(whole, trace, text.tokens, figure.part, limit)


def _together(whole: Whole, trace: Trace, decoded: Array | None, text: Text, allowed: Sequence[float]) -> list[Figure]:
    """The model as a whole: the stream layer after layer; logits, also of prefill in chunks and of cached decode."""
    h, figures, cache, limit = whole.before(text.tokens), [], Cache(), allowed[-1]
    for i in range(whole.model.layer_count):
        h = whole.layer(i, h, cache)
        if trace.hidden is not None:
            figures.append(_figure("stack", layer_kind(whole.model, i), i, text, h, trace.hidden[i + 1], allowed[i]))
    figures.append(_figure("logits", "", None, text, whole.after(h), trace.logits, limit))
    figures.append(_figure("chunks", "", None, text, in_chunks(whole, text.tokens, Cache()), trace.logits, limit))
    if decoded is not None:
        figures.append(_figure("decode", "", None, text, decode(whole, text.tokens, text.start), decoded, limit))
    return figures


def in_chunks(whole: Whole, tokens: Array, cache: Cache) -> Array:
    """The logits of a prefill in chunks of 1, 2, 4, … tokens, each of which continues those before."""
    cuts = [2**k - 1 for k in range(1, len(tokens).bit_length())]
    return np.concatenate([whole.run(part, cache) for part in np.split(tokens, cuts) if len(part)])


def decode(whole: Whole, tokens: Array, start: int) -> Array:
    """The logits of the tokens from `start` on, one at a time after those before."""
    cache = Cache()
    if start:
        whole.run(tokens[:start], cache)
    return np.concatenate([whole.run(tokens[t : t + 1], cache, Phase.DECODE) for t in range(start, len(tokens))])


def _figure(part: str, kind: str, layer: int | None, text: Text, ours: Array, theirs: Array, limit: float) -> Figure:
    return Figure(part, kind, layer, text.draw, len(text.tokens), apart(ours, theirs), limit)


def worst(figures: Sequence[Figure]) -> Figure:
    """The one with the largest share of its limit; a NaN is worse than any number."""
    return max(figures, key=lambda f: (np.isnan(f.value), f.value / f.limit))
