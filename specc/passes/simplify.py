"""Exact identities: factors 0 and 1, divisors 1, terms 0, double signs, decided conditions."""

from __future__ import annotations

from fractions import Fraction

from specc.instantiate import FALSE, TRUE, fold
from specc.ops import Bin, Expr, Formula, Neg, Num, Rounded, Select, Sort
from specc.passes.constants import fold_real
from specc.passes.rewrite import bottom_up, each


def simplify(formula: Formula) -> Formula:
    """Every identity used is exact in floating point for finite values. A factor 0 takes its partner away, so that a
    NaN there reaches no result that does not depend on it."""
    return each(formula, lambda e: bottom_up(e, identities))


def identities(e: Expr) -> Expr:
    """One node, its children already simple."""
    match e:
        case Bin("·", Num(a), b) if a == 1:
            return b
        case Bin("·" | "/" | "^", a, Num(b)) if b == 1:
            return a
        case Bin("·", Num(a), _, sort) | Bin("·", _, Num(a), sort) if a == 0:
            return Num(a, sort)
        case Bin("+" | "-", a, Num(b), Sort.REAL) if b == 0:
            return a
        case Bin("+", Num(a), b, Sort.REAL) if a == 0:
            return b
        case Bin("·", Num(a), b, Sort.REAL) if a == -1:
            return Neg(b, Sort.REAL)
        case Bin("//", a, Num(b)) if b == 1:
            return a
        case Bin("%", _, Num(b)) if b == 1:
            return Num(Fraction(0), Sort.INDEX)
        case Bin("+" | "-", a, Num(b), Sort.INDEX) if b == 0:
            return a
        case Bin("+", Num(a), b, Sort.INDEX) if a == 0:
            return b
        case Bin("+" | "-", Bin("+" | "-" as inner, a, Num(b)), Num(c), Sort.INDEX):
            total = (b if inner == "+" else -b) + (c if e.op == "+" else -c)
            return identities(Bin("+" if total >= 0 else "-", a, Num(abs(total), Sort.INDEX), Sort.INDEX))
        case Bin("+", Num() as a, b, Sort.INDEX) if not isinstance(b, Num):
            return identities(Bin("+", b, a, Sort.INDEX))
        case Neg(Neg(a)):
            return a
        case Rounded(Num(a) as exact) if a in (-1, 0, 1):
            return exact
        case Rounded(Rounded(a, inner), role) if inner == role:
            return Rounded(a, role)
        case Select(cond, then, other) if cond in (TRUE, FALSE):
            return then if cond == TRUE else other
    return fold(fold_real(e))
