"""Row reduction: stages of (map, Σ or Max, finish) over a row that stays on chip, then the results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from specc.kernels import Access, RowReduction, Stage, Store
from specc.lower.access import Reader
from specc.lower.draft import Fit, NoFit, axes_of, static
from specc.lower.pointwise import free_vars_of
from specc.ops import (
    Bin,
    Call,
    Expr,
    Formula,
    Num,
    Reduce,
    Select,
    Softmax,
    Sort,
    Var,
    children,
    free_vars,
    rebuild,
    substitute,
    walk,
)
from specc.passes.rewrite import bottom_up

ONE, ZERO = Num(Fraction(1)), Num(Fraction(0))


def row_reduction(formula: Formula) -> Fit:
    """Raises NoFit when a reduction depends on the last axis of the result or runs over another extent."""
    axes = axes_of(formula.equations[0])
    if any(axes_of(q) != axes for q in formula.equations):
        raise NoFit("its results have different axes")
    *rows, inner = axes
    static(inner.extent, f"the row `{inner.var}`")
    row_vars = {a.var for a in rows}
    builder = _Stages(row_vars, inner.var, inner.extent)
    values = [builder(reciprocal(expand_softmax(q.expr), row_vars, inner.var)) for q in formula.equations]
    if not builder.stages:
        raise NoFit("it has no reduction")
    stages, values = _finish(builder.stages, values, row_vars)
    read = Reader(formula.inputs)
    stages = [replace(s, map=read(s.map), finish=read(s.finish), where=s.where and read(s.where)) for s in stages]
    stores = tuple(
        Store(q.tensor.name, tuple(Var(i) for i in q.indices), read(v))
        for q, v in zip(formula.equations, values, strict=True)
    )
    row_loads, loads, vectors = _split(tuple(read.found.values()), row_vars, inner.var)
    schedule = RowReduction(tuple(rows), inner, row_loads, loads, vectors, tuple(stages), stores)
    what = ", then ".join(f"{s.op} over `{inner.var}`" for s in stages)
    return Fit(schedule, (), f"every reduction runs over the whole row: {what}")


def expand_softmax(e: Expr) -> Expr:
    """softmax_l(z | p) = if p then exp(z_l - m) / Σ_{l | p} exp(z_l - m) else 0, with m = Max_{l | p} z_l."""

    def rule(s: Expr) -> Expr:
        if not isinstance(s, Softmax):
            return s
        top = Reduce("Max", s.var, s.extent, s.visible, s.score)
        weight: Expr = Call("exp", (Bin("-", s.score, top, Sort.REAL),))
        share = Bin("/", weight, Reduce("Σ", s.var, s.extent, s.visible, weight), Sort.REAL)
        return share if s.visible is None else Select(s.visible, share, ZERO, Sort.REAL)

    return bottom_up(e, rule)


def reciprocal(e: Expr, rows: set[str], inner: str) -> Expr:
    """Divides once a row, not once an element: x / r becomes x · (1 / r) where r is the same in the whole row."""

    def rule(b: Expr) -> Expr:
        match b:
            case Bin("/", left, right) if (
                right != ONE and left != ONE and _per_row(right, rows) and not _per_row(left, rows)
            ):
                return Bin("·", left, Bin("/", ONE, right, Sort.REAL), Sort.REAL)
        return b

    return bottom_up(e, rule)


def _per_row(e: Expr, rows: set[str]) -> bool:
    """Whether `e` is one value a row that costs a reduction."""
    return set(free_vars(e)) <= rows and any(isinstance(n, Reduce) for n in walk(e))


class _Stages:
    """Takes reductions out, innermost first."""

    def __init__(self, rows: set[str], inner: str, extent: Expr) -> None:
        self.rows, self.inner, self.extent = rows, inner, extent
        self.stages: list[Stage] = []
        self.seen: dict[Expr, str] = {}

    def __call__(self, e: Expr) -> Expr:
        e = rebuild(e, self)
        if not isinstance(e, Reduce):
            return e
        if e.extent != self.extent:
            raise NoFit(f"`{e.op}_{e.var}` does not run over the row")
        if not set(free_vars(e)) <= self.rows | set(self.seen.values()):
            raise NoFit(f"`{e.op}_{e.var}` depends on `{self.inner}`")
        body = substitute(e.body, {e.var: Var(self.inner)})
        where = None if e.where is None else substitute(e.where, {e.var: Var(self.inner)})
        if e.op not in ("Σ", "Max"):
            raise NoFit(f"`{e.op}` over a row has no kernel yet")
        key = Reduce(e.op, self.inner, e.extent, where, body)
        if key not in self.seen:
            name = f"r{len(self.seen) + 1}"
            self.seen[key] = name
            self.stages.append(Stage(name, e.op, body, Var(f"{name}_raw", Sort.REAL), where))
        return Var(self.seen[key], Sort.REAL)


def _finish(stages: list[Stage], values: list[Expr], rows: set[str]) -> tuple[list[Stage], list[Expr]]:
    """What follows from a stage alone is computed once a row, in its `finish`."""
    done: list[Stage] = []
    for n, stage in enumerate(stages):
        later = [s.map for s in stages[n + 1 :]] + values
        tails = {t for e in later for t in _tails(e, stage.name, rows)}
        finish = stage.finish
        if len(tails) == 1:
            (tail,) = tails
            finish = _replace(tail, Var(stage.name, Sort.REAL), Var(stage.raw, Sort.REAL))
            swap = _swapper(tail, Var(stage.name, Sort.REAL))
            stages[n + 1 :] = [replace(s, map=swap(s.map)) for s in stages[n + 1 :]]
            values = [swap(v) for v in values]
        done.append(replace(stage, finish=finish))
    return done, values


def _tails(e: Expr, name: str, rows: set[str]) -> list[Expr]:
    """The largest subexpressions of `e` that depend on the stage `name` and on rows only."""
    names = free_vars(e)
    if name not in names:
        return []
    if set(names) <= rows | {name} and e.sort is Sort.REAL:
        return [e]
    return [t for c in children(e) for t in _tails(c, name, rows)]


def _swapper(old: Expr, new: Expr) -> Callable[[Expr], Expr]:
    return lambda e: _replace(e, old, new)


def _replace(e: Expr, old: Expr, new: Expr) -> Expr:
    return new if e == old else rebuild(e, lambda c: _replace(c, old, new))


def _split(found: tuple[Access, ...], rows: set[str], inner: str) -> tuple[tuple[Access, ...], ...]:
    scalars: list[Access] = []
    loads: list[Access] = []
    vectors: list[Access] = []
    for access in found:
        names = set(free_vars_of(access))
        known = {a.name for a in scalars}
        if inner not in names and names <= rows | known:
            scalars.append(access)
        elif names == {inner}:
            vectors.append(access)
        else:
            loads.append(access)
    return tuple(scalars), tuple(loads), tuple(vectors)
