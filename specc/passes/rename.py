"""Index variables get names that nothing else in their equation has."""

from __future__ import annotations

from dataclasses import replace

from specc.ops import Expr, Formula, FormulaEquation, Reduce, Size, Var, fresh, rebuild, substitute, walk


def rename(formula: Formula) -> Formula:
    """Results of one shape are indexed by the same variables, and no reduction runs over a variable that is in use
    where it stands: Σ_d inside of o[t, h, d] = … becomes Σ_d_2."""
    equations = tuple(_unshadow(_align(q, formula.equations[0])) for q in formula.equations)
    return replace(formula, equations=equations)


def _align(q: FormulaEquation, first: FormulaEquation) -> FormulaEquation:
    if q.indices == first.indices or q.tensor.dims != first.tensor.dims:
        return q
    new: dict[str, Expr] = {old: Var(name) for old, name in zip(q.indices, first.indices, strict=True)}
    return replace(q, indices=first.indices, expr=substitute(q.expr, new))


def _unshadow(q: FormulaEquation) -> FormulaEquation:
    sizes = {n.name for e in (q.expr, *q.tensor.dims) for n in walk(e) if isinstance(n, Size)}
    return replace(q, expr=_visit(q.expr, frozenset(q.indices) | sizes))


def _visit(e: Expr, scope: frozenset[str]) -> Expr:
    if not isinstance(e, Reduce):
        return rebuild(e, lambda c: _visit(c, scope))
    var = fresh(e.var, scope)
    inner, new = scope | {var}, {e.var: Var(var)}
    where = None if e.where is None else _visit(substitute(e.where, new), inner)
    return replace(e, var=var, extent=_visit(e.extent, scope), where=where, body=_visit(substitute(e.body, new), inner))
