"""Pointwise and gather: each result element from a few reads, the inner axis cut where conditions on it change."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from specc.kernels import Access, Axis, Pointwise, Store, Strip
from specc.lower.access import Reader
from specc.lower.draft import Fit, NoFit, axes_of, static
from specc.lower.ranges import cut_points, decide
from specc.lower.tabulate import Tabulator
from specc.ops import Bin, Expr, Formula, Num, Reduce, Softmax, Sort, Var, free_vars, substitute, walk
from specc.passes.rewrite import bottom_up
from specc.passes.simplify import identities

LARGEST = 2**62
"""Stands for the extent of a run-time axis where only its sign matters."""


def pointwise(formula: Formula) -> Fit:
    """Raises NoFit for a formula with reductions, or with results of different shapes."""
    if any(isinstance(n, Reduce | Softmax) for q in formula.equations for n in walk(q.expr)):
        raise NoFit("it reduces over an axis")
    axes = axes_of(formula.equations[0])
    if any(axes_of(q) != axes for q in formula.equations):
        raise NoFit("its results have different axes")
    *rows, inner = axes
    length = static(inner.extent, f"the last axis, `{inner.var}`,")
    cuts = sorted({c for q in formula.equations for c in cut_points(q.expr, inner.var, length)})
    pieces = list(pairwise([0, *cuts, length]))
    by_length: dict[int, list[int]] = {}
    for low, high in pieces:
        by_length.setdefault(high - low, []).append(low)
    tables = Tabulator({inner.var: 0})
    strips = [_strip(formula, tuple(rows), inner.var, n, lows, tables) for n, lows in by_length.items()]
    row_loads, strips = _hoist(tuple(rows), strips)
    schedule = Pointwise(tuple(rows), inner.var, row_loads, tuple(strips))
    cut = f", cut at {', '.join(map(str, cuts))}" if cuts else ""
    return Fit(schedule, tuple(tables.tables), f"no reduction: each element of `{inner.var}` stands alone{cut}")


def _strip(
    formula: Formula, rows: tuple[Axis, ...], var: str, length: int, lows: list[int], tables: Tabulator
) -> Strip:
    tables.lengths[var] = length
    stores: list[tuple[str, tuple[Expr, ...], Expr]] = []
    for low in lows:
        for q in formula.equations:
            shifted = _shift(q.expr, var, low)
            ranges = {var: (0, length - 1)} | {a.var: (0, LARGEST) for a in rows}
            value = tables(decide(shifted, ranges))
            stores.append((q.tensor.name, tuple(_shift(Var(i), var, low) for i in q.indices), value))
    read = Reader(formula.inputs)
    filled = tuple(Store(name, indices, read(value)) for name, indices, value in stores)
    return Strip(length, tuple(read.found.values()), filled)


def _shift(e: Expr, var: str, low: int) -> Expr:
    if low == 0:
        return e
    shifted = Bin("+", Var(var), Num(Fraction(low), Sort.INDEX), Sort.INDEX)
    return bottom_up(substitute(e, {var: shifted}), identities)


def _hoist(rows: tuple[Axis, ...], strips: list[Strip]) -> tuple[tuple[Access, ...], list[Strip]]:
    """Reads that depend on the row alone are made once, before the strips."""
    row_names = {a.var for a in rows}
    hoisted: dict[str, Access] = {}
    for strip in strips:
        for load in strip.loads:
            names = set(free_vars_of(load))
            if names <= row_names | set(hoisted) and hoisted.get(load.name, load) == load:
                hoisted[load.name] = load
    kept = [Strip(s.length, tuple(a for a in s.loads if a.name not in hoisted), s.stores) for s in strips]
    return tuple(hoisted.values()), kept


def free_vars_of(load: Access) -> tuple[str, ...]:
    """Variables and earlier accesses that the place of a read depends on."""
    exprs = (*load.indices, *((load.guard,) if load.guard is not None else ()))
    return tuple(dict.fromkeys(n for e in exprs for n in free_vars(e)))
