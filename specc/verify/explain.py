"""What an implementation that differs has done instead: the one change of the spec that gives its answers, to rounding.

Models are causal, so the first tokens alone tell most hypotheses from the truth; what remains is run in full.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from specc.api import Spec
from specc.oracle.arrays import Array
from specc.verify.hypotheses import Hypothesis, hypotheses
from specc.verify.implementation import Trace
from specc.verify.judge import Figure, Text
from specc.verify.locate import apart
from specc.verify.whole import Cache, Whole

IMPOSSIBLE = (IndexError, KeyError, MemoryError, RecursionError, ValueError, ZeroDivisionError)
"""What a changed model raises that cannot be computed at all: a RecursionError where a wire depends on itself."""


MANY = 8
"""Tokens before the first that differs, for which one alone is tried first."""


@dataclass(frozen=True)
class Explanation:
    """`whole`: the change gives the logits too; otherwise no more than the part was found to be equal."""

    hypothesis: Hypothesis
    whole: bool
    value: float


@dataclass(frozen=True)
class Search:
    """What was found, of how many tried, and whether all were."""

    found: Explanation | None
    tried: int
    ended: bool


def first_row(ours: Array, theirs: Array, limit: float) -> int | None:
    """The first token at which the two differ; None for those that do not."""
    size = np.abs(theirs).max(initial=0.0)
    gaps = np.abs(ours - theirs).reshape(len(ours), -1).max(axis=1)
    bad = np.flatnonzero(~(gaps <= limit * size))
    return int(bad[0]) if len(bad) else None


class _Part:
    """A part of the model, what the implementation gave for it, and how a changed model computes it."""

    def __init__(self, whole: Whole, trace: Trace, text: Text, figure: Figure) -> None:
        self.whole, self.trace, self.text, self.figure, self.limit = whole, trace, text, figure, figure.limit
        self.streams: dict[tuple[int, int], Array] = {}
        self.theirs = self._theirs()
        with np.errstate(all="ignore"):
            ours = self.compute(whole, len(text.tokens))
        row = first_row(ours, self.theirs, self.limit) if ours.shape == self.theirs.shape else None
        self.first = len(text.tokens) - 1 if row is None else row

    def _theirs(self) -> Array:
        if self.figure.part == "embed":
            assert self.trace.hidden is not None
            return self.trace.hidden[0]
        if self.figure.layer is not None:
            assert self.trace.hidden is not None
            return self.trace.hidden[self.figure.layer + 1]
        return self.trace.logits

    def compute(self, whole: Whole, count: int, start: int = 0) -> Array:
        """The part of the first `count` tokens by `whole`, which is as the spec has it before layer `start`."""
        hidden, figure = self.trace.hidden, self.figure
        if figure.part == "logits":
            h = self._stream(count, start) if start else whole.before(self.text.tokens[:count])
            for layer in range(start, whole.model.layer_count):
                h = whole.layer(layer, h, Cache())
            return whole.after(h)
        if figure.part == "embed":
            return whole.before(self.text.tokens[:count])
        assert hidden is not None
        if figure.layer is None:
            return whole.after(hidden[-1][:count])
        return whole.layer(figure.layer, hidden[figure.layer][:count], Cache())

    def _stream(self, count: int, layer: int) -> Array:
        """What the spec gives `layer` for the first `count` tokens."""
        if (count, layer) not in self.streams:
            before = self.whole.before(self.text.tokens[:count]) if layer == 0 else self._stream(count, layer - 1)
            self.streams[count, layer] = before if layer == 0 else self.whole.layer(layer - 1, before, Cache())
        return self.streams[count, layer]

    def start(self, rows: tuple[int, ...]) -> int:
        """The first layer that a change of `rows` touches; 0 for one that touches the embedding, or more than rows."""
        nodes = [self.whole.model.nodes[k] for k in rows]
        if not nodes or any(n.outside_order < 0 for n in nodes):
            return 0
        return min(n.layers[0] if n.layers else self.whole.model.layer_count for n in nodes)

    def standing(self, k: int) -> bool:
        """Whether row `k` has a say in the part."""
        node = self.whole.model.nodes[k]
        if self.figure.part == "logits":
            return True
        if self.figure.layer is not None:
            return node.layers is not None and self.figure.layer in node.layers
        return node.layers is None and node.outside_order == (-1 if self.figure.part == "embed" else 1)

    def equals(self, whole: Whole, start: int) -> bool:
        """Whether `whole` gives what the implementation gave: at the first tokens, up to one that differs, then all."""
        few = (1,) if self.first >= MANY else ()
        for count in dict.fromkeys((*few, self.first + 1, len(self.text.tokens))):
            found = self.compute(whole, count, start)
            if not apart(found, self.theirs[:count]) <= self.limit:
                return False
        return True


def explain(spec: Spec, whole: Whole, trace: Trace, text: Text, figure: Figure, total: float, seconds: float) -> Search:
    """Tries hypotheses on the part of `figure`, which differs, for at most `seconds`. `total`: the limit of logits."""
    part = _Part(whole, trace, text, figure)
    end, tried, local = time.monotonic() + seconds, 0, None
    for guess in hypotheses(spec, part.standing):
        if time.monotonic() > end:
            return Search(local, tried, False)
        tried += 1
        other = Whole(guess.mutant.model, whole.tensors)
        try:
            with np.errstate(all="ignore"):
                if not part.equals(other, part.start(guess.rows)):
                    continue
                value = apart(other.run(text.tokens, Cache()), trace.logits)
        except IMPOSSIBLE:
            continue
        if value <= total:
            return Search(Explanation(guess, True, value), tried, True)
        local = local or Explanation(guess, False, value)
    return Search(local, tried, True)
