"""Real expressions without operands become numbers, evaluated in float64."""

from __future__ import annotations

import math
from fractions import Fraction

from specc.limits import MAX_BITS, MAX_MAGNITUDE
from specc.ops import Bin, Call, Expr, Formula, Neg, Num, Pi, Sort
from specc.passes.rewrite import bottom_up, each

_FUNCTIONS = {
    "exp": math.exp, "expm1": math.expm1, "log": math.log, "log1p": math.log1p, "sqrt": math.sqrt,
    "tanh": math.tanh, "sin": math.sin, "cos": math.cos,
}  # fmt: skip


def fold_constants(formula: Formula) -> Formula:
    """Rational arithmetic stays exact; a root, π or a function value is the nearest float64, which is 29 bits finer
    than the float32 that kernels compute in."""
    return each(formula, fold_constants_in)


def fold_constants_in(e: Expr) -> Expr:
    """The same for one expression."""
    return bottom_up(e, fold_real)


def fold_real(e: Expr) -> Expr:
    """One node whose children are folded already."""
    match e:
        case Pi():
            return Num(Fraction(math.pi))
        case Neg(Num(a, sort)):
            return Num(-a, sort)
        case Bin(op, Num(a), Num(b), Sort.REAL):
            value = _arithmetic(op, a, b)
            return Num(value) if value is not None and in_range(value) else e
        case Call(fn, (Num(a),)) if fn in _FUNCTIONS:
            return _function(fn, a, e)
    return e


def in_range(value: Fraction) -> bool:
    """Whether `value` has few digits, and is 0 or no further from 1 than float64 goes."""
    above, below = value.numerator.bit_length(), value.denominator.bit_length()
    return max(above, below) <= MAX_BITS and (value == 0 or abs(above - below) <= MAX_MAGNITUDE)


def _function(fn: str, a: Fraction, e: Expr) -> Expr:
    try:
        return Num(Fraction(_FUNCTIONS[fn](float(a))))
    except (ValueError, OverflowError):
        return e


def _arithmetic(op: str, a: Fraction, b: Fraction) -> Fraction | None:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "·":
            return a * b
        case "/" if b != 0:
            return a / b
        case "^" if b.denominator == 1 and abs(b) <= 64 and (a != 0 or b >= 0):
            return a ** int(b)
        case "^" if a > 0:
            return _power(a, b)
    return None


def _power(a: Fraction, b: Fraction) -> Fraction | None:
    try:
        return Fraction(float(a) ** float(b))
    except (OverflowError, ZeroDivisionError):
        return None
