"""Arithmetic with many digits, for single elements."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from specc.oracle.arithmetic import Float64
from specc.oracle.arrays import Array, Values

Elementwise = Callable[..., Any]


class Precise(Float64):
    """Floating point with `digits` decimal digits and unbounded exponents; arrays hold mpmath numbers."""

    def __init__(self, digits: int) -> None:
        self.context = mpmath.MPContext()
        self.context.dps = digits
        c = self.context
        self.functions: dict[str, Elementwise] = {
            "exp": c.exp, "expm1": c.expm1, "log": c.log, "log1p": c.log1p, "sqrt": c.sqrt, "tanh": c.tanh,
            "sin": c.sin, "cos": c.cos, "abs": abs, "max": max, "min": min,
        }  # fmt: skip

    def _each(self, f: Elementwise, *arrays: Array) -> Array:
        """`f` elementwise; nan where it leaves the real numbers."""

        def real(*args: Any) -> Any:
            try:
                out = f(*args)
            except (ZeroDivisionError, ValueError):
                return self.context.nan
            return out if isinstance(out, self.context.mpf) else self.context.nan

        return np.asarray(np.frompyfunc(real, len(arrays), 1)(*arrays), dtype=object)

    def number(self, value: Fraction) -> Values:
        quotient = self.context.mpf(value.numerator) / value.denominator
        return Values((), np.asarray(quotient, dtype=object))

    def number_of(self, value: float) -> Values:
        return Values((), np.asarray(self.context.mpf(value), dtype=object))

    def pi(self) -> Values:
        return Values((), np.asarray(+self.context.pi, dtype=object))

    def load(self, data: Array) -> Array:
        return self._each(lambda x: self.context.mpf(float(x)), data)

    def real(self, v: Values) -> Values:
        if v.data.dtype.kind == "O":
            return v
        return Values(v.axes, self._each(lambda n: self.context.mpf(int(n)), v.data))

    def div(self, a: Values, b: Values) -> Values:
        return Values(a.axes, self._each(self._quotient, a.data, b.data))

    def _quotient(self, a: Any, b: Any) -> Any:
        if b == 0 and a != 0 and not self.context.isnan(a):
            return self.context.inf if a > 0 else self.context.ninf
        return a / b

    def power(self, a: Values, b: Values) -> Values:
        return Values(a.axes, self._each(lambda x, y: x**y, a.data, b.data))

    def call(self, fn: str, *args: Values) -> Values:
        return Values(args[0].axes, self._each(self.functions[fn], *(a.data for a in args)))

    def finite(self, a: Values) -> Array:
        return np.asarray(np.frompyfunc(self.context.isfinite, 1, 1)(a.data)).astype(bool)

    def max(self, a: Values, axis: str) -> Values:
        k = a.axes.index(axis)
        top = a.data.max(axis=k, initial=self.context.ninf)
        return Values(tuple(x for x in a.axes if x != axis), np.asarray(top, dtype=object))

    def empty(self, axes: tuple[str, ...], shape: tuple[int, ...]) -> Values:
        return Values(axes, np.full(shape, self.context.nan, dtype=object))
