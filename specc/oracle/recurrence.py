"""Recurrences, one step after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from specc.ops import Recurrence, Reduce, State, Var, walk
from specc.oracle.arrays import Array, Values, checked, gather, scalar
from specc.oracle.scope import Scope, Table

if TYPE_CHECKING:
    from specc.oracle.evaluate import Evaluator

TIME = ""
"""The axis of a table that counts time; no index has this name."""


def state(ev: Evaluator, e: State, scope: Scope) -> Values:
    """Elements of a recurrence: inside a step those of the step before, else those of a run from time 0."""
    rec = ev.recs[e.name]
    extents = [int(ev.value(n, Scope()).data) for _, n in rec.indices]
    indices = [ev.value(i, scope) for i in e.indices]
    rest = [checked(e.name, k, indices[k], extents[k], scope.guard) for k in range(1, len(indices))]
    time = Values(indices[0].axes, np.maximum(indices[0].data, -1))
    time = checked(e.name, 0, Values(time.axes, time.data + 1), extents[0] + 1, scope.guard)
    indices = [Values(time.axes, time.data - 1), *rest]
    table = scope.previous.get(e.name) or _run(ev, rec, extents, indices)
    places = [Values(i.axes, table.places(k, i.data)) for k, i in enumerate(indices)]
    return gather(e.name, table.values, places, scope.guard, ev.budget)


def _run(ev: Evaluator, rec: Recurrence, extents: Sequence[int], indices: Sequence[Values]) -> Table:
    """The recurrence from time 0 on, kept at the times and, where steps allow it, the places of `indices`."""
    free = _pointwise(rec)
    names = tuple(name for name, _ in rec.indices)
    positions = [np.unique(indices[0].data)]
    for k in range(1, len(names)):
        positions.append(np.unique(indices[k].data) if names[k] in free else np.arange(extents[k]))
    axes, shape = (TIME, *names[1:]), tuple(p.size for p in positions)
    ev.budget.check(shape)
    vars_ = {n: Values((n,), p) for n, p in zip(names[1:], positions[1:], strict=True)}
    scope = Scope({names[0]: scalar(0), **vars_})
    kept: list[tuple[Array, Values]] = []
    state = _frame(ev.real(rec.init, scope), axes, shape)
    for t in range(-1, int(positions[0].max(initial=-1)) + 1):
        if t >= 0:
            before = {rec.name: Table((np.array([t - 1]), *positions[1:]), state)}
            step = Scope({names[0]: scalar(t), **vars_}, None, before)
            state = _frame(ev.real(rec.step, step), axes, shape)
        place = np.flatnonzero(positions[0] == t)
        kept += [(place, state)] if place.size else []
    return Table(tuple(positions), ev.number.join(axes, shape, kept))


def _frame(v: Values, axes: tuple[str, ...], shape: tuple[int, ...]) -> Values:
    """A state at one time over all its axes."""
    return v.expand(axes).map(lambda x: np.broadcast_to(x, (1, *shape[1:])), axes)


def _pointwise(rec: Recurrence) -> tuple[str, ...]:
    """Indices at which a step reads the state only at their own place, so that places can be left out."""
    nodes = list(walk(rec.step))
    reads = [n.indices for n in nodes if isinstance(n, State) and n.name == rec.name]
    bound = {n.var for n in nodes if isinstance(n, Reduce)}
    names = [name for name, _ in rec.indices]
    return tuple(name for k, name in enumerate(names) if name not in bound and all(r[k] == Var(name) for r in reads))
