"""Rewrites of a formula before it is printed: head maps become repeated tensors, cases on an index become segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from specc.ops import (
    Apply,
    Bin,
    Expr,
    Formula,
    FormulaEquation,
    FormulaTensor,
    Load,
    Num,
    Recurrence,
    Reduce,
    Select,
    Softmax,
    Var,
    children,
    free_vars,
    fresh,
    rebuild,
    substitute,
    walk,
)  # fmt: skip
from specc.targets.torch.affine import decide, integer, linear, normal, plus, scale

MOST_SEGMENTS = 8
LONGEST_AXIS = 1 << 19


@dataclass(frozen=True)
class Repeat:
    """Axis `axis` of `tensor` is read at `index // times` everywhere: each of its rows stands for `times` indices."""

    tensor: str
    axis: int
    times: Expr


def map_exprs(formula: Formula, f: Callable[[Expr], Expr]) -> Formula:
    equations = tuple(replace(q, expr=f(q.expr)) for q in formula.equations)
    recs = tuple(replace(r, init=f(r.init), step=f(r.step)) for r in formula.recs)
    return replace(formula, equations=equations, recs=recs)


def loads(formula: Formula) -> Iterator[tuple[Load, dict[str, Expr]]]:
    """Every read of an operand with the extents of the variables around it."""
    for r in formula.recs:
        yield from _loads(r.init, dict(r.indices))
        yield from _loads(r.step, dict(r.indices))
    for q in formula.equations:
        yield from _loads(q.expr, dict(zip(q.indices, q.tensor.dims, strict=True)))


def _loads(e: Expr, extents: dict[str, Expr]) -> Iterator[tuple[Load, dict[str, Expr]]]:
    if isinstance(e, Load):
        yield e, extents
    if isinstance(e, Reduce | Softmax):
        extents = {**extents, e.var: e.extent}
    for child in children(e):
        yield from _loads(child, extents)


def plain(formula: Formula) -> Formula:
    """The formula in which no function that a call names reduces, and no reduction runs over a variable that is in use
    where it stands."""
    formula = map_exprs(formula, _inlined)
    equations = tuple(replace(q, expr=_unshadowed(q.expr, frozenset(q.indices))) for q in formula.equations)
    recs: list[Recurrence] = []
    for r in formula.recs:
        scope = frozenset(v for v, _ in r.indices)
        recs.append(replace(r, init=_unshadowed(r.init, scope), step=_unshadowed(r.step, scope)))
    return replace(formula, equations=equations, recs=tuple(recs))


def _inlined(e: Expr) -> Expr:
    if isinstance(e, Apply) and _reduces(e.fn.computed or e.fn.body):
        body = e.fn.computed or e.fn.body
        return _inlined(substitute(body, {p.name: a for p, a in zip(e.fn.params, e.args, strict=True)}))
    return rebuild(e, _inlined)


def _reduces(e: Expr) -> bool:
    return any(isinstance(x, Reduce) or isinstance(x, Apply) and _reduces(x.fn.computed or x.fn.body) for x in walk(e))


def _unshadowed(e: Expr, scope: frozenset[str]) -> Expr:
    if isinstance(e, Softmax):
        return rebuild(e, lambda x: _unshadowed(x, scope | {e.var}))
    if not isinstance(e, Reduce):
        return rebuild(e, lambda x: _unshadowed(x, scope))
    var = fresh(e.var, scope)
    where = None if e.where is None else substitute(e.where, {e.var: Var(var)})
    moved = replace(e, var=var, where=where, body=substitute(e.body, {e.var: Var(var)})) if var != e.var else e
    return rebuild(moved, lambda x: _unshadowed(x, scope | {var}))


def spread_heads(formula: Formula) -> tuple[Formula, tuple[Repeat, ...]]:
    """The formula with every head map `h // G` that repeats a whole axis taken out of the indices."""
    formula = map_exprs(formula, normal)
    repeats: list[Repeat] = []
    for t in formula.inputs:
        for axis, dim in enumerate(t.dims):
            repeat = _repeat(formula, t, axis, dim)
            if repeat is not None:
                formula = _spread(formula, repeat[0], repeat[1])
                repeats.append(repeat[0])
    return formula, tuple(repeats)


def _repeat(formula: Formula, t: FormulaTensor, axis: int, dim: Expr) -> tuple[Repeat, Expr] | None:
    found: list[tuple[Expr, Expr]] = []
    for load, extents in loads(formula):
        if load.tensor != t.name:
            continue
        match load.indices[axis]:
            case Bin("//", Var(name), times) if _covers(extents[name], dim, times):
                found.append((times, extents[name]))
            case _:
                return None
    if not found or any(f != found[0] for f in found):
        return None
    return Repeat(t.name, axis, found[0][0]), found[0][1]


def _covers(extent: Expr, dim: Expr, times: Expr) -> bool:
    """Whether dim · times = extent, given that the op requires dim to divide extent."""
    if isinstance(times, Num):
        return linear(extent) == scale(linear(dim), int(times.value))
    return times == Bin("//", extent, dim, times.sort)


def _spread(formula: Formula, repeat: Repeat, extent: Expr) -> Formula:
    def change(e: Expr) -> Expr:
        e = rebuild(e, change)
        if isinstance(e, Load) and e.tensor == repeat.tensor:
            index = e.indices[repeat.axis]
            assert isinstance(index, Bin)
            return replace(e, indices=(*e.indices[: repeat.axis], index.left, *e.indices[repeat.axis + 1 :]))
        return e

    def wider(t: FormulaTensor) -> FormulaTensor:
        if t.name != repeat.tensor:
            return t
        return replace(t, dims=(*t.dims[: repeat.axis], extent, *t.dims[repeat.axis + 1 :]))

    return replace(map_exprs(formula, change), inputs=tuple(wider(t) for t in formula.inputs))


def gathered(formula: Formula, tensor: str) -> bool:
    """Whether the tensor is read only where integers of another operand point, so that most of it may be left alone."""
    reads = [e for e, _ in loads(formula) if e.tensor == tensor]
    return bool(reads) and all(any(isinstance(x, Load) for i in e.indices for x in walk(i)) for e in reads)


@dataclass(frozen=True)
class Segment:
    """The part of an equation for `low <= var < low + extent`, with `var` counted from 0."""

    extent: Expr
    expr: Expr


def segments(q: FormulaEquation) -> tuple[str, tuple[Segment, ...]] | None:
    """The equation cut along the first index on whose constant ranges its cases depend; None when there is none."""
    for name, dim in zip(q.indices, q.tensor.dims, strict=True):
        if not isinstance(dim, Num) or dim.value > LONGEST_AXIS:
            continue
        conditions = _conditions(q.expr, name)
        if not conditions or any(isinstance(e, Softmax) and e.var == name for e in walk(q.expr)):
            continue
        cuts = _cuts(conditions, name, int(dim.value))
        if len(cuts) <= MOST_SEGMENTS:
            ends = (*cuts[1:], int(dim.value))
            parts = [_segment(q.expr, name, lo, hi, conditions) for lo, hi in zip(cuts, ends, strict=True)]
            return name, tuple(parts)
    return None


def _conditions(e: Expr, name: str) -> tuple[Expr, ...]:
    found = [x.cond for x in walk(e) if isinstance(x, Select) and free_vars(x.cond) == (name,)]
    return tuple(c for c in found if _decidable(c, name))


def _decidable(cond: Expr, name: str) -> bool:
    try:
        decide(cond, {name: 0})
    except ValueError:
        return False
    return True


def _cuts(conditions: tuple[Expr, ...], name: str, n: int) -> list[int]:
    cuts: list[int] = []
    last: list[bool] | None = None
    for at in range(n):
        truth = [decide(c, {name: at}) for c in conditions]
        if truth != last:
            cuts.append(at)
        last = truth
        if len(cuts) > MOST_SEGMENTS:
            break
    return cuts or [0]


def _segment(e: Expr, name: str, low: int, high: int, conditions: tuple[Expr, ...]) -> Segment:
    def resolve(x: Expr) -> Expr:
        if isinstance(x, Select) and x.cond in conditions:
            return resolve(x.then if decide(x.cond, {name: low}) else x.other)
        return rebuild(x, resolve)

    moved = substitute(resolve(e), {name: plus(Var(name), integer(low))}) if low else resolve(e)
    return Segment(integer(high - low), normal(moved))
