"""Row reduction: stages of (map, Σ or Max, finish) over a row that stays on chip, then the results."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from specc.kernels import Access, Axis, RowReduction, Stage, Store
from specc.lower.access import Reader, depends_on
from specc.lower.draft import Fit, NoFit, rows_and_inner, static
from specc.lower.names import Names, names_of
from specc.lower.tabulate import Tabulator
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
from specc.passes.rewrite import bottom_up, exchange

ONE, ZERO = Num(Fraction(1)), Num(Fraction(0))


def row_reduction(formula: Formula) -> Fit:
    """Raises NoFit when a reduction depends on the last axis of the results or runs over another extent. A result may
    lack that axis: it is one value a row."""
    formula, rows, inner = rows_and_inner(formula)
    if not any(isinstance(n, Reduce | Softmax) for q in formula.equations for n in walk(q.expr)):
        raise NoFit("it has no reduction")
    length = static(inner.extent, f"the row `{inner.var}`")
    row_vars, names = {a.var for a in rows}, names_of(formula)
    builder = _Stages(row_vars, inner, names)
    values = [builder(reciprocal(expand_softmax(q.expr), row_vars, inner.var)) for q in formula.equations]
    stages, values = _finish(builder.stages, values, row_vars)
    tables = Tabulator(names)
    lengths = {inner.var: length}
    stages = [replace(s, map=tables(s.map, lengths)) for s in stages]
    values = [tables(v, lengths) for v in values]
    axes = {a.var: a.extent for a in (*rows, inner)}
    read = Reader(formula, names, axes, inner.var, late={n for s in stages for n in (s.name, s.raw)})
    stages = [_read_stage(s, read) for s in stages]
    stores = tuple(
        Store(q.tensor.name, tuple(Var(i) for i in q.indices), read(v))
        for q, v in zip(formula.equations, values, strict=True)
    )
    row_loads, loads, vectors = _split(read.accesses, row_vars, inner.var)
    schedule = RowReduction(rows, inner, row_loads, loads, vectors, tuple(stages), stores)
    what = ", then ".join(f"{s.op} over `{inner.var}`" for s in stages)
    return Fit(schedule, tuple(tables.tables), f"every reduction runs over the whole row: {what}")


def _read_stage(s: Stage, read: Reader) -> Stage:
    where = None if s.where is None else read(s.where)
    return replace(s, map=read(s.map, lazy=where), finish=read(s.finish), where=where)


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

    def __init__(self, rows: set[str], inner: Axis, names: Names) -> None:
        self.rows, self.inner, self.names = rows, inner, names
        self.stages: list[Stage] = []
        self.seen: dict[Expr, str] = {}

    def __call__(self, e: Expr) -> Expr:
        e = rebuild(e, self)
        if not isinstance(e, Reduce):
            return e
        self._check(e)
        new: dict[str, Expr] = {e.var: Var(self.inner.var)}
        where = None if e.where is None else substitute(e.where, new)
        key = Reduce(e.op, self.inner.var, e.extent, where, substitute(e.body, new))
        if key not in self.seen:
            name = self.names.stage(f"r{len(self.seen) + 1}")
            self.seen[key] = name
            self.stages.append(Stage(name, e.op, key.body, Var(f"{name}_raw", Sort.REAL), where))
        return Var(self.seen[key], Sort.REAL)

    def _check(self, e: Reduce) -> None:
        what = f"`{e.op}_{e.var}`"
        if e.extent != self.inner.extent:
            raise NoFit(f"{what} does not run over the row, `{self.inner.var}`")
        others = set(free_vars(e)) - self.rows - set(self.seen.values())
        if others:
            listed = ", ".join(f"`{n}`" for n in sorted(others))
            raise NoFit(f"{what} depends on {listed}, so it is not one value a row")
        if e.op not in ("Σ", "Max"):
            raise NoFit(f"{what} is no Σ and no Max")


def _finish(stages: list[Stage], values: list[Expr], rows: set[str]) -> tuple[list[Stage], list[Expr]]:
    """What follows from a stage alone is computed once a row, in its `finish`."""
    done: list[Stage] = []
    for n, stage in enumerate(stages):
        rest = stages[n + 1 :]
        later = [e for s in rest for e in (s.map, s.where) if e is not None] + values
        known = rows | {s.name for s in done}
        tails = list(dict.fromkeys(t for e in later for t in _tails(e, stage.name, known)))
        finish = stage.finish
        if len(tails) == 1:
            name = Var(stage.name, Sort.REAL)
            finish = exchange(tails[0], name, Var(stage.raw, Sort.REAL))
            stages[n + 1 :] = [_exchange_in(s, tails[0], name) for s in rest]
            values = [exchange(v, tails[0], name) for v in values]
        done.append(replace(stage, finish=finish))
    return done, values


def _exchange_in(s: Stage, old: Expr, new: Expr) -> Stage:
    return replace(s, map=exchange(s.map, old, new), where=s.where and exchange(s.where, old, new))


def _tails(e: Expr, name: str, known: set[str]) -> list[Expr]:
    """The largest subexpressions of `e` that depend on the stage `name`, and else on rows and earlier stages only."""
    names = free_vars(e)
    if name not in names:
        return []
    if set(names) <= known | {name} and e.sort is Sort.REAL:
        return [e]
    return [t for c in children(e) for t in _tails(c, name, known)]


def _split(found: tuple[Access, ...], rows: set[str], inner: str) -> tuple[tuple[Access, ...], ...]:
    """Reads of the row alone, of the row and the inner index, and of the inner index alone. What places a read of the
    row stands before it among the loads."""
    scalars: list[Access] = []
    loads: list[Access] = []
    vectors: list[Access] = []
    places = {n for a in found for n in depends_on(a)}
    for access in found:
        names = set(depends_on(access))
        if names <= rows | {a.name for a in scalars}:
            scalars.append(access)
        elif names == {inner} and access.name not in places:
            vectors.append(access)
        else:
            loads.append(access)
    return tuple(scalars), tuple(loads), tuple(vectors)
