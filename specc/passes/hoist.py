"""Factors and divisors that do not depend on the variable of a Σ are taken out of it."""

from __future__ import annotations

from specc.ops import Bin, Expr, Formula, Neg, Num, Reduce, Sort, free_vars
from specc.passes.rewrite import bottom_up, each


def hoist(formula: Formula) -> Formula:
    """Σ_j c·a_j / d = c·(Σ_j a_j) / d for numbers c and d: one operation a row in place of one an element."""
    return each(formula, lambda e: bottom_up(e, _hoist))


def _hoist(e: Expr) -> Expr:
    match e:
        case Reduce("Σ", var, extent, where, Bin("/", body, divisor)) if not free_vars(divisor):
            inner = _hoist(Reduce("Σ", var, extent, where, body))
            return Bin("/", inner, divisor, Sort.REAL)
        case Reduce("Σ", var, extent, where, Bin("·", Num() as c, body)):
            inner = _hoist(Reduce("Σ", var, extent, where, body))
            return Bin("·", c, inner, Sort.REAL)
        case Reduce("Σ", var, extent, where, Neg(body)):
            return Neg(_hoist(Reduce("Σ", var, extent, where, body)), Sort.REAL)
    return e
