"""Whether a `computed as` form has the value of its definition, in float64 where both behave well."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import islice, product

from specc.ops import Apply, Bin, Call, Cmp, Expr, Logic, Named, Neg, Num, Pi, ScalarDef, Select, Sort, Var

POINTS = (0.37, -0.81, 1.9, -2.6, 0.05, 3.3, -0.02)
"""Where real parameters are tried; of moderate size, so that neither form cancels much."""
NATURALS = (3, 8)
MOST = 60
"""Combinations of points tried."""
AGREE = 1e-9
"""Relative difference that float64 explains at such points; an edit of a constant in its fourth digit is larger."""

_FUNCTIONS: dict[str, Callable[..., float]] = {
    "exp": math.exp,
    "expm1": math.expm1,
    "log": math.log,
    "log1p": math.log1p,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "sin": math.sin,
    "cos": math.cos,
    "abs": abs,
    "max": max,
    "min": min,
}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "·": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "^": lambda a, b: math.pow(a, b),
}


def agrees(fn: ScalarDef) -> bool:
    """True where there is no second form, or it differs nowhere that both have a value, and they have one somewhere."""
    if fn.computed is None:
        return True
    choices = [NATURALS if p.sort is Sort.INDEX else POINTS for p in fn.params]
    met = 0
    for values in islice(product(*choices), MOST):
        at = {p.name: float(v) for p, v in zip(fn.params, values, strict=True)}
        pair = _value(fn.body, at), _value(fn.computed, at)
        if None in pair:
            continue
        a, b = (float(x) for x in pair if x is not None)
        met += 1
        if abs(a - b) > AGREE * max(abs(a), abs(b)):
            return False
    return met > 0


def _value(e: Expr, at: Mapping[str, float]) -> float | None:
    """None where the expression has no value there."""
    try:
        return _real(e, at)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def _real(e: Expr, at: Mapping[str, float]) -> float:
    match e:
        case Num(value):
            return float(value)
        case Pi():
            return math.pi
        case Var(name):
            return at[name]
        case Neg(arg):
            return -_real(arg, at)
        case Bin(op, left, right):
            return _ARITHMETIC[op](_real(left, at), _real(right, at))
        case Call(fn, args):
            return float(_FUNCTIONS[fn](*(_real(a, at) for a in args)))
        case Apply(fn, args):
            return _real(fn.body, {p.name: _real(a, at) for p, a in zip(fn.params, args, strict=True)})
        case Select(cond, then, other):
            return _real(then if _holds(cond, at) else other, at)
        case Named(_, inner):
            return _real(inner, at)
    raise ValueError(f"{type(e).__name__} has no value in a scalar function")


def _holds(e: Expr, at: Mapping[str, float]) -> bool:
    match e:
        case Cmp(op, left, right):
            return _COMPARE[op](_real(left, at), _real(right, at))
        case Logic("not", (arg,)):
            return not _holds(arg, at)
        case Logic("and", args):
            return all(_holds(a, at) for a in args)
        case Logic("or", args):
            return any(_holds(a, at) for a in args)
        case Logic(op):
            return op == "true"
    raise ValueError(f"{type(e).__name__} is no condition")
