"""Powers become products, quotients and roots, which is all that targets have."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from specc.ops import Apply, Bin, Call, Expr, Formula, Num, ScalarDef, Sort, rebuild
from specc.passes.rewrite import each

LARGEST = 64
"""Largest exponent that is written as a product."""
LONGEST = 8
"""Largest exponent that targets write as a product of their own."""


def powers(formula: Formula) -> Formula:
    """x⁻ⁿ = 1/xⁿ, x^(n+½) = xⁿ·√x, and exponents above LONGEST in parts; in scalar functions as well."""
    return each(formula, visit)


def visit(e: Expr) -> Expr:
    match e:
        case Apply(fn, args):
            return replace(e, fn=_function(fn), args=tuple(visit(a) for a in args))
        case Bin("^", base, Num(n)) if abs(n) <= LARGEST:
            return _power(visit(base), n, e.sort) or rebuild(e, visit)
    return rebuild(e, visit)


def _function(fn: ScalarDef) -> ScalarDef:
    """`fn` with a `computed as` form without other powers, where its own has some."""
    written = fn.computed or fn.body
    computed = visit(written)
    return fn if computed == written else replace(fn, computed=computed)


def _power(base: Expr, n: Fraction, sort: Sort) -> Expr | None:
    if n < 0:
        below = _power(base, -n, sort)
        return None if below is None else Bin("/", Num(Fraction(1)), below, Sort.REAL)
    if n.denominator == 2:
        root = Call("sqrt", (base,))
        whole = n - Fraction(1, 2)
        return root if whole == 0 else Bin("·", _whole(base, int(whole), sort), root, Sort.REAL)
    return _whole(base, int(n), sort) if n.denominator == 1 else None


def _whole(base: Expr, n: int, sort: Sort) -> Expr:
    if n == 0:
        return Num(Fraction(1), sort)
    if n == 1:
        return base
    if n <= LONGEST:
        return Bin("^", base, Num(Fraction(n), Sort.INDEX), sort)
    return Bin("·", _whole(base, n - LONGEST, sort), _whole(base, LONGEST, sort), sort)
