"""Results in blocks along their axes, so that no intermediate grows past a limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from specc.ops import Expr, FormulaEquation, Load, State, Var, free_vars, walk
from specc.oracle.arrays import Array, TooLarge, Values, scalar
from specc.oracle.evaluate import Evaluator
from specc.oracle.scope import Scope

MOST_GROUPS = 256
"""Above this many groups, sharing a gathered operand is not worth a block each."""

Box = Mapping[str, Array]
"""Positions per index variable."""


def fill(q: FormulaEquation, places: Box, evaluator: Evaluator) -> Values:
    """All values of `q` on the box `places`. Raises MemoryError where one element alone passes the limit."""
    shape = tuple(places[v].size for v in q.indices)
    out = evaluator.number.empty(q.indices, shape)
    if 0 in shape:
        return out
    for where in _groups(q, places, evaluator):
        _fill_box(q, places, where, out, evaluator)
    return out


def _fill_box(q: FormulaEquation, places: Box, where: Box, out: Values, evaluator: Evaluator) -> None:
    """Evaluates the part `where` of the box (places into its positions), in parts where it is too large."""
    try:
        vars_ = {v: Values((v,), places[v][where[v]]) for v in q.indices}
        found = evaluator.real(q.expr, Scope(vars_)).expand(q.indices)
    except TooLarge as error:
        for part in _split(q, where, int(error.args[0]), evaluator):
            _fill_box(q, places, part, out, evaluator)
        return
    key = np.ix_(*(where[v] for v in q.indices))
    out.data[key] = found.data
    if out.error is not None:
        out.error[key] = 0.0 if found.error is None else found.error


def _split(q: FormulaEquation, where: Box, size: int, evaluator: Evaluator) -> Iterator[Box]:
    times = {v for n in walk(q.expr) if isinstance(n, State) for v in free_vars(n.indices[0])}
    axis = max(q.indices, key=lambda v: (where[v].size > 1 and v not in times, where[v].size), default=None)
    if axis is None or where[axis].size < 2:
        limit = evaluator.budget.limit
        raise MemoryError(f"one element of `{q.tensor.name}` needs {size} bytes at once, the limit is {limit}")
    count = min(where[axis].size, max(2, -(-size // evaluator.budget.limit)))
    for part in np.array_split(where[axis], count):
        yield {**where, axis: part}


def _groups(q: FormulaEquation, places: Box, evaluator: Evaluator) -> Iterator[Box]:
    """Boxes in which operands that several places of an axis share (one KV head for several query heads) are
    read once: there each index of one variable, such as `h // 4`, is constant."""
    parts = [_alike(places[v], v, _shared(q.expr, v), evaluator) for v in q.indices]
    for combination in product(*parts):
        yield dict(zip(q.indices, combination, strict=True))


def _alike(positions: Array, var: str, indices: list[Expr], evaluator: Evaluator) -> list[Array]:
    """Places into `positions`, grouped by the values of `indices` where that makes few groups of several."""
    whole = np.arange(positions.size)
    if not indices:
        return [whole]
    unguarded = Scope({var: Values((var,), positions)}, guard=scalar(np.bool_(False)))
    labels = [np.broadcast_to(evaluator.value(i, unguarded).data, whole.shape) for i in indices]
    _, group = np.unique(np.stack(labels), axis=1, return_inverse=True)
    count = int(group.max()) + 1
    if not 1 < count <= min(MOST_GROUPS, whole.size - 1):
        return [whole]
    return [np.flatnonzero(group == g) for g in range(count)]


def _shared(e: Expr, var: str) -> list[Expr]:
    """Indices of operands that are functions of `var` alone, but not `var` itself."""
    found: dict[Expr, None] = {}
    for node in walk(e):
        for index in node.indices if isinstance(node, Load) else ():
            plain = not any(isinstance(n, Load | State) for n in walk(index))
            if plain and free_vars(index) == (var,) and index != Var(var):
                found.setdefault(index)
    return list(found)
