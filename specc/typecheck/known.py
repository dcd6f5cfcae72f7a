"""Values of expressions as far as they depend on nothing that is not known, and which have none: `log(0)`, `x / 0`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction

from specc.instantiate import compare
from specc.limits import MAX_BITS
from specc.ops import Apply, Bin, Call, Cmp, Expr, Logic, Named, Neg, Num, Pi, Reduce, ScalarDef, Select, Softmax, Var
from specc.ops import children as parts
from specc.passes.constants import in_range

Number = Fraction | float
Known = Number | None
"""A value, or None for what is not known yet."""

OUT_OF_RANGE = "number out of range"
_EXACT: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add, "-": operator.sub, "·": operator.mul, "/": operator.truediv, "%": operator.mod,
    "//": lambda a, b: Fraction(a // b),
}  # fmt: skip
_FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "exp": math.exp, "expm1": math.expm1, "log": math.log, "log1p": math.log1p, "sqrt": math.sqrt, "tanh": math.tanh,
    "sin": math.sin, "cos": math.cos, "abs": abs, "max": max, "min": min,
}  # fmt: skip
_LEAST: Mapping[str, tuple[int, str]] = {
    "sqrt": (0, "square root of a negative number"),
    "log": (0, "logarithm of a number that is not positive"),
    "log1p": (-1, "logarithm of a number that is not positive"),
}


class Undefined(Exception):
    """An expression has no value; the text says why."""


def arithmetic(op: str, a: Known, b: Known) -> Known:
    """`a op b`, exact where that stays short. Raises Undefined."""
    if op in ("/", "//", "%") and b == 0:
        raise Undefined("division by zero")
    if a is None or b is None:
        return None
    if op == "^":
        return _power(a, b)
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        exact = _EXACT[op](a, b)
        if in_range(exact):
            return exact
    return _finite(_EXACT[op], a, b)


def _power(a: Number, b: Number) -> Number:
    whole = Fraction(b).denominator == 1
    if a == 0 and b < 0:
        raise Undefined("division by zero")
    if a < 0 and not whole:
        raise Undefined("power of a negative number")
    if isinstance(a, Fraction) and whole:
        bits = max(a.numerator.bit_length(), a.denominator.bit_length())
        if abs(int(b)) * bits < MAX_BITS:
            return a ** int(b)
    return _finite(math.pow, a, b)


def function(name: str, args: list[Known]) -> Known:
    """An elementary function. Raises Undefined."""
    known = [a for a in args if a is not None]
    if len(known) < len(args):
        return None
    if name in ("abs", "max", "min"):
        return _FUNCTIONS[name](*known)
    least, why = _LEAST.get(name, (None, ""))
    if least is not None and (known[0] < least or (known[0] == least and name != "sqrt")):
        raise Undefined(why)
    return _finite(_FUNCTIONS[name], *known)


def _finite(action: Callable[..., Number], *args: Number) -> float:
    try:
        value = float(action(*map(float, args)))
    except (OverflowError, ZeroDivisionError, ValueError):
        raise Undefined(OUT_OF_RANGE) from None
    if not math.isfinite(value):
        raise Undefined(OUT_OF_RANGE)
    return value


def value_of(e: Expr, at: Mapping[str, Known] | None = None) -> Known:
    """The value of a typed expression, as far as it is known; variables have those of `at`. What is evaluated in some
    cases only is not looked at. Raises Undefined."""
    at = at or {}
    match e:
        case Num(value):
            return value
        case Pi():
            return math.pi
        case Var(name):
            return at.get(name)
        case Neg(arg):
            inner = value_of(arg, at)
            return None if inner is None else -inner
        case Bin(op, left, right):
            return arithmetic(op, value_of(left, at), value_of(right, at))
        case Call(fn, args):
            return function(fn, [value_of(a, at) for a in args])
        case Apply(fn, args):
            inside = _inside(fn, args, at)
            return None if inside is None else value_of(_form(fn), inside)
        case Named(_, named):
            return value_of(named, at)
        case Select(cond, then, other):
            chosen = holds(cond, at)
            return None if chosen is None else value_of(then if chosen else other, at)
        case Reduce() | Softmax():
            _look_inside(e, at)
            return None
    for part in parts(e):
        value_of(part, at)
    return None


def _form(fn: ScalarDef) -> Expr:
    return fn.body if fn.computed is None else fn.computed


def _inside(fn: ScalarDef, args: tuple[Expr, ...], at: Mapping[str, Known]) -> dict[str, Known] | None:
    """What the parameters of `fn` are in a call, None where nothing is known of them."""
    values = [value_of(a, at) for a in args]
    known = not values or any(v is not None for v in values)
    return {p.name: v for p, v in zip(fn.params, values, strict=True)} if known else None


def _look_inside(e: Reduce | Softmax, at: Mapping[str, Known]) -> None:
    inner = {**at, e.var: None}
    where = e.where if isinstance(e, Reduce) else e.visible
    if value_of(e.extent, at) != 0 and (where is None or holds(where, inner)):
        value_of(e.body if isinstance(e, Reduce) else e.score, inner)


def holds(e: Expr, at: Mapping[str, Known] | None = None) -> bool | None:
    """Whether a typed condition holds, None where that is not known. Raises Undefined."""
    at = at or {}
    match e:
        case Cmp(op, left, right):
            a, b = value_of(left, at), value_of(right, at)
            return None if a is None or b is None else compare(op, a, b)
        case Logic("true" | "false" as op):
            return op == "true"
        case Logic("not", (arg,)):
            inner = holds(arg, at)
            return None if inner is None else not inner
        case Logic(op, args):
            return _junction(op == "or", args, at)
        case Named(_, named):
            return holds(named, at)
        case Apply(fn, args):
            inside = _inside(fn, args, at)
            return None if inside is None else holds(_form(fn), inside)
        case Select(cond, then, other):
            chosen = holds(cond, at)
            return None if chosen is None else holds(then if chosen else other, at)
    return None


def _junction(decisive: bool, args: tuple[Expr, ...], at: Mapping[str, Known]) -> bool | None:
    """Of conditions, the first of which that is `decisive` ends the evaluation."""
    unknown = False
    for arg in args:
        try:
            value = holds(arg, at)
        except Undefined:
            if not unknown:
                raise
            value = None
        if value is decisive:
            return decisive
        unknown = unknown or value is None
    return None if unknown else not decisive
