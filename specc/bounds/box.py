"""`bound`: the bound of every output of a lowered formula, over a chosen box of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specc.bounds.arithmetic import NotSupported
from specc.bounds.chunks import chunks
from specc.bounds.evaluate import Evaluator
from specc.bounds.formats import Array
from specc.bounds.numerics import Numerics
from specc.bounds.recurrence import recurrent, step_by_step
from specc.bounds.scope import Scope
from specc.bounds.values import full
from specc.ops import (
    Expr,
    Formula,
    FormulaEquation,
    FormulaTensor,
    Load,
    Reduce,
    Size,
    Softmax,
    children,
    free_vars,
    rebuild,
)

LARGEST = 1 << 22
"""Most elements of an intermediate array that a box may need; a larger box is cut."""

Positions = Mapping[str, ArrayLike]


@dataclass(frozen=True)
class Bound:
    """`value`: what the formula amounts to in real arithmetic on the stored operands. `error`: how far from it a
    conforming kernel may be before it stores; the store then rounds (see `formats.accepts`). Both float64."""

    value: Array
    error: Array


def bound(
    formula: Formula,
    tensors: Mapping[str, NDArray[Any]],
    numerics: Numerics,
    sizes: Mapping[str, int] | None = None,
    at: Mapping[str, Positions] | None = None,
    *,
    tables: Collection[str] = (),
    follow_rounding: bool = False,
) -> dict[str, Bound]:
    """Running error bound of a lowered formula on the data at hand.

    tensors: the stored operands, exact in float64, by name; strided and broadcast arrays are read where needed only.
    sizes: run-time sizes that no operand's shape tells. at: per output, positions per index variable (default: all).
    tables: inputs that the launcher passes in float64. follow_rounding: let `value` follow the roundings of the
    profile; otherwise they are part of `error`.

    Raises NotSupported for what no bound is derived for, KeyError for a missing operand or size,
    IndexError for a read out of range.
    """
    known = {**_sizes_from_shapes(formula, tensors), **(sizes or {})}
    evaluator = Evaluator(numerics, tensors, known, frozenset(tables), follow_rounding)
    sorts = {t.name: t for t in formula.inputs}
    if formula.recs:
        return _recurrent(formula, evaluator, sorts, at or {})
    return {
        q.tensor.name: _equation(replace(q, expr=_typed(q.expr, sorts)), evaluator, (at or {}).get(q.tensor.name, {}))
        for q in formula.equations
    }


def _recurrent(
    formula: Formula, evaluator: Evaluator, sorts: Mapping[str, FormulaTensor], at: Mapping[str, Positions]
) -> dict[str, Bound]:
    if len(formula.recs) > 1:
        raise NotSupported(f"{formula.op} has several recurrences")
    sizes = evaluator.numerics.depth.chunks
    equations = tuple(replace(q, expr=_typed(q.expr, sorts)) for q in formula.equations)
    recs = tuple(replace(r, init=_typed(r.init, sorts), step=_typed(r.step, sorts)) for r in formula.recs)
    boxes = {n: {v: np.asarray(p, np.int64) for v, p in box.items()} for n, box in at.items()}
    local = chunks(sizes) if sizes else step_by_step
    found = recurrent(replace(formula, equations=equations, recs=recs), evaluator, boxes, local)
    return {n: Bound(np.asarray(value), np.asarray(error)) for n, (value, error) in found.items()}


def _typed(e: Expr, sorts: Mapping[str, FormulaTensor]) -> Expr:
    """Reads with the sort of their operand."""
    out = rebuild(e, lambda c: _typed(c, sorts))
    return replace(out, sort=sorts[out.tensor].sort) if isinstance(out, Load) and out.tensor in sorts else out


def _sizes_from_shapes(formula: Formula, tensors: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    return {
        d.name: n
        for t in formula.inputs
        if t.name in tensors
        for d, n in zip(t.dims, tensors[t.name].shape, strict=True)
        if isinstance(d, Size)
    }


def _equation(q: FormulaEquation, evaluator: Evaluator, at: Positions) -> Bound:
    empty = Scope({})
    extents = {v: evaluator.extent(d, empty) for v, d in zip(q.indices, q.tensor.dims, strict=True)}
    positions = {v: np.asarray(at[v] if v in at else np.arange(n), np.int64) for v, n in extents.items()}
    shape = tuple(len(positions[v]) for v in q.indices)
    value, error = np.zeros(shape), np.zeros(shape)
    if 0 not in shape:
        _fill(q, evaluator, positions, value, error)
    return Bound(value, error)


def _fill(
    q: FormulaEquation, evaluator: Evaluator, positions: dict[str, NDArray[np.int64]], value: Array, error: Array
) -> None:
    """Evaluates a box, cutting it in two along the axis that makes the largest intermediate smaller."""
    lengths = {v: len(p) for v, p in positions.items()}
    size = _largest(q.expr, lengths, evaluator)
    if size > LARGEST:
        axis = _cut(q, lengths, evaluator, size)
        if axis is not None:
            n = q.indices.index(axis)
            half = lengths[axis] // 2
            for part in (slice(0, half), slice(half, None)):
                where = (slice(None),) * n + (part,)
                _fill(q, evaluator, {**positions, axis: positions[axis][part]}, value[where], error[where])
            return
    out = evaluator.arithmetic.to_accumulator(evaluator.real(q.expr, Scope(positions)))
    out = full(out, q.indices, value.shape)
    value[...], error[...] = out.value, out.error


def _cut(q: FormulaEquation, lengths: dict[str, int], evaluator: Evaluator, size: int) -> str | None:
    best = min(
        ((_largest(q.expr, {**lengths, v: n // 2}, evaluator), v) for v, n in lengths.items() if n > 1),
        default=None,
    )
    return best[1] if best is not None and best[0] < size else None


def _largest(e: Expr, lengths: dict[str, int], evaluator: Evaluator) -> int:
    """Elements of the largest array that evaluating `e` makes."""
    match e:
        case Load():
            return prod(lengths[v] for v in free_vars(e))
        case Reduce(_, var, extent) | Softmax(var, extent):
            inner = {**lengths, var: evaluator.extent(extent, Scope({}))}
            within = max(_largest(c, inner, evaluator) for c in children(e)[1:])
            own = inner if isinstance(e, Softmax) else lengths
            return max(within, prod(own[v] for v in free_vars(e)))
    return max((_largest(c, lengths, evaluator) for c in children(e)), default=1)
