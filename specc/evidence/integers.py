"""Integer expressions and conditions over arrays of index values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from specc.ops import Bin, Call, Cmp, Expr, Logic, Neg, Num, Select, Size, Var

Integers = npt.NDArray[np.int64]

_ARITHMETIC: dict[str, Any] = {
    "+": np.add, "-": np.subtract, "·": np.multiply, "//": np.floor_divide, "%": np.mod,
}  # fmt: skip
_COMPARE: dict[str, Any] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
_CALL: dict[str, Any] = {"max": np.maximum, "min": np.minimum, "abs": np.abs}


def extent(e: Expr, sizes: Mapping[str, int]) -> int:
    """A dimension as a number. Raises KeyError for an unknown size."""
    return int(integer(e, {}, sizes))


def integer(e: Expr, values: Mapping[str, Integers], sizes: Mapping[str, int]) -> Any:
    """Raises KeyError for an unknown name, TypeError for a real expression."""
    match e:
        case Num(value) if value.denominator == 1:
            return np.int64(int(value))
        case Var(name):
            return values[name]
        case Size(name):
            return np.int64(sizes[name])
        case Neg(arg):
            return -integer(arg, values, sizes)
        case Bin(op, left, right) if op in _ARITHMETIC:
            return _ARITHMETIC[op](integer(left, values, sizes), integer(right, values, sizes))
        case Call(fn, args) if fn in _CALL:
            return _CALL[fn](*(integer(a, values, sizes) for a in args))
        case Select(cond, then, other):
            return np.where(truth(cond, values, sizes), integer(then, values, sizes), integer(other, values, sizes))
    raise TypeError(f"{type(e).__name__} is not an integer expression")


def truth(e: Expr, values: Mapping[str, Integers], sizes: Mapping[str, int]) -> Any:
    """Truth of a condition over integers."""
    match e:
        case Cmp(op, left, right):
            return _COMPARE[op](integer(left, values, sizes), integer(right, values, sizes))
        case Logic("not", (arg,)):
            return ~truth(arg, values, sizes)
        case Logic("and", args) if args:
            return np.logical_and.reduce(np.broadcast_arrays(*(truth(a, values, sizes) for a in args)))
        case Logic("or", args) if args:
            return np.logical_or.reduce(np.broadcast_arrays(*(truth(a, values, sizes) for a in args)))
        case Logic(op):
            return np.bool_(op == "true")
    raise TypeError(f"{type(e).__name__} is not a condition over integers")
