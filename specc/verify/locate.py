"""The first node that departs, in a layer that does.

Modules of the other model that hold a weight are tapped: what one read and gave is compared with the node that has its
weight. Nodes without a tap stand between those that have one; they are named together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from specc.ir import Model, Piece
from specc.oracle.arrays import Array
from specc.verify.implementation import Tap, Trace
from specc.verify.whole import Cache, Step, Whole, piece_name


@dataclass(frozen=True)
class Departure:
    """Where two models part. `suspects`: the nodes that can be wrong, in order of evaluation; one where taps are near
    enough. `place` is what was compared, at `index` the two values are farthest apart."""

    layer: int | None
    suspects: tuple[str, ...]
    place: str
    index: tuple[int, ...]
    ours: float
    theirs: float

    def __str__(self) -> str:
        where = "outside the layers" if self.layer is None else f"in layer {self.layer}"
        nodes = " or ".join(f"`{n}`" for n in self.suspects) or "the inputs"
        at = ", ".join(str(i) for i in self.index)
        return f"{where}: {nodes}: {self.place} at [{at}] is {self.ours:.17g} by the spec, {self.theirs:.17g} there"


class Pair(NamedTuple):
    """Two values that are to be equal, and the wires that ours are; none for a part of what the step gives."""

    place: str
    ours: Array
    theirs: Array
    wires: tuple[str, ...]


def locate_layer(whole: Whole, trace: Trace, layer: int, limit: float) -> Departure:
    """The first departure in a layer that was given the other model's input."""
    assert trace.hidden is not None
    steps: list[Step] = []
    out = whole.layer(layer, trace.hidden[layer], Cache(), steps=steps)
    return _first(whole.model, steps, layer, trace, (out, trace.hidden[layer + 1]), limit)


def locate_outside(whole: Whole, trace: Trace, tokens: Array, part: str, limit: float) -> Departure:
    """The first departure before (`embed`) or after the layers."""
    assert trace.hidden is not None
    if part == "embed":
        names = tuple(n.path for n in whole.model.outside(-1))
        return _departure(None, names, "the stream", whole.before(tokens), trace.hidden[0])
    steps: list[Step] = []
    out = whole.after(trace.hidden[-1], steps)
    return _first(whole.model, steps, None, trace, (out, trace.logits), limit)


def _first(
    model: Model, steps: Sequence[Step], layer: int | None, trace: Trace, result: tuple[Array, Array], limit: float
) -> Departure:
    good: set[str] = set()
    for k, step in enumerate(steps):
        tapped = 0
        for pair in pairs(model, step, layer, trace):
            if not apart(pair.ours, pair.theirs) <= limit:
                nodes = _suspects(steps[: k + 1], pair, good)
                return _departure(layer, nodes, pair.place, pair.ours, pair.theirs)
            good |= set(pair.wires)
            tapped += 0 if pair.wires else pair.ours.shape[-1]
        if tapped and tapped == next(iter(step.results.values())).shape[-1]:
            good |= set(step.wires)
    last = model.stream.next if layer is not None else model.outputs[0]
    return _departure(layer, _cone(steps, (last,), good), "the result", *result)


def pairs(model: Model, step: Step, layer: int | None, trace: Trace) -> Iterator[Pair]:
    """What is known of a step, in the order of computation: operands, states that it appends to, results."""
    taps = list(_taps(step, layer, trace.taps))
    for _, module, _, tap in taps:
        yield from _operand(step, module, tap)
    kept = trace.appended.get(layer, ()) if layer is not None else ()
    grown = [s.name for s in model.states if any(read.state == s.name and read.appends for read in step.use.reads)]
    for name, theirs in zip(grown, kept if len(kept) == len(grown) else (), strict=False):
        wire = next(r.wire for r in step.use.reads if r.state == name)
        ours = next(step.operands[r.operand] for r in step.use.reads if r.state == name)
        yield Pair(f"`{name}`", ours[len(ours) - len(theirs) :], theirs, (wire,))
    for start, module, piece, tap in taps:
        result = next(iter(step.results.values()))
        if tap.output is None or tap.output.shape[-1] != piece.full[0] or step.wires.keys() & set(model.outputs):
            continue
        theirs = _rows(tap.output, piece)
        ours = result[..., start : start + piece.row_count]
        if ours.size == theirs.size:
            yield Pair(f"the result of `{module}`", ours, theirs.reshape(ours.shape), ())


def _taps(step: Step, layer: int | None, taps: Mapping[str, Tap]) -> Iterator[tuple[int, str, Piece, Tap]]:
    """Modules that hold pieces of the step's weights, each with the first row of the result that it gives."""
    used = {name for _, name in step.use.weights}
    for weight in (w for w in step.node.weights if w.name in used):
        start = 0
        for piece in weight.pieces:
            module = piece_name(piece, layer).rpartition(".")[0]
            if module in taps:
                yield start, module, piece, taps[module]
            start += piece.row_count


def _operand(step: Step, module: str, tap: Tap) -> Iterator[Pair]:
    """The first operand that is no index, where it is as large as what the module read."""
    for name, value in step.operands.items():
        if value.dtype.kind == "f":
            if value.size == tap.input.size:
                wire = next(r.wire for r in step.use.reads if r.operand == name)
                yield Pair(f"the input of `{module}`", value, tap.input.reshape(value.shape), (wire,))
            return


def _rows(output: Array, piece: Piece) -> Array:
    """The part of a module's result that a piece's rows give."""
    split = output.reshape(*output.shape[:-1], *(size for _, _, size in piece.view))
    place: tuple[Any, ...] = (..., *(slice(low, high) for low, high, _ in piece.view))
    taken: Array = split[place]
    return taken.reshape(*output.shape[:-1], piece.row_count)


def apart(ours: Array, theirs: Array) -> float:
    """max|Δ| / max|theirs|; inf where the shapes differ, NaN where a value is."""
    if ours.shape != theirs.shape:
        return float("inf")
    difference, size = np.abs(ours - theirs).max(initial=0.0), np.abs(theirs).max(initial=0.0)
    return float(difference / size) if size else float("inf") if difference > 0 else float(difference)


def _suspects(steps: Sequence[Step], pair: Pair, good: set[str]) -> tuple[str, ...]:
    """The nodes that can be wrong where the last step departs. Where its operand is a wire that was right as its node
    gave it, that is how the one cuts it or how the other reads it."""
    step = steps[-1]
    found = _cone(steps, pair.wires or tuple(step.wires), good)
    writers = tuple(s.node.path for s in steps if s.wires.keys() & set(pair.wires))
    return found or tuple(dict.fromkeys((*writers, step.node.path)))


def _cone(steps: Sequence[Step], wires: Iterable[str], good: set[str]) -> tuple[str, ...]:
    """The nodes between `wires` and what is known to be right, in order of evaluation."""
    open_, found = {w for w in wires if w not in good}, []
    for step in reversed(steps):
        if open_ & step.wires.keys():
            found.append(step.node.path)
            open_ |= {r.wire for r in step.use.reads} - good
    return tuple(dict.fromkeys(reversed(found)))


def _departure(layer: int | None, suspects: tuple[str, ...], place: str, ours: Array, theirs: Array) -> Departure:
    if ours.shape != theirs.shape:
        shapes = f"{place} ({list(ours.shape)} by the spec, {list(theirs.shape)} there)"
        return Departure(layer, suspects, shapes, (), float("nan"), float("nan"))
    gap = np.abs(ours - theirs)
    index = np.unravel_index(int(np.argmax(np.where(np.isnan(gap), np.inf, gap))), gap.shape)
    where = tuple(int(i) for i in index)
    return Departure(layer, suspects, place, where, float(ours[where]), float(theirs[where]))
