"""Running error of a softmax that is computed online, block of keys by block of keys.

A kernel keeps a running maximum m, the running sum of p = exp(score - m) and (in attention) of p·v; when m grows, both
are multiplied by exp(old m - new m). What it used for m cancels in the quotient, so weights are compared with
exp(score - max) for the true maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

import numpy as np

from specc.bounds.arithmetic import Arithmetic
from specc.bounds.formats import FORMATS, Array, Bools
from specc.bounds.numerics import AnyOrder
from specc.bounds.sums import contraction
from specc.bounds.values import EXACT, Truth, Val, full, place, union


@dataclass(frozen=True)
class Weights:
    """exp(score - max) as a kernel holds it in the end, 0 at keys that are not `seen`; the key is the last axis."""

    held: Val
    seen: Bools


def weights(arithmetic: Arithmetic, score: Val, visible: Truth, key: str, keys: int, block: int) -> Weights:
    """The weights of `score` at the `keys` values of `key`, undivided, computed `block` or more keys at a time."""
    score = arithmetic.to_accumulator(score)
    axes = union(tuple(a for a in (*score.axes, *visible.axes) if a != key), (key,))
    seen = place(visible.value, visible.axes, axes)
    shape = np.broadcast_shapes(place(score.value, score.axes, axes).shape, seen.shape, (keys,))
    score, seen = full(score, axes, shape), np.broadcast_to(seen, shape)
    s, error = np.where(seen, score.value, -np.inf), np.where(seen, score.error, 0.0)
    top = np.max(s, axis=-1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        below = np.where(seen, top - s, np.inf)
    relative = _relative(arithmetic, below, error, s, top, ceil(keys / block) + 1)
    lost = below - error > -log(arithmetic.numerics.format.smallest) + 1
    value = np.where(lost, 0.0, np.exp(-below))
    off = np.where(lost | ~seen, 0.0, value * relative + _floor(arithmetic, value, relative))
    return Weights(Val(axes, value, off if np.any(off) else EXACT), seen)


def _relative(arithmetic: Arithmetic, below: Array, error: Array, s: Array, top: Array, blocks: int) -> Array:
    """Relative error of a weight: its score's error, the subtraction, the exponential, and the rescalings after it.

    The rescaling factors' arguments add up with the weight's own to max - score, so that what grows with the argument
    is counted once; the rest is counted per block, and once more where splits are merged.
    """
    exp, unit = arithmetic.accuracy("exp"), arithmetic.unit_checked
    worst = np.max(error, axis=-1, keepdims=True, initial=0.0)
    reach = np.where(np.isfinite(below), below, 0.0) + error + worst
    with np.errstate(invalid="ignore"):
        later = (np.maximum.accumulate(s, axis=-1) < top) | (worst > 0)
    units = np.where(reach > 0, exp.units + (1 + exp.units_per_argument) * reach, 0.0)
    units = units + np.where(later, blocks * (exp.units + 1), 0.0)
    if arithmetic.numerics.depth.normalise_first:
        units = units + arithmetic.accuracy("div").units
    with np.errstate(over="ignore"):
        relative: Array = np.expm1(error + units * unit / (1 - np.minimum(units * unit, 0.5)))
    return relative


def _floor(arithmetic: Arithmetic, value: Array, relative: Array) -> Array:
    fmt = arithmetic.numerics.format
    near = (value * (1 - np.minimum(relative, 1)) < fmt.tiny) & (value > 0)
    return np.where(near, max(arithmetic.numerics.flush, fmt.smallest), 0.0)


def round_probabilities(held: Val, dtype: str) -> Val:
    """Weights rounded to storage before they meet the values. Their scale at that moment is that of the running
    maximum, or of the sum, so only the relative error is known, and an absolute one below the normal range."""
    fmt = FORMATS[dtype]
    exact = (held.value == 0) | ((held.value == 1) & (held.error == 0))
    scale = np.maximum(1.0, np.sum(held.value, axis=-1, keepdims=True))
    extra = np.where(exact, 0.0, fmt.unit * (held.value + held.error) + scale * fmt.smallest / 2)
    return Val(held.axes, held.value, held.error + extra)


def weighted_sum(arithmetic: Arithmetic, held: Val, found: Weights, value: Val, key: str) -> Val:
    """Σ over `key` of weights times values. A key that a row does not see takes no part in it, whatever its value."""
    order = (arithmetic.numerics.depth.keys,)
    finite = np.isfinite(value.value)
    if np.all(finite):
        return contraction(arithmetic, held, value, key, order)
    cleared = Val(value.axes, np.where(finite, value.value, 0.0), np.where(finite, value.error, 0.0))
    out = contraction(arithmetic, held, cleared, key, order)
    certain = Val(held.axes, np.where(found.seen & (held.value > held.error), 1.0, 0.0))
    doubtful = Val(held.axes, np.where(found.seen & ~(held.value > held.error), 1.0, 0.0))
    high, low = (_met(arithmetic, certain, value, value.value == x, key) for x in (np.inf, -np.inf))
    lost = _met(arithmetic, certain, value, np.isnan(value.value), key) | (high & low)
    lost |= _met(arithmetic, doubtful, value, ~finite, key)
    result = np.where(lost, np.nan, np.where(high, np.inf, np.where(low, -np.inf, out.value)))
    return Val(out.axes, result, np.where(lost | high | low, 0.0, out.error))


def _met(arithmetic: Arithmetic, rows: Val, value: Val, which: Bools, key: str) -> Bools:
    """Whether a row has one of the keys `which`."""
    hits = contraction(arithmetic, rows, Val(value.axes, which.astype(np.float64)), key, (AnyOrder(),))
    return np.asarray(hits.value > 0)


def zero_if_empty(quotient: Val, found: Weights) -> Val:
    """0 where no key is visible."""
    empty = place(~np.any(found.seen, axis=-1), found.held.axes[:-1], quotient.axes)
    if not np.any(empty):
        return quotient
    return Val(quotient.axes, np.where(empty, 0.0, quotient.value), np.where(empty, 0.0, quotient.error))
