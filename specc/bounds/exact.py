"""When a sum is exact: all terms are multiples of one power of two, and no partial sum outgrows the significand."""

from __future__ import annotations

import numpy as np

from specc.bounds.formats import Array, Bools

_FRACTION = np.uint64((1 << 52) - 1)
_NONE = 4096
"""Exponent of the granularity of zeros: a multiple of anything."""


def significant_bits(x: Array) -> int:
    """Bits that hold the significand of every element (1 if all are powers of two or 0)."""
    fraction = _joint_fraction(x, None)
    return 1 if fraction == 0 else 53 - _trailing_zeros(int(fraction))


def granularity(x: Array, axis: int) -> Array:
    """Exponents g such that every element along `axis` is a multiple of 2^g; `axis` is kept with length 1.

    Not always the greatest such g. Large where all elements are 0; the smallest where one is not finite.
    """
    fraction = _joint_fraction(x, axis)
    bits = np.zeros(fraction.shape, np.float64)
    some = fraction != 0
    lowest = fraction & (~fraction + np.uint64(1))
    bits[some] = 52 - np.log2(lowest[some].astype(np.float64))
    _, exponent = np.frexp(x)
    least = np.min(np.where(x == 0, _NONE, exponent - 1), axis=axis, keepdims=True)
    finite = np.all(np.isfinite(x), axis=axis, keepdims=True)
    return np.where(finite, least - bits, -float(_NONE))


def sum_is_exact(magnitude: Array, exponent: Array, precision: int) -> Bools:
    """Whether any sum, in any order, of multiples of 2^exponent with Σ|terms| = `magnitude` is exact."""
    with np.errstate(over="ignore"):
        return np.asarray(magnitude <= np.exp2(np.minimum(exponent + precision, 1023.0)))


def _joint_fraction(x: Array, axis: int | None) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    bits = np.ascontiguousarray(x).view(np.uint64).reshape(x.shape)
    if axis is None:
        return np.asarray(np.bitwise_or.reduce(bits, axis=None), np.uint64) & _FRACTION
    return np.asarray(np.bitwise_or.reduce(bits, axis=axis, keepdims=True), np.uint64) & _FRACTION


def _trailing_zeros(n: int) -> int:
    return (n & -n).bit_length() - 1
