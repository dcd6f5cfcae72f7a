"""Running error of elementary functions: that of the argument through the exact function, then the target's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from specc.bounds.arithmetic import Arithmetic, NotSupported
from specc.bounds.formats import EPS64, Array
from specc.bounds.values import EXACT, Held, Val

Carry = Callable[[Array, Array], Array]
"""(x, e) -> largest |f(x + d) - f(x)| over |d| <= e."""


def _exp(x: Array, e: Array) -> Array:
    """The second form is larger, and finite where exp(e) alone is not."""
    return np.where(e < 1, np.exp(x) * np.expm1(np.minimum(e, 1)), np.exp(x + e))


def _log(x: Array, e: Array) -> Array:
    return np.where(e < x, -np.log1p(-np.minimum(e / x, 1 - EPS64)), np.where(e == 0, 0.0, np.inf))


def _log1p(x: Array, e: Array) -> Array:
    return _log(1 + x, e)


def _sqrt(x: Array, e: Array) -> Array:
    root = np.sqrt(x)
    below = e / (root + np.sqrt(np.maximum(x - e, 0)))
    return np.where(e == 0, 0.0, np.maximum(below, np.sqrt(x + e) - root))


def _tanh(x: Array, e: Array) -> Array:
    steepest = np.maximum(np.abs(x) - e, 0)
    return np.minimum(2.0, e / np.square(np.cosh(np.minimum(steepest, 350.0))))


def _sine(x: Array, e: Array) -> Array:
    return np.minimum(2.0, e)


FUNCTIONS: dict[str, tuple[Callable[[Array], Array], Carry]] = {
    "exp": (np.exp, _exp),
    "expm1": (np.expm1, _exp),
    "log": (np.log, _log),
    "log1p": (np.log1p, _log1p),
    "sqrt": (np.sqrt, _sqrt),
    "tanh": (np.tanh, _tanh),
    "sin": (np.sin, _sine),
    "cos": (np.cos, _sine),
}


def call(arithmetic: Arithmetic, fn: str, a: Val) -> Val:
    """`fn` of `a`. Raises NotSupported for a function of several arguments or without a stated accuracy."""
    if fn not in FUNCTIONS:
        raise NotSupported(f"no rule for {fn}")
    if a.held is Held.CONSTANT:
        return _apply(fn, a, 2.0, 0.0, None, arithmetic, Held.CONSTANT)
    if a.held is Held.WIDE and fn in ("sin", "cos"):
        a = _reduced_angle(arithmetic, a)
    accuracy = arithmetic.accuracy(fn)
    a = arithmetic.to_accumulator(a)
    units, slope = accuracy.units, accuracy.units_per_argument
    return _apply(fn, a, units, slope, accuracy.exact_at, arithmetic, Held.ACCUMULATOR)


def _apply(
    fn: str, a: Val, units: float, slope: float, exact_at: float | None, arithmetic: Arithmetic, held: Held
) -> Val:
    exact, carry = FUNCTIONS[fn]
    with np.errstate(all="ignore"):
        r = exact(a.value)
        carried = np.zeros(()) if a.certain else np.where(a.error == 0, 0.0, carry(a.value, a.error))
        size = np.where(np.isfinite(a.value), np.abs(a.value) + a.error, 0.0)
        own = arithmetic.unit if held is Held.ACCUMULATOR else EPS64
        lost = ((units + slope * size) * own + EPS64) * (np.abs(r) + carried)
        lost = np.where(np.isinf(a.value) & (a.error == 0), 0.0, lost)
    if exact_at is not None:
        lost = np.where((a.value == exact_at) & (a.error == 0), 0.0, lost)
    return arithmetic.finish(a.axes, r, carried + lost, held)


def _reduced_angle(arithmetic: Arithmetic, a: Val) -> Val:
    """A float64 angle taken to [-π, π] in float64 and rounded to the accumulator there."""
    turns = np.rint(a.value / (2 * np.pi))
    reduced = a.value - turns * (2 * np.pi)
    error = a.error + EPS64 * (2 * np.abs(a.value) + np.abs(reduced)) + arithmetic.unit * np.abs(reduced)
    error = np.where(a.value == 0, a.error, error)
    return Val(a.axes, reduced, error if np.any(error) else EXACT)
