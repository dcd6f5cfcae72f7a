"""Sums in the branches of a conditional as one sum."""

from __future__ import annotations

from specc.ops import Bin, Expr, Reduce, Select, Sort, Var, free_vars, substitute, walk
from specc.passes.rewrite import exchange


def merge_branches(e: Expr) -> Expr:
    """if c then f(Σ_k x·a) else g(Σ_k x·b) = if c then f(s) else g(s), with s = Σ_k x·(if c then a else b)."""
    if not isinstance(e, Select):
        return e
    x, y = _only_sum(e.then), _only_sum(e.other)
    if x is None or y is None or x == y or x.op != y.op or x.extent != y.extent or x.op != "Σ":
        return e
    merged = _merge(e.cond, x, y)
    if merged is None:
        return e
    then, other = exchange(e.then, x, merged), exchange(e.other, y, merged)
    return then if then == other else Select(e.cond, then, other, e.sort)


def _only_sum(e: Expr) -> Reduce | None:
    sums = list({n: None for n in walk(e) if isinstance(n, Reduce)})
    return sums[0] if len(sums) == 1 and sums[0].where is None else None


def _merge(cond: Expr, x: Reduce, y: Reduce) -> Expr | None:
    if x.var in free_vars(cond) or (x.var != y.var and x.var in free_vars(y.body)):
        return None
    fx, fy = _factors(x.body), _factors(substitute(y.body, {y.var: Var(x.var)}))
    common = []
    for f in list(fx):
        if f in fy:
            common.append(f)
            fx.remove(f)
            fy.remove(f)
    if not fx or not fy:
        return None
    chosen = Select(cond, _product(fx), _product(fy), Sort.REAL)
    return Reduce("Σ", x.var, x.extent, None, _product([*common, chosen]))


def _factors(e: Expr) -> list[Expr]:
    return [*_factors(e.left), *_factors(e.right)] if isinstance(e, Bin) and e.op == "·" else [e]


def _product(items: list[Expr]) -> Expr:
    out = items[0]
    for item in items[1:]:
        out = Bin("·", out, item, Sort.REAL)
    return out
