"""Short static sums that are no contraction (a stencil) are written out term by term."""

from __future__ import annotations

from fractions import Fraction

from specc.ops import Bin, Expr, Formula, Num, Reduce, Sort, Var, children, free_vars, substitute, walk
from specc.ops import Load as _Load
from specc.passes.rewrite import bottom_up, each
from specc.passes.simplify import identities

LONGEST = 16
"""Longest sum that is unrolled."""


def unroll(formula: Formula) -> Formula:
    """Unrolls `Σ_j` where j is added to another index of a read, as in `x[t - 3 + j, c]`."""
    return each(formula, lambda e: bottom_up(e, _unroll))


def _unroll(e: Expr) -> Expr:
    match e:
        case Reduce("Σ", var, Num(n), None, body) if 0 < n <= LONGEST and _shifts(body, var):
            terms = [bottom_up(substitute(body, {var: _index(j)}), identities) for j in range(int(n))]
            total = terms[0]
            for term in terms[1:]:
                total = Bin("+", total, term, Sort.REAL)
            return total
    return e


def _index(j: int) -> Num:
    return Num(Fraction(j), Sort.INDEX)


def _shifts(body: Expr, var: str) -> bool:
    """Whether `var` is mixed with another variable inside one index."""
    for node in walk(body):
        if isinstance(node, _Load):
            for index in children(node):
                names = free_vars(index)
                if var in names and len(names) > 1 and index != Var(var):
                    return True
    return False
