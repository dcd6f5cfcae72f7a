"""What matching hands to each schedule, and what it says when a schedule does not fit."""

from __future__ import annotations

from dataclasses import dataclass

from specc.kernels import Axis, Schedule, Table
from specc.ops import Expr, Formula, FormulaEquation, Num


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
