"""What matching hands to each schedule, and what it says when a schedule does not fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specc.kernels import Axis, Schedule, Table
from specc.ops import Expr, Formula, FormulaEquation, Num, Var, substitute


class NoFit(Exception):
    """The formula has no place in a schedule; the text says why."""


@dataclass(frozen=True)
class Fit:
    """A filled schedule, the tables it reads, and why it was chosen."""

    schedule: Schedule
    tables: tuple[Table, ...]
    reason: str


def axes_of(equation: FormulaEquation) -> tuple[Axis, ...]:
    return tuple(Axis(v, d) for v, d in zip(equation.indices, equation.tensor.dims, strict=True))


def shared_axes(formula: Formula) -> tuple[Axis, ...]:
    """The axes that all results have. Raises NoFit where they differ."""
    axes = axes_of(formula.equations[0])
    if any(axes_of(q) != axes for q in formula.equations):
        raise NoFit("its results have different axes")
    return axes


def rows_and_inner(formula: Formula) -> tuple[Formula, tuple[Axis, ...], Axis]:
    """The axes of the results, of which some may lack the last one: rows, and what runs inside a row; and the formula
    with one set of index variables. Raises NoFit where they differ otherwise."""
    wide = max(formula.equations, key=lambda q: len(q.indices))
    *rows, inner = axes_of(wide)
    equations = tuple(_named_like(q, wide) for q in formula.equations)
    if any(axes_of(q) not in ((*rows, inner), tuple(rows)) for q in equations):
        raise NoFit("its results have different axes")
    return replace(formula, equations=equations), tuple(rows), inner


def _named_like(q: FormulaEquation, wide: FormulaEquation) -> FormulaEquation:
    """`q` with the index variables of `wide`, where its axes are the first ones of that."""
    names = wide.indices[: len(q.indices)]
    if q.indices == names or q.tensor.dims != wide.tensor.dims[: len(q.indices)]:
        return q
    new: dict[str, Expr] = {old: Var(name) for old, name in zip(q.indices, names, strict=True)}
    return replace(q, indices=names, expr=substitute(q.expr, new))


def static(extent: Expr, what: str) -> int:
    """The extent as a number. Raises NoFit for a run-time size."""
    if not isinstance(extent, Num):
        raise NoFit(f"{what} has a length that is known only at run time")
    return int(extent.value)


def single(formula: Formula) -> FormulaEquation:
    """The only equation. Raises NoFit when there are several."""
    if len(formula.equations) != 1:
        raise NoFit("it has several results")
    return formula.equations[0]
