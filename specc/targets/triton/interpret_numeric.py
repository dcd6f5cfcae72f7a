"""Number formats and functions of the GPU, in NumPy.

bfloat16 values are held as their 16 bits (uint16), as Triton's interpreter does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[Any]

BFLOAT16_NAN = 0x7FC0

_NUMPY_TYPES: Mapping[str, np.dtype[Any]] = MappingProxyType(
    {
        "int1": np.dtype(np.bool_),
        "int8": np.dtype(np.int8),
        "int16": np.dtype(np.int16),
        "int32": np.dtype(np.int32),
        "int64": np.dtype(np.int64),
        "uint8": np.dtype(np.uint8),
        "uint16": np.dtype(np.uint16),
        "uint32": np.dtype(np.uint32),
        "uint64": np.dtype(np.uint64),
        "bf16": np.dtype(np.uint16),
        "fp16": np.dtype(np.float16),
        "fp32": np.dtype(np.float32),
        "fp64": np.dtype(np.float64),
    }
)


def numpy_type(scalar: Any) -> np.dtype[Any]:
    """The NumPy type that holds values of a Triton type; pointers are addresses, 8-bit floats are bits."""
    if scalar.is_block():
        scalar = scalar.element_ty
    if scalar.is_ptr():
        return np.dtype(np.uint64)
    return _NUMPY_TYPES.get(scalar.name, np.dtype(np.uint8))


def bfloat16_to_float32(bits: Array) -> Array:
    """Exact."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def float32_to_bfloat16(values: Array, toward_zero: bool = False) -> Array:
    """Rounds to nearest even, or truncates; NaN stays NaN, finite values may become infinite."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    if toward_zero:
        rounded = bits >> np.uint32(16)
    else:
        rounded = (bits + ((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint16(BFLOAT16_NAN), rounded.astype(np.uint16))


def round_to_tf32(values: Array) -> Array:
    """float32 rounded to nearest even at TF32's 10 mantissa bits; infinities and NaN are kept."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + ((bits >> np.uint32(13)) & np.uint32(1)) + np.uint32(0xFFF)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(values), rounded.view(np.float32), values)


def poison(kind: np.dtype[Any], bfloat16: bool) -> Any:
    """What a masked lane without `other` reads: NaN, or the integer that is likeliest to be noticed."""
    if bfloat16:
        return np.uint16(BFLOAT16_NAN)
    if kind.kind == "f":
        return kind.type(np.nan)
    if kind.kind == "b":
        return np.bool_(True)
    info = np.iinfo(kind)
    return kind.type(info.min if kind.kind == "i" else info.max)


def _as_torch(data: Array) -> torch.Tensor:
    if not data.flags.writeable or any(stride < 0 for stride in data.strides):
        data = data.copy()
    return torch.from_numpy(data)


def _product(a: Array, b: Array) -> Array:
    """a @ b in the operands' type. Not by NumPy: its threads wait for one another where cores are shared."""
    product: Array = torch.matmul(_as_torch(a), _as_torch(b)).numpy()
    return product


@contextmanager
def one_thread() -> Iterator[None]:
    """Tiles are too small to share among threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def matmul(a: Array, b: Array, precision: str) -> Array:
    """a @ b for float operands [.., M, K] and [.., K, N], as `tl.dot` computes it at `precision`."""
    match precision:
        case "ieee":
            return _product(a, b)
        case "tf32":
            return _product(round_to_tf32(a), round_to_tf32(b))
        case "tf32x3":
            a_high, b_high = round_to_tf32(a), round_to_tf32(b)
            low = _product(round_to_tf32(a - a_high), b_high) + _product(a_high, round_to_tf32(b - b_high))
            total: Array = _product(a_high, b_high) + low
            return total
        case _:
            raise ValueError(f"input_precision {precision!r} is not simulated; use 'tf32', 'tf32x3' or 'ieee'")


def _through_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Array], Array]:
    """An elementary function NumPy lacks, computed in float64 and rounded once."""

    def apply(values: Array) -> Array:
        wide = torch.from_numpy(np.array(values, dtype=np.float64))
        result: Array = function(wide).numpy().astype(values.dtype)
        return result

    return apply


erf = _through_torch(torch.special.erf)


def _rsqrt(x: Array) -> Array:
    result: Array = x.dtype.type(1) / np.sqrt(x)
    return result


def _round_half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole)


def _exp10(x: Array) -> Array:
    result: Array = np.power(x.dtype.type(10), x)
    return result


def _fused_multiply_add(x: Array, y: Array, z: Array) -> Array:
    result: Array = (x.astype(np.longdouble) * y + z).astype(x.dtype)
    return result


def _of_half_turns(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """`function` of π·x, with the product formed in float64."""
    return lambda x: np.asarray(function(np.pi * x.astype(np.float64)))


_LIBDEVICE: Mapping[str, Callable[..., Array]] = MappingProxyType(
    {
        "acos": np.arccos,
        "acosh": np.arccosh,
        "asin": np.arcsin,
        "asinh": np.arcsinh,
        "atan": np.arctan,
        "atan2": np.arctan2,
        "atanh": np.arctanh,
        "cbrt": np.cbrt,
        "ceil": np.ceil,
        "copysign": np.copysign,
        "cos": np.cos,
        "cosh": np.cosh,
        "cospi": _of_half_turns(np.cos),
        "erf": erf,
        "erfc": _through_torch(torch.special.erfc),
        "erfinv": _through_torch(torch.special.erfinv),
        "exp": np.exp,
        "exp10": _exp10,
        "exp2": np.exp2,
        "expm1": np.expm1,
        "fabs": np.fabs,
        "fdim": lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x + y), x + y, x.dtype.type(0))),
        "fdivide": np.divide,
        "finite": np.isfinite,
        "floor": np.floor,
        "fma": _fused_multiply_add,
        "fmax": np.fmax,
        "fmin": np.fmin,
        "fmod": np.fmod,
        "hypot": np.hypot,
        "isinf": np.isinf,
        "isfinited": np.isfinite,
        "isnan": np.isnan,
        "ldexp": np.ldexp,
        "lgamma": _through_torch(torch.special.gammaln),
        "log": np.log,
        "log10": np.log10,
        "log1p": np.log1p,
        "log2": np.log2,
        "nearbyint": np.rint,
        "pow": np.power,
        "powi": np.power,
        "rint": np.rint,
        "round": _round_half_away,
        "rsqrt": _rsqrt,
        "signbit": np.signbit,
        "signbitd": np.signbit,
        "sin": np.sin,
        "sinh": np.sinh,
        "sinpi": _of_half_turns(np.sin),
        "sqrt": np.sqrt,
        "tan": np.tan,
        "tanh": np.tanh,
        "trunc": np.trunc,
    }
)


def libdevice(symbol: str) -> Callable[..., Array] | None:
    """The function behind a libdevice symbol such as `__nv_tanhf` or `__nv_fast_expf`, if known."""
    name = symbol.removeprefix("__nv_").removeprefix("fast_").removesuffix("_rn")
    return _LIBDEVICE.get(name) or _LIBDEVICE.get(name.removesuffix("f"))
