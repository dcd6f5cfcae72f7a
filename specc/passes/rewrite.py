"""Applying a rewrite to every expression of a formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from specc.ops import Expr, Formula, rebuild


def each(formula: Formula, rewrite: Callable[[Expr], Expr]) -> Formula:
    """`formula` with `rewrite` applied to each whole right-hand side."""
    return replace(
        formula,
        equations=tuple(replace(q, expr=rewrite(q.expr)) for q in formula.equations),
        recs=tuple(replace(r, init=rewrite(r.init), step=rewrite(r.step)) for r in formula.recs),
    )


def bottom_up(e: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """Applies `rule` to every node, children first."""
    return rule(rebuild(e, lambda child: bottom_up(child, rule)))


def exchange(e: Expr, old: Expr, new: Expr) -> Expr:
    """`e` with every `old` in it replaced by `new`."""
    return new if e == old else rebuild(e, lambda child: exchange(child, old, new))
