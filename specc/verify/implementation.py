"""What a model by someone else looks like to the judge.

An implementation is any object with the two methods of `Implementation`. All arrays are NumPy, float64; a text is one
sequence. Everything but the logits is optional: with `hidden` the verdict names a layer, with `taps` and `appended` a
node; with logits alone it says only that the model differs. `judge.judge` takes it as it is:

    class Mine:
        def prefill(self, tokens):
            return Trace(logits=call(tokens))
        def decode(self, tokens, start):
            return None

    figures, departures = judge(Whole(model, tensors), Mine(), Text(0, tokens, start=0))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from specc.oracle.arrays import Array


@dataclass(frozen=True)
class Tap:
    """What a module that holds a weight read and gave, [T, …]: `output` is None where it is not known."""

    input: Array
    output: Array | None


@dataclass(frozen=True)
class Trace:
    """One prefill.

    logits: [T, vocab]
    hidden: the residual stream [T, …] before layer 0 and after each layer
    taps: by module, named as its weight in the checkpoint without the last part (`model.layers.0.self_attn.q_proj`)
    appended: by layer, the states [L, …] that are appended to, in the order of the spec; the last rows will do"""

    logits: Array
    hidden: tuple[Array, ...] | None = None
    taps: Mapping[str, Tap] = field(default_factory=dict)
    appended: Mapping[int, tuple[Array, ...]] = field(default_factory=dict)


class Implementation(Protocol):
    """A model that is already built and has its weights."""

    def prefill(self, tokens: Array) -> Trace:
        """All `tokens` [T] of a new sequence at once."""
        ...

    def decode(self, tokens: Array, start: int) -> Array | None:
        """The logits [T - start, vocab] of the tokens from `start` on, given one at a time to a cache that holds those
        before; None for a model that keeps no cache."""
        ...
