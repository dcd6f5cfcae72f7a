"""Pointwise and gather: each result element from a few reads, the inner axis cut where conditions on it change."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from specc.kernels import Access, Axis, Pointwise, Store, Strip
from specc.lower.access import Reader, depends_on, merged
from specc.lower.draft import Fit, NoFit, shared_axes, static
from specc.lower.names import names_of
from specc.lower.ranges import cut_points, decide, static_ranges
from specc.lower.tabulate import Tabulator
from specc.ops import Bin, Expr, Formula, Num, Reduce, Softmax, Sort, Var, substitute, walk
from specc.passes.rewrite import bottom_up
from specc.passes.simplify import identities


def pointwise(formula: Formula) -> Fit:
    """Raises NoFit for a formula with reductions, or with results of different shapes."""
    if any(isinstance(n, Reduce | Softmax) for q in formula.equations for n in walk(q.expr)):
        raise NoFit("it reduces over an axis")
    *rows, inner = shared_axes(formula)
    length = static(inner.extent, f"the last axis, `{inner.var}`,")
    cuts = sorted({c for q in formula.equations for c in cut_points(q.expr, inner.var, length)})
    by_length: dict[int, list[int]] = {}
    for low, high in pairwise([0, *cuts, length]):
        by_length.setdefault(high - low, []).append(low)
    builder = _Strips(formula, tuple(rows), inner.var)
    strips = [builder(n, lows) for n, lows in by_length.items()]
    row_loads, strips = _hoist(tuple(rows), strips)
    schedule = Pointwise(tuple(rows), inner.var, row_loads, tuple(strips))
    cut = f", cut at {', '.join(map(str, cuts))}" if cuts else ""
    reason = f"no reduction: each element of `{inner.var}` stands alone{cut}"
    return Fit(schedule, tuple(builder.tables.tables), reason)


class _Strips:
    """Makes the strips of one kernel, which share names and tables."""

    def __init__(self, formula: Formula, rows: tuple[Axis, ...], inner: str) -> None:
        self.formula, self.inner = formula, inner
        self.rows = {a.var: a.extent for a in rows}
        self.names = names_of(formula)
        self.tables = Tabulator(self.names)

    def __call__(self, length: int, lows: list[int]) -> Strip:
        axes: dict[str, Expr] = {**self.rows, self.inner: Num(Fraction(length), Sort.INDEX)}
        read = Reader(self.formula, self.names, axes, self.inner)
        stores = []
        for low in lows:
            for q in self.formula.equations:
                value = decide(_shift(q.expr, self.inner, low), static_ranges(axes))
                value = self.tables(value, {self.inner: length})
                indices = tuple(_shift(Var(i), self.inner, low) for i in q.indices)
                stores.append(Store(q.tensor.name, indices, read(value)))
        return Strip(length, read.accesses, tuple(stores))


def _shift(e: Expr, var: str, low: int) -> Expr:
    if low == 0:
        return e
    shifted = Bin("+", Var(var), Num(Fraction(low), Sort.INDEX), Sort.INDEX)
    return bottom_up(substitute(e, {var: shifted}), identities)


def _hoist(rows: tuple[Axis, ...], strips: list[Strip]) -> tuple[tuple[Access, ...], list[Strip]]:
    """Reads that depend on the row alone, in every strip that makes them, are made once, before the strips."""
    loads = [a for strip in strips for a in strip.loads]
    known = {a.var for a in rows} | {a.name for a in loads}
    while inside := {a.name for a in loads if a.name in known and not set(depends_on(a)) <= known}:
        known -= inside
    hoisted: dict[str, Access] = {}
    before: dict[str, set[str]] = {}
    for load in (a for a in loads if a.name in known):
        if load.name not in hoisted:
            before[load.name] = {*(a.var for a in rows), *hoisted}
            hoisted[load.name] = load
        else:
            hoisted[load.name] = merged(hoisted[load.name], load.guard, before[load.name])
    kept = [replace(s, loads=tuple(a for a in s.loads if a.name not in hoisted)) for s in strips]
    return tuple(hoisted.values()), kept
