"""Recurrence: a matrix state with a transition of rank one, in chunks of steps that are worked out together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from specc.formula_text import expr_text
from specc.kernels import Access, Reading, Recurrent, Store
from specc.lower.access import Reader, depends_on
from specc.lower.draft import Fit, NoFit, static
from specc.lower.linear import LinearState, Term, has_state, linear_state, product, signed, summed_place, terms
from specc.lower.names import Names, names_of
from specc.ops import (
    Bin,
    Expr,
    Formula,
    FormulaEquation,
    Num,
    Recurrence,
    Reduce,
    Sort,
    State,
    Var,
    free_vars,
    substitute,
    walk,
)
from specc.passes.rewrite import bottom_up, exchange
from specc.passes.simplify import identities


def recurrence(formula: Formula) -> Fit:
    """Raises NoFit unless the formula is one recurrence that `linear_state` takes, read by sums over its keys at each
    step, or whole after the last one."""
    if len(formula.recs) != 1:
        raise NoFit("it has several recurrences")
    (rec,) = formula.recs
    readings = [state_read(q, rec) for q in formula.equations]
    found = linear_state(rec, next((r.place for r in readings if r.place is not None), None))
    filled = _Slots(formula, found)
    if any(r.place is not None and rec.indices[r.place + 1][0] != found.key.var for r in readings):
        raise NoFit("sums run over different axes of the state")
    schedule = filled.schedule(readings)
    rank = "a decay" if found.rate is None else "a transition of rank one"
    reason = f"a state that is linear in the one before, with {rank}: sums over `{found.key.var}`, chunks of steps"
    return Fit(schedule, (), reason)


@dataclass(frozen=True)
class StateRead:
    """How a result reads the state. `place`: the axis it sums over, None for the whole state after the last step.
    `names`: its index variables as those of the recurrence."""

    equation: FormulaEquation
    names: Mapping[str, Expr]
    place: int | None
    total: Reduce | None
    query: Expr
    scale: Expr


def state_read(q: FormulaEquation, rec: Recurrence) -> StateRead:
    """How `q` reads the state of `rec`. Raises NoFit where it is no sum at its own step, nor the last state."""
    (time, steps), *axes = rec.indices
    states = [n for n in walk(q.expr) if isinstance(n, State)]
    if len(states) != 1:
        raise NoFit(f"`{q.tensor.name}` does not read the state once")
    (state,) = states
    names: dict[str, Expr] = {}
    for index, name in zip(state.indices, (time, *(n for n, _ in axes)), strict=True):
        if isinstance(index, Var) and index.name in q.indices:
            names[index.name] = Var(name)
    if set(names) != set(q.indices):
        raise NoFit(f"`{q.tensor.name}` has an axis that the state does not have")
    end = bottom_up(Bin("-", steps, Num(Fraction(1), Sort.INDEX), Sort.INDEX), identities)
    if q.expr == state and state.indices[0] == end and len(names) == len(axes):
        return StateRead(q, names, None, None, q.expr, q.expr)
    totals = [n for n in walk(q.expr) if isinstance(n, Reduce) and has_state(n)]
    if len(totals) != 1 or state.indices[0] not in [Var(n) for n, v in names.items() if v == Var(time)]:
        raise NoFit(f"`{q.tensor.name}` is no sum over the state at its own step, nor the last state")
    return _sum(q, names, totals[0], tuple(n for n, _ in axes))


def _sum(q: FormulaEquation, names: Mapping[str, Expr], total: Reduce, axes: tuple[str, ...]) -> StateRead:
    found = terms(total)
    if len(found) != 1 or found[0].var is None:
        raise NoFit(f"`{expr_text(total)}` is no sum of products with the state")
    (t,) = found
    assert t.state is not None and t.var is not None
    renamed = substitute(t.state, names)
    assert isinstance(renamed, State)
    place = summed_place(Term(t.negative, t.factors, renamed, t.var, t.extent), axes)
    query = [f for f in t.factors if t.var in free_vars(f)]
    scale = signed(t.negative, product(f for f in t.factors if f not in query))
    vector = substitute(product(query), {**names, t.var: Var(axes[place or 0])})
    return StateRead(q, names, place, total, vector, substitute(scale, names))


class _Slots:
    """Makes the schedule of one kernel."""

    def __init__(self, formula: Formula, found: LinearState) -> None:
        self.found, self.names = found, _names(formula)
        axes = (found.time, *found.heads, found.value, found.key)
        static(found.key.extent, f"the axis `{found.key.var}` of keys")
        static(found.value.extent, f"the axis `{found.value.var}` of values")
        self.extents = {a.var: a.extent for a in axes}
        self.before = Reader(formula, self.names, self.extents)
        self.read = Reader(formula, self.names, self.extents)

    def schedule(self, readings: list[StateRead]) -> Recurrent:
        f, read = self.found, self.read
        first = self.before(f.first)
        parts = {n: read(getattr(f, n)) for n in ("decay", "probe", "erase", "added", "write")}
        rate = None if f.rate is None else read(f.rate)
        found = [self._reading(r) for r in readings if r.place is not None]
        last = next((self._store(r, Var(f.name, Sort.REAL)) for r in readings if r.place is None), None)
        self._check(read.accesses, (f.time.var, f.value.var, f.key.var))
        return Recurrent(
            f.time, f.heads, f.value, f.key, f.name, self.before.accesses, first, read.accesses,
            rate=rate, readings=tuple(found), last=last, **parts,
        )  # fmt: skip

    def _reading(self, r: StateRead) -> Reading:
        assert r.total is not None
        acc = self.names.internal("acc")
        result = product((r.scale, Var(acc, Sort.REAL)))
        whole = substitute(exchange(r.equation.expr, r.total, Var(acc, Sort.REAL)), r.names)
        return Reading(self.read(r.query), acc, self._store(r, self.read(exchange(whole, Var(acc, Sort.REAL), result))))

    def _store(self, r: StateRead, value: Expr) -> Store:
        q = r.equation
        return Store(q.tensor.name, tuple(r.names[i] for i in q.indices), value)

    def _check(self, accesses: tuple[Access, ...], inner: tuple[str, str, str]) -> None:
        """Every vector runs over time and keys, so that chunks of it are matrices."""
        f = self.found
        vectors = [f.write, *((f.probe, f.erase) if f.rate is not None else ())]
        if any(not {f.time.var, f.key.var} <= set(free_vars(e)) for e in vectors):
            raise NoFit("a vector of keys is the same at every step")
        for a in accesses:
            if a.data_index or {f.value.var, f.key.var} <= set(depends_on(a)):
                raise NoFit(f"`{a.operand}` is read for each value and key")


def _names(formula: Formula) -> Names:
    names = names_of(formula)
    for rec in formula.recs:
        names.taken |= {n for n, _ in rec.indices} | {rec.name}
        for e in (rec.init, rec.step):
            names.taken |= {n.name for n in walk(e) if isinstance(n, Var)}
            names.taken |= {n.var for n in walk(e) if isinstance(n, Reduce)}
    return names
