"""The numbers an evaluation computes with: float64, or what a subclass puts in their place.

Arguments of the methods are aligned: their axes are equal, their shapes broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from specc.oracle.arrays import Array, Values, scalar

COMPARE = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
FUNCTIONS = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "tanh": np.tanh,
    "sin": np.sin, "cos": np.cos, "abs": np.abs, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


class Float64:
    """IEEE double precision."""

    def number(self, value: Fraction) -> Values:
        return scalar(np.float64(_nearest(value)))

    def number_of(self, value: float) -> Values:
        return scalar(np.float64(value))

    def pi(self) -> Values:
        return scalar(np.float64(math.pi))

    def load(self, data: Array) -> Array:
        """Elements of an operand as numbers; every float of at most 64 bits is exact."""
        return data.astype(np.float64)

    def real(self, v: Values) -> Values:
        """An index value as a number."""
        return v if v.data.dtype.kind == "f" else Values(v.axes, v.data.astype(np.float64), v.error)

    def neg(self, a: Values) -> Values:
        return Values(a.axes, -a.data, a.error)

    def add(self, a: Values, b: Values) -> Values:
        return Values(a.axes, a.data + b.data)

    def sub(self, a: Values, b: Values) -> Values:
        return Values(a.axes, a.data - b.data)

    def mul(self, a: Values, b: Values) -> Values:
        return Values(a.axes, a.data * b.data)

    def div(self, a: Values, b: Values) -> Values:
        return Values(a.axes, a.data / b.data)

    def power(self, a: Values, b: Values) -> Values:
        return Values(a.axes, np.power(a.data, b.data))

    def power_int(self, a: Values, n: int) -> Values:
        """aⁿ by products."""
        if n == 0:
            return Values(a.axes, a.data * 0 + 1)
        half = self.power_int(a, n // 2) if n > 1 else a
        square = self.mul(half, half) if n > 1 else a
        return self.mul(square, a) if n > 1 and n % 2 else square

    def call(self, fn: str, *args: Values) -> Values:
        """One of the elementary functions."""
        return Values(args[0].axes, FUNCTIONS[fn](*(a.data for a in args)))

    def compare(self, op: str, a: Values, b: Values) -> Values:
        return Values(a.axes, COMPARE[op](a.data, b.data).astype(bool))

    def where(self, cond: Values, a: Values, b: Values) -> Values:
        return Values(a.axes, np.where(cond.data, a.data, b.data))

    def keep(self, mask: Values, a: Values) -> Values:
        """`a` where the mask holds, 0 elsewhere."""
        return self.where(mask, a, self.number(Fraction(0)).expand(a.axes))

    def sum(self, a: Values, axis: str) -> Values:
        k = a.axes.index(axis)
        return Values(_without(a, axis), a.data.sum(axis=k))

    def prod(self, a: Values, axis: str) -> Values:
        return Values(_without(a, axis), a.data.prod(axis=a.axes.index(axis)))

    def max(self, a: Values, axis: str) -> Values:
        return Values(_without(a, axis), a.data.max(axis=a.axes.index(axis), initial=-math.inf))

    def matmul(self, a: Values, b: Values) -> Values:
        """Batched product of matrices over the last two axes, whose names are (…, m, k) and (…, k, n)."""
        return Values((*a.axes[:-1], b.axes[-1]), np.matmul(a.data, b.data))

    def both(self, a: Values, b: Values) -> Values:
        """Conjunction."""
        return Values(a.axes, a.data & b.data)

    def unsure(self, out: Values, decided: Values | None, axis: str | None = None) -> Values:
        """`out`, which rests on the decision `decided` (along `axis`), with the doubt that is in it."""
        return out

    def empty(self, axes: tuple[str, ...], shape: tuple[int, ...]) -> Values:
        """Room for a result."""
        return Values(axes, np.full(shape, np.nan))

    def join(self, axes: tuple[str, ...], shape: tuple[int, ...], parts: Sequence[tuple[Array, Values]]) -> Values:
        """Values over `shape`, put together from parts at places along the first axis."""
        data = np.zeros(shape, np.result_type(*(v.data.dtype for _, v in parts)) if parts else np.float64)
        for places, part in parts:
            data[places] = part.data
        return Values(axes, data)

    def finite(self, a: Values) -> Array:
        return np.isfinite(a.data)


def _without(a: Values, axis: str) -> tuple[str, ...]:
    return tuple(x for x in a.axes if x != axis)


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)
