"""Factors and divisors that do not depend on the variable of a Σ are taken out of it."""

from __future__ import annotations

from fractions import Fraction

from specc.ops import Bin, Expr, Formula, Neg, Num, Reduce, Sort, free_vars
from specc.passes.rewrite import bottom_up, each
from specc.passes.simplify import identities

ONE = Num(Fraction(1))
Factor = tuple[Expr, bool]
"""An expression, and whether it divides."""


def hoist(formula: Formula) -> Formula:
    """Σ_j c·a_j / d = c·(Σ_j a_j) / d: one operation a row in place of one an element. Numbers go out of every sum;
    what is computed goes out where the sum cannot be empty, for 0·NaN is not 0."""
    return each(formula, lambda e: bottom_up(e, _hoist))


def _hoist(e: Expr) -> Expr:
    if not isinstance(e, Reduce) or e.op != "Σ":
        return e
    never_empty = e.where is None and isinstance(e.extent, Num) and e.extent.value > 0
    found, negative = factors(e.body)
    outside = [f for f in found if _movable(f, e.var, never_empty)]
    if not outside and not negative:
        return e
    inside = [f for f in found if not _movable(f, e.var, never_empty)]
    total: Expr = Reduce("Σ", e.var, e.extent, e.where, product(inside))
    if not inside and never_empty:
        total = Num(e.extent.value) if isinstance(e.extent, Num) else total
    over = [f for f in outside if not f[1]]
    out = product([*over, (total, False), *(f for f in outside if f[1])])
    return Neg(out, Sort.REAL) if negative else out


def _movable(factor: Factor, var: str, never_empty: bool) -> bool:
    e, divides = factor
    if isinstance(e, Num):
        return not divides or e.value != 0
    return never_empty and var not in free_vars(e)


def factors(e: Expr) -> tuple[list[Factor], bool]:
    """`e` as factors and divisors, from left to right, and whether it is negated."""
    match e:
        case Neg(arg, Sort.REAL):
            found, negative = factors(arg)
            return found, not negative
        case Bin("·", left, right, Sort.REAL):
            (a, m), (b, n) = factors(left), factors(right)
            return a + b, m != n
        case Bin("/", left, right, Sort.REAL):
            a, m = factors(left)
            return [*a, (right, True)], m
    return [(e, False)], False


def product(items: list[Factor]) -> Expr:
    """The inverse of `factors`."""
    out: Expr | None = None
    for e, divides in items:
        if out is None:
            out = Bin("/", ONE, e, Sort.REAL) if divides else e
        else:
            out = identities(Bin("/" if divides else "·", out, e, Sort.REAL))
    return ONE if out is None else out
