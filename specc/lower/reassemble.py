"""The slots of a schedule put together again: the formula that a kernel computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from specc.kernels import (
    Access,
    Attention,
    Contraction,
    HeadMap,
    Pointwise,
    Recurrent,
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
    fresh,
    rebuild,
    substitute,
)
from specc.passes.rewrite import bottom_up
from specc.passes.simplify import identities

Values = dict[str, Expr]


def reassemble(formula: Formula, schedule: Schedule, tables: tuple[Table, ...]) -> Formula:
    """What `schedule` computes, over the operands of `formula` and the tables as float64 inputs. The parts of a
    recurrence are products that its step was made of, so that it stands as it is."""
    reads = Reads({t.name: t.sort for t in formula.inputs})
    match schedule:
        case Pointwise():
            values = _pointwise(schedule, reads)
        case RowReduction():
            values = _rows(schedule, reads)
        case Contraction():
            values = {schedule.store.operand: _contraction(schedule, reads)}
        case Attention():
            values = {schedule.store.operand: _attention(schedule, reads)}
        case Recurrent():
            return formula
    extra = tuple(FormulaTensor(t.name, (_number(t.extent),)) for t in tables)
    equations = tuple(FormulaEquation(q.tensor, q.indices, values[q.tensor.name]) for q in formula.equations)
    return Formula(formula.op, (*formula.inputs, *extra), equations, (), formula.lead)


def put_back(e: Expr, values: Values) -> Expr:
    """Replaces the names of accesses and stages by what they stand for."""
    if isinstance(e, Var) and e.name in values:
        return values[e.name]
    return rebuild(e, lambda c: put_back(c, values))


class Reads:
    """Makes element reads of accesses again."""

    def __init__(self, sorts: Mapping[str, Sort]) -> None:
        self.sorts = sorts

    def __call__(self, accesses: Iterable[Access], known: Values | None = None) -> Values:
        """Name to Load, for accesses in order (later ones may be placed by earlier ones)."""
        values = dict(known or {})
        for a in accesses:
            values[a.name] = self.load(a, values)
        return values

    def load(self, a: Access, values: Values | None = None) -> Load:
        indices = tuple(put_back(i, values or {}) for i in a.indices)
        return Load(a.operand, indices, self.sorts.get(a.operand, Sort.REAL))


def _pointwise(p: Pointwise, reads: Reads) -> Values:
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
    back = Bin("-", Var(var), _number(low), Sort.INDEX)
    return bottom_up(substitute(e, {var: back}), identities)


def _select(pieces: list[tuple[int, int, Expr]], var: str) -> Expr:
    out = pieces[-1][2]
    for _, high, expr in reversed(pieces[:-1]):
        out = Select(Cmp("<", Var(var), _number(high)), expr, out, Sort.REAL)
    return out


def _rows(r: RowReduction, reads: Reads) -> Values:
    values = reads((*r.row_loads, *r.loads, *r.vectors))
    taken = {a.var for a in (*r.rows, r.inner)}
    for number, stage in enumerate(r.stages, 1):
        index: Values = {r.inner.var: Var(fresh(f"j{number}", taken))}
        body = substitute(put_back(stage.map, values), index)
        where = None if stage.where is None else substitute(put_back(stage.where, values), index)
        raw = Reduce(stage.op, fresh(f"j{number}", taken), r.inner.extent, where, body)
        values[stage.name] = put_back(stage.finish, {**values, stage.raw: raw})
    return {s.operand: put_back(s.value, values) for s in r.stores}


def _contraction(c: Contraction, reads: Reads) -> Expr:
    a, b = put_back(c.a, reads(c.a_loads)), put_back(c.b, reads(c.b_loads))
    total = Reduce("Σ", c.inner.var, c.inner.extent, None, Bin("·", a, b, Sort.REAL))
    return put_back(c.store.value, {**reads(c.loads), c.accumulator: total})


def _attention(a: Attention, reads: Reads) -> Expr:
    kv: Values = {a.kv_head: _kv_head(Var(a.head.var), a.head_map)}
    rows = reads(a.row_loads)
    q, k, v = (substitute(reads.load(x), kv) for x in (a.q, a.k, a.v))
    dot = Reduce("Σ", a.inner.var, a.inner.extent, None, Bin("·", q, k, Sort.REAL))
    visible = None if a.visible is None else put_back(a.visible, rows)
    weight: Expr = Softmax(a.keys.var, a.keys.extent, put_back(a.score, {**rows, a.dot: dot}), visible)
    if a.round_probabilities:
        weight = Rounded(weight, a.probability_role)
    total = Reduce("Σ", a.keys.var, a.keys.extent, None, Bin("·", weight, v, Sort.REAL))
    return put_back(a.store.value, {**rows, a.accumulator: total})


def _kv_head(head: Expr, m: HeadMap) -> Expr:
    """The KV head of a query head: runs of heads share one (`outer` = `group`), or every `step`-th does."""
    if m.kv_heads == 1:
        return _number(0)
    if m.group == 1 or m.step == 1:
        return bottom_up(Bin("//", head, _number(m.outer), Sort.INDEX), identities)
    return Bin("%", head, _number(m.step), Sort.INDEX)


def _number(n: int) -> Num:
    return Num(Fraction(n), Sort.INDEX)
