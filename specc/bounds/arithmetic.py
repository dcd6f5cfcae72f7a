"""Running error analysis of elementwise operations in the arithmetic of a target.

Every rule is rigorous, not first order only: an error that enters is carried through the exact function, and one
rounding of the result is added unless the operation is exact on the data at hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specc.bounds.formats import EPS64, Array, Bools, round_to
from specc.bounds.numerics import Accuracy, Numerics
from specc.bounds.values import EXACT, Held, Truth, Val, aligned, place, union


class NotSupported(Exception):
    """A formula that no bound is derived for."""


def times(x: Array, y: Array) -> Array:
    """x·y for errors and magnitudes, where 0 times anything is 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        out = x * y
    if np.all(np.isfinite(out)):
        return out
    return np.where((x == 0) | (y == 0), 0.0, out)


@dataclass(frozen=True)
class Arithmetic:
    """The rules for `numerics`."""

    numerics: Numerics

    @property
    def unit(self) -> float:
        return self.numerics.format.unit

    @property
    def unit_checked(self) -> float:
        """Unit roundoff, with room for the float64 arithmetic of the bound itself."""
        return self.unit + EPS64

    def accuracy(self, fn: str) -> Accuracy:
        """Raises NotSupported for a function that the target does not state an accuracy of."""
        try:
            return self.numerics.functions[fn]
        except KeyError:
            raise NotSupported(f"no accuracy is known for {fn}") from None

    def representable(self, x: Array) -> Bools:
        """Whether the accumulator holds `x` exactly. In float64 only what float32 holds counts."""
        return np.asarray(round_to(x, "float32") == x)

    def to_accumulator(self, a: Val) -> Val:
        """`a` converted to the accumulator format."""
        if a.held is Held.ACCUMULATOR:
            return a
        if np.all(self.representable(a.value)) and a.certain:
            return Val(a.axes, a.value, EXACT)
        exact = self.representable(a.value) & (a.error == 0)
        error = np.where(exact, 0.0, a.error + self.unit_checked * (np.abs(a.value) + a.error))
        return self.finish(a.axes, a.value, error)

    def meet(self, *vals: Val) -> tuple[Held, tuple[Val, ...]]:
        """The format in which an operation on `vals` is done, and the operands in it."""
        held = max(v.held for v in vals)
        if held is Held.INTEGER:
            held = Held.ACCUMULATOR
        if held is Held.ACCUMULATOR:
            return held, tuple(self.to_accumulator(v) for v in vals)
        return held, vals

    def rounded(
        self, axes: tuple[str, ...], r: Array, carried: Array, exact: Bools | None, held: Held, units: float = 1.0
    ) -> Val:
        """Result `r` of an operation that is off by `carried` before its own rounding of `units` unit roundoffs."""
        unit = EPS64 * (units + 1) if held is not Held.ACCUMULATOR else units * self.unit + EPS64
        with np.errstate(invalid="ignore", over="ignore"):
            own = unit * (np.abs(r) + carried)
        if exact is not None:
            own = np.where(exact, 0.0, own)
        infinite = np.isinf(r) & np.isfinite(carried)
        return self.finish(axes, r, np.where(infinite, 0.0, carried + own) if np.any(infinite) else carried + own, held)

    def finish(self, axes: tuple[str, ...], r: Array, error: Array, held: Held = Held.ACCUMULATOR) -> Val:
        """Underflow and overflow of the accumulator."""
        if held is not Held.ACCUMULATOR:
            return Val(axes, r, error, held)
        fmt = self.numerics.format
        size = np.abs(r)
        with np.errstate(invalid="ignore"):
            low = size - error < fmt.tiny
            if np.any(low):
                lost = np.where(low & ((r != 0) | (error != 0)), max(self.numerics.flush, fmt.smallest), 0.0)
                error = error + np.where(size + error > 0, lost, 0.0)
            if np.any(size + error > fmt.largest):
                beyond = size - error > fmt.largest
                r = np.where(beyond, np.copysign(np.inf, r), r)
                error = np.where(beyond, 0.0, np.where(size + error > fmt.largest, np.inf, error))
        if not np.any(error):
            error = EXACT
        return Val(axes, r, error, held)

    def neg(self, a: Val) -> Val:
        return Val(a.axes, -a.value, a.error, a.held)

    def abs(self, a: Val) -> Val:
        return Val(a.axes, np.abs(a.value), a.error, a.held)

    def add(self, a: Val, b: Val) -> Val:
        held, (a, b) = self.meet(a, b)
        axes, ((x, ex), (y, ey)) = aligned(a, b)
        with np.errstate(invalid="ignore", over="ignore"):
            r = x + y
            z = r - x
            exact = ((x - (r - z)) + (y - z) == 0) & self.representable(r) & (ex + ey == 0)
        exact |= ((x == 0) & (ex == 0)) | ((y == 0) & (ey == 0))
        return self.rounded(axes, r, ex + ey, exact, held)

    def sub(self, a: Val, b: Val) -> Val:
        return self.add(a, self.neg(b))

    def mul(self, a: Val, b: Val) -> Val:
        held, (a, b) = self.meet(a, b)
        axes, ((x, ex), (y, ey)) = aligned(a, b)
        with np.errstate(invalid="ignore", over="ignore"):
            r = x * y
        carried = times(np.abs(x) + ex, ey) + times(ex, np.abs(y))
        carried = settled(r, carried, x, ex, y, ey)
        exact = self.representable(r) & (ex + ey == 0) & self.representable(x) & self.representable(y)
        exact |= power_of_two(x, ex) | power_of_two(y, ey)
        return self.rounded(axes, r, carried, exact, held)

    def div(self, a: Val, b: Val) -> Val:
        held, (a, b) = self.meet(a, b)
        accuracy = self.accuracy("div")
        axes, ((x, ex), (y, ey)) = aligned(a, b)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            r = x / y
            room = np.abs(y) - ey
            carried = np.where(room > 0, (ex + times(np.abs(r), ey)) / room, np.where(ex + ey == 0, 0.0, np.inf))
        carried = settled(r, carried, x, ex, y, ey)
        exact = (x == 0) & (ex == 0) & (room > 0)
        if accuracy.correct:
            exact |= power_of_two(y, ey) & (ex == 0) & self.representable(r)
        return self.rounded(axes, r, carried, exact, held, accuracy.units)

    def power(self, a: Val, n: int) -> Val:
        """a^n by repeated products, in any order; a negative `n` is one over that."""
        if n == 0:
            return Val((), np.ones(()), EXACT, Held.CONSTANT)
        out = a
        for _ in range(abs(n) - 1):
            out = self.mul(out, a)
        return out if n > 0 else self.div(Val((), np.ones(()), EXACT, Held.CONSTANT), out)

    def constant_power(self, a: Val, b: Val) -> Val:
        """a^b for numbers known before launch, a > 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            r = np.power(a.value, b.value)
            growth = np.abs(b.value) * a.error / np.abs(a.value) + np.abs(np.log(a.value)) * b.error
        return Val((), r, np.abs(r) * (np.expm1(growth) + 4 * EPS64), Held.CONSTANT)

    def extreme(self, a: Val, b: Val, greatest: bool) -> Val:
        """The greater (or smaller) of two."""
        held, (a, b) = self.meet(a, b)
        axes, ((x, ex), (y, ey)) = aligned(a, b)
        pick = np.maximum if greatest else np.minimum
        r = pick(x, y)
        high, low = pick(x + ex, y + ey), pick(x - ex, y - ey)
        with np.errstate(invalid="ignore"):
            error = np.maximum(high - r, r - low)
        return Val(axes, r, np.where(np.isnan(error), np.inf, error), held)

    def select(self, cond: Truth, a: Val, b: Val) -> Val:
        """`a` where `cond` holds, else `b`; where `cond` is not certain, everything between them."""
        held, (a, b) = self.meet(a, b)
        axes = union(cond.axes, a.axes, b.axes)
        chosen = place(cond.value, cond.axes, axes)
        x, ex, y, ey = (place(w, v.axes, axes) for v in (a, b) for w in (v.value, v.error))
        value, error = np.where(chosen, x, y), np.where(chosen, ex, ey)
        if not np.all(cond.certain):
            with np.errstate(invalid="ignore"):
                other = np.abs(x - y) + np.where(chosen, ey, ex)
            error = np.where(place(cond.certain, cond.axes, axes), error, np.maximum(error, other))
        return Val(axes, value, error, held)

    def round_storage(self, a: Val, dtype: str, follow: bool) -> Val:
        """`a` rounded to storage format `dtype`. `follow`: the value becomes the rounded one; else it stays real and
        the rounding is an error."""
        low, high = round_to(a.value - a.error, dtype), round_to(a.value + a.error, dtype)
        value = round_to(a.value, dtype) if follow else a.value
        with np.errstate(invalid="ignore"):
            error = np.where(low == high, np.abs(low - value), np.maximum(high - value, value - low))
        return Val(a.axes, value, error if np.any(error) else EXACT)


def settled(r: Array, carried: Array, x: Array, ex: Array, y: Array, ey: Array) -> Array:
    """`carried`, but 0 where a product or quotient is infinite and the signs that make it so are certain."""
    infinite = np.isinf(r)
    if not np.any(infinite):
        return carried
    return np.where(infinite & (np.abs(x) > ex) & (np.abs(y) > ey), 0.0, carried)


def power_of_two(x: Array, error: Array) -> Bools:
    """Where `x` is exactly 0 or a power of two, so that a product with it does not round."""
    return np.asarray(((x == 0) | (np.abs(np.frexp(x)[0]) == 0.5)) & (error == 0))
