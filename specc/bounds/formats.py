"""Floating-point formats, round-to-nearest-even into them, and the interval test for a rounded store."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
EPS64 = 2.0**-53
"""Unit roundoff of float64, in which bounds are computed."""


@dataclass(frozen=True)
class Format:
    """A binary format: `precision` significant bits (the hidden one included), normal exponents `emin` to `emax`."""

    name: str
    precision: int
    emin: int
    emax: int

    @property
    def unit(self) -> float:
        """Unit roundoff: the relative error of rounding to nearest is at most this."""
        return 2.0**-self.precision

    @property
    def tiny(self) -> float:
        """Smallest normal number."""
        return 2.0**self.emin

    @property
    def smallest(self) -> float:
        """Smallest subnormal number."""
        return 2.0 ** (self.emin - self.precision + 1)

    @property
    def largest(self) -> float:
        return (2.0 - 2.0 ** (1 - self.precision)) * 2.0**self.emax


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("float64", 53, -1022, 1023),
        Format("float32", 24, -126, 127),
        Format("bfloat16", 8, -126, 127),
        Format("float16", 11, -14, 15),
    )
}
"""IEEE 754 binary64, binary32 and binary16, and bfloat16 (binary32 cut to 8 significant bits)."""


def round_to(x: Array, dtype: str) -> Array:
    """`x` rounded to nearest, ties to even, in format `dtype`: subnormals kept, overflow to infinity, NaN kept.

    Raises KeyError for a format that `FORMATS` does not have.
    """
    fmt = FORMATS[dtype]
    x = np.asarray(x, np.float64)
    if fmt.name == "float64":
        return x
    if fmt.name == "float32":
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return x.astype(np.float32).astype(np.float64)
    return _round_bits(x, fmt)


def _round_bits(x: Array, fmt: Format) -> Array:
    drop = np.uint64(53 - fmt.precision)
    bits = np.ascontiguousarray(x).view(np.uint64).reshape(x.shape)
    odd = (bits >> drop) & np.uint64(1)
    half = np.uint64(1) << (drop - np.uint64(1))
    kept = ((bits + (half - np.uint64(1) + odd)) >> drop) << drop
    normal = kept.view(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        out = np.where(np.abs(x) < fmt.tiny, np.rint(x / fmt.smallest) * fmt.smallest, normal)
        out = np.where(np.abs(out) > fmt.largest, np.copysign(np.inf, x), out)
    return np.where(np.isfinite(x), out, x)


def store_interval(value: Array, error: Array, dtype: str) -> tuple[Array, Array]:
    """What a store of anything within `error` of `value` may leave in memory: (RN(v - e), RN(v + e)), elementwise."""
    value, error = np.asarray(value, np.float64), np.asarray(error, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        low, high = value - error, value + error
        outward = error > 0
        low = np.where(outward, np.nextafter(low, -np.inf), low)
        high = np.where(outward, np.nextafter(high, np.inf), high)
        unbounded = np.isposinf(error)
        low, high = np.where(unbounded, -np.inf, low), np.where(unbounded, np.inf, high)
    return round_to(low, dtype), round_to(high, dtype)


def accepts(y: Array, value: Array, error: Array, dtype: str) -> Bools:
    """Whether each stored `y` lies in its store interval. A NaN bound accepts nothing; a NaN `y` is accepted only
    where `value` itself is NaN."""
    low, high = store_interval(value, error, dtype)
    y = np.asarray(y, np.float64)
    return np.asarray(((low <= y) & (y <= high)) | (np.isnan(y) & np.isnan(value)))


def store_error(value: Array, error: Array, dtype: str) -> Array:
    """Largest distance of an accepted store from `value`: the bound after the store."""
    low, high = store_interval(value, error, dtype)
    with np.errstate(invalid="ignore"):
        within = np.where(low == high, np.abs(low - value), np.maximum(high - value, value - low))
    return np.where(np.isposinf(error), np.inf, within)


def rms(x: Array) -> float:
    """Root mean square; 0 for no elements."""
    x = np.asarray(x, np.float64)
    scale = float(np.max(np.abs(x), initial=0.0))
    if scale == 0 or not np.isfinite(scale):
        return scale
    return scale * float(np.sqrt(np.mean(np.square(x / scale))))


def vacuity(error: Array, oracle: Array) -> float:
    """rms(error) / rms(oracle), with `error` as `store_error` gives it. Above 0.05 a check says little."""
    bottom, top = rms(oracle), rms(error)
    if top == 0:
        return 0.0
    return top / bottom if bottom > 0 and np.isfinite(top) else np.inf


def usage(y: Array, value: Array, error: Array, dtype: str) -> float:
    """Largest |y - value| over the bound after the store: 1 is a kernel at its limit. 0 where both are 0."""
    allowed = store_error(value, error, dtype)
    with np.errstate(invalid="ignore", divide="ignore"):
        seen = np.where(y == value, 0.0, np.abs(np.asarray(y, np.float64) - value))
        ratio = np.where(seen == 0, 0.0, seen / allowed)
    return float(np.max(ratio, initial=0.0))
