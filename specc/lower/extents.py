"""Lengths of axes and ranges, and numbers of rows, that no launch can have."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from specc.kernels import Attention, Axis, Contraction, Pointwise, Recurrent, RowReduction, Schedule
from specc.limits import MAX_ACROSS, MAX_EXTENT, MAX_LAUNCHED
from specc.ops import Expr, Formula, Num, Reduce, Softmax, walk

LONGER = f"longer than index variables of kernels reach: {MAX_EXTENT}"


def long_axis(formula: Formula) -> str | None:
    """An axis of a tensor that is too long, in words, or None."""
    dims = (d for t in (*formula.inputs, *formula.outputs) for d in t.dims)
    long = next((d for d in dims if _number(d) > MAX_EXTENT), None)
    return None if long is None else f"an axis of {_number(long)} elements is {LONGER}"


def long_range(formula: Formula) -> str | None:
    """A range of a reduction, a softmax or a recurrence that is too long, in words, or None."""
    for what, extent in _ranges(formula):
        if _number(extent) > MAX_EXTENT:
            return f"the range of `{what}`, {_number(extent)} long, is {LONGER}"
    return None


def _ranges(formula: Formula) -> Iterator[tuple[str, Expr]]:
    for r in formula.recs:
        yield from ((f"{r.name}[{var}]", extent) for var, extent in r.indices)
    exprs = (*(e for r in formula.recs for e in (r.init, r.step)), *(q.expr for q in formula.equations))
    for node in (n for e in exprs for n in walk(e)):
        match node:
            case Reduce(op, var, extent):
                yield f"{op}_{var}", extent
            case Softmax(var, extent):
                yield f"softmax_{var}", extent


def many_rows(schedule: Schedule) -> str | None:
    """Axes of rows that make too many whatever the run-time sizes, in words, or None."""
    lengths = [int(a.extent.value) for a in _rows(schedule) if isinstance(a.extent, Num)]
    if prod(lengths) <= MAX_LAUNCHED:
        return None
    return f"{' · '.join(map(str, lengths))} rows are more than a launch can have: {MAX_LAUNCHED}"


def many_across(schedule: Schedule) -> str | None:
    """An axis whose blocks lie along one of a grid that is not its first, and may be too many, in words, or None."""
    axes: tuple[tuple[str, Axis], ...] = ()
    match schedule:
        case Attention(head=heads, columns=columns):
            axes = (("heads", heads), ("columns of values", columns))
        case Recurrent(value=value):
            axes = (("values of a state", value),)
    for what, axis in axes:
        if _number(axis.extent) > MAX_ACROSS:
            return f"{_number(axis.extent)} {what} are more than a launch can have: {MAX_ACROSS}"
    return None


def _rows(schedule: Schedule) -> tuple[Axis, ...]:
    match schedule:
        case Pointwise(rows=rows) | RowReduction(rows=rows) | Contraction(rows=rows) | Recurrent(heads=rows):
            return rows
        case Attention(row=row):
            return (row,)


def _number(size: Expr) -> int:
    """A size that is one; 0 for others."""
    return int(size.value) if isinstance(size, Num) else 0
