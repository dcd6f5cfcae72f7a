"""Double precision together with a bound on its own rounding error, operation by operation.

The bounds are those of the standard model of floating point (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd ed., chapters 2 to 4): u = 2⁻⁵³ per operation, γₙ for sums of n terms in any order. Elementary
functions are taken to be within 4 ulps, the accuracy NumPy states for its vectorised ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

import numpy as np

from specc.oracle.arithmetic import Float64
from specc.oracle.arrays import Array, Values, align

U = 2.0**-53
TINY = 5e-324
"""Half of it is the largest error of an operation that underflows."""
LARGEST = 1.7976931348623157e308
ULPS = 4
"""Error of an elementary function in units of its last place; one such unit is at most 2u of the value."""


def _error(v: Values) -> Array | float:
    return 0.0 if v.error is None else v.error


def _gamma(n: int) -> float:
    return n * U / (1 - n * U)


class Uncertain(Float64):
    """Values carry a bound of their error. A NaN that was read is certain: its error is 0. A NaN or inf that
    arose is not: its error is inf or NaN."""

    def number(self, value: Fraction) -> Values:
        v = super().number(value)
        x = float(v.data)
        error = abs(Fraction(x) - value) if math.isfinite(x) else math.inf
        return v if error == 0 else self._with((), v.data, max(float(error), TINY))

    def pi(self) -> Values:
        return self._with((), np.asarray(math.pi), 1.3e-16)

    def _with(self, axes: tuple[str, ...], data: Array, error: Array | float, *operands: Values) -> Values:
        full = np.broadcast_to(np.asarray(error, np.float64), np.shape(data))
        if operands and np.isnan(full).any():
            certain = reduce(np.logical_or, (np.isnan(v.data) & ~np.isnan(_error(v)) for v in operands))
            full = np.where(certain, 0.0, full)
        return Values(axes, data, full)

    def add(self, a: Values, b: Values) -> Values:
        v = a.data + b.data
        return self._with(a.axes, v, _error(a) + _error(b) + U * np.abs(v), a, b)

    def sub(self, a: Values, b: Values) -> Values:
        v = a.data - b.data
        return self._with(a.axes, v, _error(a) + _error(b) + U * np.abs(v), a, b)

    def mul(self, a: Values, b: Values) -> Values:
        v = a.data * b.data
        error = U * np.abs(v) + TINY
        if a.error is not None:
            error = error + a.error * (np.abs(b.data) + _error(b))
        if b.error is not None:
            error = error + b.error * np.abs(a.data)
        return self._with(a.axes, v, error, a, b)

    def div(self, a: Values, b: Values) -> Values:
        v = a.data / b.data
        room = np.abs(b.data) - _error(b)
        error = (_error(a) + np.abs(v) * _error(b)) / np.maximum(room, 0) + U * np.abs(v) + TINY
        beyond = (np.abs(a.data) + _error(a)) / LARGEST
        return self._with(a.axes, v, np.where(np.isinf(b.data), beyond, error), a, b)

    def power(self, a: Values, b: Values) -> Values:
        v = np.power(a.data, b.data)
        exponent = np.abs(b.data) * _log_error(a) + np.abs(np.log(np.abs(a.data))) * _error(b)
        error = np.abs(v) * (np.expm1(exponent) + 2 * ULPS * U) + TINY
        nothing = (a.data == 0) & (_error(a) == 0) & (b.data > _error(b))
        return self._with(a.axes, v, np.where(nothing, 0.0, error), a, b)

    def call(self, fn: str, *args: Values) -> Values:
        v = super().call(fn, *args)
        match fn:
            case "max" | "min":
                return self._with(v.axes, v.data, np.maximum(_error(args[0]), _error(args[1])), *args)
            case "abs":
                return Values(v.axes, v.data, args[0].error)
        ulps = 1 if fn == "sqrt" else 2 * ULPS
        error = _propagated(fn, args[0], v.data) if args[0].error is not None else 0.0
        return self._with(v.axes, v.data, error + ulps * U * np.abs(v.data) + TINY, *args)

    def compare(self, op: str, a: Values, b: Values) -> Values:
        v = super().compare(op, a, b)
        if a.error is None and b.error is None:
            return v
        room = np.asarray(_error(a) + _error(b))
        doubt = ~(np.abs(a.data - b.data) > room) & (room != 0)
        return Values(v.axes, v.data, np.where(doubt, math.inf, 0.0))

    def where(self, cond: Values, a: Values, b: Values) -> Values:
        v = super().where(cond, a, b)
        if a.error is None and b.error is None:
            return v
        return self._with(v.axes, v.data, np.where(cond.data, _error(a), _error(b)))

    def sum(self, a: Values, axis: str) -> Values:
        k = a.axes.index(axis)
        v = super().sum(a, axis)
        error = _gamma(a.data.shape[k]) * np.abs(a.data).sum(axis=k)
        if a.error is not None:
            error = error + a.error.sum(axis=k)
        return self._settled(v, error, a, k)

    def prod(self, a: Values, axis: str) -> Values:
        k = a.axes.index(axis)
        v = super().prod(a, axis)
        size = np.abs(a.data)
        spread = (size + _error(a)).prod(axis=k)
        error = spread - size.prod(axis=k) + _gamma(2 * a.data.shape[k]) * spread + TINY
        return self._settled(v, error, a, k)

    def max(self, a: Values, axis: str) -> Values:
        v = super().max(a, axis)
        return v if a.error is None else self._with(v.axes, v.data, a.error.max(axis=a.axes.index(axis)))

    def matmul(self, a: Values, b: Values) -> Values:
        v = super().matmul(a, b)
        x, y = np.abs(a.data), np.abs(b.data)
        n = a.data.shape[-1]
        error = _gamma(n) * np.matmul(x, y) + n * TINY
        if a.error is not None:
            error = error + np.matmul(a.error, y + _error(b))
        if b.error is not None:
            error = error + np.matmul(x, b.error)
        if np.isnan(error).any():
            read = [(np.isnan(s.data) & ~np.isnan(_error(s))).astype(float) for s in (a, b)]
            certain = np.matmul(read[0], np.ones_like(y)) + np.matmul(np.ones_like(x), read[1]) > 0
            error = np.where(certain, 0.0, error)
        return self._with(v.axes, v.data, error)

    def both(self, a: Values, b: Values) -> Values:
        v = super().both(a, b)
        if a.error is None and b.error is None:
            return v
        return self._with(v.axes, v.data, np.maximum(_error(a), _error(b)))

    def unsure(self, out: Values, decided: Values | None, axis: str | None = None) -> Values:
        if decided is None or decided.error is None:
            return out
        doubt = Values(decided.axes, decided.error)
        if axis in decided.axes:
            k = decided.axes.index(axis)
            doubt = Values(tuple(x for x in decided.axes if x != axis), decided.error.max(axis=k, initial=0.0))
        axes, (v, d) = align(out, doubt)
        shape = np.broadcast_shapes(v.data.shape, d.data.shape)
        return self._with(axes, np.broadcast_to(v.data, shape), _error(v) + d.data)

    def empty(self, axes: tuple[str, ...], shape: tuple[int, ...]) -> Values:
        return Values(axes, np.full(shape, np.nan), np.full(shape, np.inf))

    def join(self, axes: tuple[str, ...], shape: tuple[int, ...], parts: Sequence[tuple[Array, Values]]) -> Values:
        v = super().join(axes, shape, parts)
        if all(p.error is None for _, p in parts):
            return v
        error = np.zeros(shape)
        for places, part in parts:
            error[places] = _error(part)
        return Values(axes, v.data, error)

    def _settled(self, v: Values, error: Array, a: Values, k: int) -> Values:
        if np.isnan(error).any():
            error = np.where((np.isnan(a.data) & ~np.isnan(_error(a))).any(axis=k), 0.0, error)
        return self._with(v.axes, v.data, error)


def _log_error(a: Values, shift: float = 0.0) -> Array:
    """How far log(a + shift) is off."""
    share = np.asarray(_error(a)) / np.abs(a.data + shift)
    return np.where(share < 1, -np.log1p(-np.minimum(share, 1 - U)), np.where(np.asarray(_error(a)) == 0, 0.0, np.inf))


def _propagated(fn: str, a: Values, v: Array) -> Array:
    """How far `fn` may carry the error of its argument; `v` is its value."""
    x: Array = a.data
    e: Array = np.asarray(_error(a))
    match fn:
        case "exp":
            return np.where(np.isneginf(x), 0.0, v * np.expm1(e))
        case "expm1":
            return (v + 1) * np.expm1(e)
        case "log":
            return _log_error(a)
        case "log1p":
            return _log_error(a, 1.0)
        case "sqrt":
            room = v + np.sqrt(np.maximum(x - e, 0))
            return np.where(room > 0, e / np.where(room > 0, room, 1), np.sqrt(e))
        case "tanh":
            steepest = np.cosh(np.minimum(np.maximum(np.abs(x) - e, 0), 400)) ** -2
            return np.where(np.isnan(v), np.nan, np.minimum(np.where(np.isinf(e), 2, e * steepest), 2))
        case "sin":
            return np.minimum(np.abs(np.cos(x)) * e + e * e / 2, 2)
        case "cos":
            return np.minimum(np.abs(np.sin(x)) * e + e * e / 2, 2)
    raise ValueError(f"no error bound for {fn}")
