"""The slots of a schedule put together again: the formula that a kernel computes."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from specc.ir import Role
from specc.kernels import (
    Access,
    Attention,
    Contraction,
    Pointwise,
    RowReduction,
    Schedule,
    Store,
    Table,
)
from specc.ops import (
    Bin,
    Cmp,
    Expr,
    Formula,
    FormulaEquation,
    FormulaTensor,
    Load,
    Num,
    Reduce,
    Rounded,
    Select,
    Softmax,
    Sort,
    Var,
    rebuild,
    substitute,
)
from specc.passes.rewrite import bottom_up
from specc.passes.simplify import identities


def reassemble(formula: Formula, schedule: Schedule, tables: tuple[Table, ...]) -> Formula:
    """What `schedule` computes, over the operands of `formula` and the tables as float64 inputs."""
    match schedule:
        case Pointwise():
            values = _pointwise(schedule)
        case RowReduction():
            values = _rows(schedule)
        case Contraction():
            values = {schedule.store.operand: _contraction(schedule)}
        case Attention():
            values = {schedule.store.operand: _attention(schedule)}
    extra = tuple(FormulaTensor(t.name, (Num(Fraction(t.extent), Sort.INDEX),)) for t in tables)
    equations = tuple(FormulaEquation(q.tensor, q.indices, values[q.tensor.name]) for q in formula.equations)
    return Formula(formula.op, (*formula.inputs, *extra), equations, (), formula.lead)


def put_back(e: Expr, values: dict[str, Expr]) -> Expr:
    """Replaces the names of accesses and stages by what they stand for."""
    if isinstance(e, Var) and e.name in values:
        return values[e.name]
    return rebuild(e, lambda c: put_back(c, values))


def reads(accesses: Iterable[Access], known: dict[str, Expr] | None = None) -> dict[str, Expr]:
    """Name to Load, for accesses in order (later ones may be indexed by earlier ones)."""
    values = dict(known or {})
    for a in accesses:
        sort = Sort.REAL
        values[a.name] = Load(a.operand, tuple(put_back(i, values) for i in a.indices), sort)
    return values


def _pointwise(p: Pointwise) -> dict[str, Expr]:
    pieces: dict[str, list[tuple[int, int, Expr]]] = {}
    for strip in p.strips:
        values = reads((*p.row_loads, *strip.loads))
        for store in strip.stores:
            low = _low(store, p.inner)
            expr = _shift(put_back(store.value, values), p.inner, low)
            pieces.setdefault(store.operand, []).append((low, low + strip.length, expr))
    return {name: _select(sorted(found, key=lambda f: f[0]), p.inner) for name, found in pieces.items()}


def _low(store: Store, inner: str) -> int:
    match store.indices[-1]:
        case Bin("+", Var(name), Num(c)) if name == inner:
            return int(c)
    return 0


def _shift(e: Expr, var: str, low: int) -> Expr:
    if low == 0:
        return e
    back = Bin("-", Var(var), Num(Fraction(low), Sort.INDEX), Sort.INDEX)
    return bottom_up(substitute(e, {var: back}), identities)


def _select(pieces: list[tuple[int, int, Expr]], var: str) -> Expr:
    out = pieces[-1][2]
    for _, high, expr in reversed(pieces[:-1]):
        out = Select(Cmp("<", Var(var), Num(Fraction(high), Sort.INDEX)), expr, out, Sort.REAL)
    return out


def _rows(r: RowReduction) -> dict[str, Expr]:
    values = reads((*r.row_loads, *r.loads, *r.vectors))
    for stage in r.stages:
        index = f"j{stage.name[1:]}"
        body = substitute(put_back(stage.map, values), {r.inner.var: Var(index)})
        where = stage.where and substitute(put_back(stage.where, values), {r.inner.var: Var(index)})
        raw = Reduce(stage.op, index, r.inner.extent, where, body)
        values[stage.name] = put_back(stage.finish, {**values, stage.raw: raw})
    return {s.operand: put_back(s.value, values) for s in r.stores}


def _contraction(c: Contraction) -> Expr:
    a, b = put_back(c.a, reads(c.a_loads)), put_back(c.b, reads(c.b_loads))
    total = Reduce("Σ", c.inner.var, c.inner.extent, None, Bin("·", a, b, Sort.REAL))
    return put_back(c.store.value, {**reads(c.loads), c.accumulator: total})


def _attention(a: Attention) -> Expr:
    m = a.head_map
    kv: Expr = _kv_head(Var(a.head.var), m.group, m.outer, m.step, m.kv_heads)
    rows = reads(a.row_loads)
    q, k, v = (substitute(Load(x.operand, x.indices), {a.kv_head: kv}) for x in (a.q, a.k, a.v))
    dot = Reduce("Σ", a.inner.var, a.inner.extent, None, Bin("·", q, k, Sort.REAL))
    visible = None if a.visible is None else put_back(a.visible, rows)
    weight: Expr = Softmax(a.keys.var, a.keys.extent, put_back(a.score, {**rows, a.dot: dot}), visible)
    if a.round_probabilities:
        weight = Rounded(weight, Role.CACHE)
    total = Reduce("Σ", a.keys.var, a.keys.extent, None, Bin("·", weight, v, Sort.REAL))
    return put_back(a.store.value, {**rows, a.accumulator: total})


def _kv_head(head: Expr, group: int, outer: int, step: int, kv_heads: int) -> Expr:
    """The KV head of a query head: heads are `outer·kv + step·member`."""
    if outer == group * step or kv_heads == 1:
        divided = Bin("//", head, Num(Fraction(max(outer, 1)), Sort.INDEX), Sort.INDEX)
        return divided if kv_heads > 1 else _ZERO
    inner = Bin("%", head, Num(Fraction(step), Sort.INDEX), Sort.INDEX)
    return bottom_up(Bin("//", inner, Num(Fraction(outer), Sort.INDEX), Sort.INDEX), identities)


_ZERO = Num(Fraction(0), Sort.INDEX)
