"""Bounds of linear recurrences. Each stretch of steps has an error of its own; what it does to later values is carried
by the exact transitions, from the last step back (see docs/evidence.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specc.bounds.arithmetic import NotSupported
from specc.bounds.evaluate import Evaluator
from specc.bounds.formats import Array
from specc.bounds.scope import Scope, gather
from specc.bounds.values import EXACT, Val, full
from specc.lower.draft import NoFit
from specc.lower.linear import ONE, LinearState, linear_state
from specc.lower.recurrence import StateRead, state_read
from specc.ops import Expr, Formula, FormulaEquation, Load, Recurrence, State, Var, rebuild
from specc.passes.rewrite import exchange

STATE, TOTAL = "(state)", "(total)"
Positions = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Parts:
    """A recurrence over the chosen heads (flattened, axis h), values a, keys b and all steps i, as numbers: `values`
    by part of `LinearState`, and `queries` of the results. `first` is [h, a, b]."""

    rec: Recurrence
    reads: tuple[StateRead, ...]
    found: LinearState
    evaluator: Evaluator
    positions: Positions
    values: Mapping[str, Val]
    queries: tuple[Val | None, ...]
    scales: tuple[Val | None, ...]
    first: Val
    shared: bool
    """What is taken goes along the same vectors as what is added."""


@dataclass(frozen=True)
class Stretch:
    """Steps `start` to `end` - 1 that are worked out together from an exact state: the error of the state after them
    [h, a, b], and of the sum of each reading [h, i, a]."""

    start: int
    end: int
    state: Array
    sums: tuple[Array | None, ...]


Local = Callable[[Parts, Array], list[Stretch]]
"""The stretches of all steps; takes the exact states [steps + 1, h, a, b]."""


def recurrent(formula: Formula, evaluator: Evaluator, at: Mapping[str, Positions], local: Local) -> dict[str, Any]:
    """(value, error) of each result over its chosen box. Raises NotSupported for a recurrence of another form."""
    (rec,) = formula.recs
    try:
        reads = [state_read(q, rec) for q in formula.equations]
        found = linear_state(rec, next((r.place for r in reads if r.place is not None), None))
    except NoFit as no:
        raise NotSupported(f"{formula.op} is a recurrence without a bound: {no}") from no
    boxes = {q.tensor.name: _box(q, evaluator, at) for q in formula.equations}
    positions = _positions(found, evaluator, reads, boxes)
    parts = _parts(rec, found, evaluator, reads, positions)
    states = _states(parts)
    stretches = local(parts, states)
    sums, last = _propagated(parts, stretches)
    results: dict[str, Any] = {}
    for n, r in enumerate(reads):
        whole = (states[-1], last) if r.place is None else _total(parts, n, states, sums[n], stretches)
        results[r.equation.tensor.name] = _result(r, whole, positions, boxes, evaluator, found)
    return results


def _box(q: FormulaEquation, evaluator: Evaluator, at: Mapping[str, Positions]) -> dict[str, NDArray[np.int64]]:
    chosen = at.get(q.tensor.name, {})
    extents = {v: evaluator.extent(d, Scope({})) for v, d in zip(q.indices, q.tensor.dims, strict=True)}
    return {v: np.asarray(chosen[v] if v in chosen else np.arange(n), np.int64) for v, n in extents.items()}


def _positions(
    found: LinearState, evaluator: Evaluator, reads: list[StateRead], boxes: Mapping[str, Positions]
) -> dict[str, NDArray[np.int64]]:
    """All steps and keys, and the heads and values that some result wants."""
    wanted: dict[str, list[NDArray[np.int64]]] = {}
    for r in reads:
        for var, places in boxes[r.equation.tensor.name].items():
            name = r.names[var]
            assert isinstance(name, Var)
            wanted.setdefault(name.name, []).append(places)
    every = {a.var: np.arange(evaluator.extent(a.extent, Scope({}))) for a in (found.time, found.key)}
    chosen = (*found.heads, found.value)
    return every | {a.var: np.unique(np.concatenate(wanted[a.var])) for a in chosen}


def _parts(
    rec: Recurrence, found: LinearState, evaluator: Evaluator, reads: list[StateRead], positions: Positions
) -> Parts:
    scope = Scope(positions)
    heads = tuple(a.var for a in found.heads)
    t, a, b = found.time.var, found.value.var, found.key.var

    def part(e: Expr, axes: str, *last: str) -> Val:
        order = ((t,) if "i" in axes else ()) + heads + last
        v = full(evaluator.arithmetic.to_accumulator(evaluator.real(e, scope)), order, scope.shape(order))
        lengths = [len(positions[x]) for x in last]
        steps = [len(positions[t])] if "i" in axes else []
        shape = (*steps, prod(len(positions[h]) for h in heads), *lengths)
        order_out = {"ih": (1, 0), "ihb": (1, 0, 2), "iha": (1, 0, 2), "hab": (0, 1, 2)}[axes]
        names = tuple(axes[n] for n in order_out)
        error = EXACT if v.certain else v.error.reshape(shape).transpose(order_out)
        return Val(names, v.value.reshape(shape).transpose(order_out), error)

    vectors = {"probe": found.probe, "erase": found.erase, "write": found.write}
    values = {n: part(e, "ihb", b) for n, e in vectors.items()} | {"added": part(found.added, "iha", a)}
    values |= {"decay": part(found.decay, "ih")} | ({} if found.rate is None else {"rate": part(found.rate, "ih")})
    return Parts(
        rec, tuple(reads), found, evaluator, positions, values,
        tuple(None if r.place is None else part(r.query, "ihb", b) for r in reads),
        tuple(None if r.place is None or r.scale == ONE else part(r.scale, "iha", a) for r in reads),
        part(found.first, "hab", a, b), found.erase == found.write,
    )  # fmt: skip


def _states(parts: Parts) -> Array:
    """The exact states, before the first step and after each: [steps + 1, h, a, b]."""
    v = {n: np.asarray(x.value) for n, x in parts.values.items()}
    state, steps = parts.first.value, v["decay"].shape[1]
    found = np.empty((steps + 1, *state.shape))
    found[0] = state
    with np.errstate(invalid="ignore", over="ignore"):
        for t in range(steps):
            if "rate" in v:
                held = np.einsum("hab,hb->ha", state, v["probe"][:, t]) * v["rate"][:, t, None]
                state = state - held[:, :, None] * v["erase"][:, t, None, :]
            given = v["added"][:, t, :, None] * v["write"][:, t, None, :]
            state = v["decay"][:, t, None, None] * state + given
            found[t + 1] = state
    return found


def _propagated(parts: Parts, stretches: list[Stretch]) -> tuple[list[Array | None], Array]:
    """What the errors of earlier stretches do to each reading [h, i, a], and of all of them to the last state.

    A vector on which a state is read, taken back through a step, is the vector on which the state before is read:
    state · λ after a step is that before it · decay·(λ - rate·probe·(erase · λ)), and what was added.
    """
    v = {n: np.asarray(x.value) for n, x in parts.values.items()}
    heads, steps, keys = v["probe"].shape
    values = parts.first.value.shape[1]
    sums = [None if q is None else np.zeros((heads, steps, values)) for q in parts.queries]
    last = np.zeros((heads, values, keys))
    ends = np.broadcast_to(np.eye(keys), (heads, keys, keys))
    seen = [None if q is None else np.zeros((heads, keys, steps)) for q in parts.queries]
    bounds = {s.end: s.state for s in stretches} | {0: np.broadcast_to(parts.first.error, parts.first.value.shape)}
    for t in range(steps, -1, -1):
        if t in bounds and np.any(bounds[t]):
            last += bounds[t] @ np.abs(ends)
            for total, back in zip(sums, seen, strict=True):
                if total is not None and back is not None:
                    total[:, t:] += (bounds[t] @ np.abs(back[:, :, t:])).transpose(0, 2, 1)
        if t == 0:
            break
        for back, q in zip(seen, parts.queries, strict=True):
            if back is not None and q is not None:
                back[:, :, t - 1] = q.value[:, t - 1]
                back[:, :, t - 1 :] = _back(v, t - 1, back[:, :, t - 1 :])
        ends = _back(v, t - 1, ends)
    return sums, last


def _back(v: Mapping[str, Array], t: int, vectors: Array) -> Array:
    """`vectors` [h, b, n], on which the state after step `t` is read, as those on which the state before it is."""
    out = vectors
    if "rate" in v:
        meets = np.einsum("hb,hbn->hn", v["erase"][:, t], vectors) * v["rate"][:, t, None]
        out = vectors - v["probe"][:, t, :, None] * meets[:, None, :]
    return np.asarray(v["decay"][:, t, None, None] * out)


def _total(parts: Parts, n: int, states: Array, earlier: Array | None, stretches: list[Stretch]) -> tuple[Array, Array]:
    """Value and error of the sum of reading `n` [h, i, a]."""
    query, scale = parts.queries[n], parts.scales[n]
    assert query is not None and earlier is not None
    value = np.einsum("ihab,hib->hia", states[1:], query.value)
    own = [s.sums[n] for s in stretches]
    local = np.concatenate([x for x in own if x is not None], axis=1) if own else np.zeros_like(value)
    if scale is None:
        return value, local + earlier
    return value * scale.value, local + earlier * np.abs(scale.value)


def _result(
    r: StateRead, whole: tuple[Array, Array], positions: Positions, boxes: Mapping[str, Positions],
    evaluator: Evaluator, found: LinearState,
) -> tuple[Array, Array]:  # fmt: skip
    """A result over its box, from the sum it reads [h, i, a], or from the last state [h, a, b]."""
    box = boxes[r.equation.tensor.name]
    heads = tuple(a.var for a in found.heads)
    last = (found.value.var, found.key.var) if r.place is None else (found.time.var, found.value.var)
    shape = tuple(len(positions[x]) for x in (*heads, *last))
    order = [(*heads, *last).index(_name(r.names[i])) for i in r.equation.indices]
    places = [np.searchsorted(positions[_name(r.names[i])], box[i]) for i in r.equation.indices]
    value, error = (x.reshape(shape).transpose(order)[np.ix_(*places)] for x in whole)
    if r.total is None or r.equation.expr == r.total:
        return value, error
    q = r.equation
    load = Load(TOTAL, tuple(Var(i) for i in q.indices))
    extents = tuple(evaluator.extent(d, Scope({})) for d in q.tensor.dims)
    numbers, errors = np.zeros(extents), np.zeros(extents)
    numbers[np.ix_(*(box[i] for i in q.indices))] = value
    errors[np.ix_(*(box[i] for i in q.indices))] = error
    inner = with_errors(evaluator, {TOTAL: numbers}, {TOTAL: errors})
    out = inner.arithmetic.to_accumulator(inner.real(exchange(q.expr, r.total, load), Scope(dict(box))))
    out = full(out, q.indices, value.shape)
    return np.array(out.value), np.array(out.error)


def _name(e: Expr) -> str:
    assert isinstance(e, Var)
    return e.name


@dataclass(frozen=True)
class _WithErrors(Evaluator):
    """Reads some tensors with an error of their own."""

    errors: Mapping[str, Array] | None = None

    def _load(self, e: Load, scope: Scope) -> Val:
        if self.errors is None or e.tensor not in self.errors:
            return super()._load(e, scope)
        indices = [self.index(i, scope) for i in e.indices]
        axes, value = gather(e.tensor, indices, self.tensors[e.tensor], scope)
        return Val(axes, value, gather(e.tensor, indices, self.errors[e.tensor], scope)[1])


def with_errors(evaluator: Evaluator, tensors: Mapping[str, Array], errors: Mapping[str, Array]) -> Evaluator:
    """`evaluator` with more tensors, those in `errors` uncertain by so much."""
    e = evaluator
    return _WithErrors(e.numerics, {**e.tensors, **tensors}, e.sizes, e.tables, e.follow, errors)


def step_by_step(parts: Parts, states: Array) -> list[Stretch]:
    """Each step alone, evaluated as its expression stands."""
    found, heads = parts.found, tuple(a.var for a in parts.found.heads)
    names = tuple(n for n, _ in parts.rec.indices)[1:]
    step = _as_load(parts.rec.step)
    every = tuple(parts.evaluator.extent(n, Scope({})) for _, n in parts.rec.indices[1:])
    box = np.ix_(*(parts.positions[n] for n in names))
    order = (*heads, found.value.var, found.key.var)
    lengths = tuple(len(parts.positions[n]) for n in order)
    turned = [order.index(n) for n in names]
    whole = np.zeros(every)

    def put(state: Array) -> Evaluator:
        whole[box] = state.reshape(lengths).transpose(turned)
        return replace(parts.evaluator, tensors={**parts.evaluator.tensors, STATE: whole})

    stretches = []
    for t in range(len(states) - 1):
        positions = {**parts.positions, found.time.var: np.array([t])}
        evaluator = put(states[t])
        out = evaluator.arithmetic.to_accumulator(evaluator.real(step, Scope(positions)))
        error = full(out, (found.time.var, *order), (1, *lengths)).error.reshape(states[t].shape)
        evaluator = put(states[t + 1])
        sums = tuple(None if r.total is None else _summed(r, evaluator, positions, found) for r in parts.reads)
        carried = [None if q is None else np.einsum("hab,hb->ha", error, np.abs(q.value[:, t])) for q in parts.queries]
        scaled = [
            None if c is None else (c if s is None else c * np.abs(s.value[:, t]))
            for c, s in zip(carried, parts.scales, strict=True)
        ]
        both = tuple(None if x is None or y is None else (x + y)[:, None] for x, y in zip(sums, scaled, strict=True))
        stretches.append(Stretch(t, t + 1, error, both))
    return stretches


def _summed(r: StateRead, evaluator: Evaluator, positions: Positions, found: LinearState) -> Array:
    """The error of the sum that a result reads, at one step [h, a]."""
    assert r.total is not None
    own = {i: positions[_name(r.names[i])] for i in r.equation.indices}
    back = {_name(r.names[i]): i for i in r.equation.indices}
    order = tuple(back[n] for n in (found.time.var, *(a.var for a in found.heads), found.value.var))
    shape = tuple(len(own[i]) for i in order)
    v = evaluator.arithmetic.to_accumulator(evaluator.real(_as_load(r.total), Scope(own)))
    return full(v, order, shape).error.reshape(-1, shape[-1])


def _as_load(e: Expr) -> Expr:
    out = rebuild(e, _as_load)
    return Load(STATE, out.indices[1:]) if isinstance(out, State) else out
