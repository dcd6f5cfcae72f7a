"""Short static reductions that are no contraction (a stencil) are written out term by term."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from specc.ops import (
    Bin,
    Call,
    Expr,
    Formula,
    Load,
    Num,
    Reduce,
    Select,
    Softmax,
    Sort,
    Var,
    free_vars,
    substitute,
    walk,
)
from specc.passes.rewrite import bottom_up, each
from specc.passes.simplify import identities

LONGEST = 16
"""Longest reduction that is unrolled."""
LARGEST = 2048
"""Most nodes that a reduction may become."""


def unroll(formula: Formula) -> Formula:
    """Unrolls a reduction over j where j is added to another index of a read, as in `x[t - 3 + j, c]`."""
    return each(formula, lambda e: bottom_up(e, _rule(lambda r: _shifts(r.body, r.var))))


def unroll_all(formula: Formula) -> Formula:
    """Unrolls every short reduction."""
    return each(formula, lambda e: bottom_up(e, _rule(lambda _: True)))


def _rule(wanted: Callable[[Reduce], bool]) -> Callable[[Expr], Expr]:
    def rule(e: Expr) -> Expr:
        return _terms(e) if isinstance(e, Reduce) and _short(e) and wanted(e) else e

    return rule


def _short(e: Reduce) -> bool:
    """Whether `e` is a sum or product of at most LONGEST terms, or a maximum of at least one, and no softmax in it runs
    over its variable, and it stays readable."""
    if not isinstance(e.extent, Num) or not 0 < e.extent.value <= LONGEST or (e.op == "Max" and e.where is not None):
        return False
    nodes = list(walk(e.body))
    return len(nodes) * e.extent.value <= LARGEST and not any(isinstance(n, Softmax) and n.var == e.var for n in nodes)


def _terms(e: Reduce) -> Expr:
    assert isinstance(e.extent, Num)
    total: Expr | None = None
    for j in range(int(e.extent.value)):
        here: dict[str, Expr] = {e.var: Num(Fraction(j), Sort.INDEX)}
        term = substitute(e.body, here)
        if e.where is not None:
            term = Select(substitute(e.where, here), term, Num(Fraction(1 if e.op == "Π" else 0)), Sort.REAL)
        total = _join(e.op, total, bottom_up(term, identities))
    assert total is not None
    return total


def _join(op: str, a: Expr | None, b: Expr) -> Expr:
    if a is None:
        return b
    return Call("max", (a, b)) if op == "Max" else Bin("+" if op == "Σ" else "·", a, b, Sort.REAL)


def _shifts(body: Expr, var: str) -> bool:
    """Whether `var` is mixed with another variable inside one index."""
    for node in walk(body):
        for index in node.indices if isinstance(node, Load) else ():
            names = free_vars(index)
            if var in names and len(names) > 1 and index != Var(var):
                return True
    return False
