"""What must hold of a formula at each level; a failure is a fault of specc, not of a user."""

from __future__ import annotations

from enum import IntEnum

from specc.ops import Apply, Expr, Formula, Given, Lead, Load, Named, Rounded, Sort, children, free_vars


class Level(IntEnum):
    """CLOSED: instantiated. EXPANDED: lets and scalar functions of an index are gone, roundings may stand."""

    CLOSED = 1
    EXPANDED = 2


class IllFormed(AssertionError):
    """A pass broke the formula it was given."""


def check(formula: Formula, level: Level) -> None:
    """Raises IllFormed when `formula` is not what `level` promises."""
    tensors = {t.name: len(t.dims) for t in (*formula.inputs, *formula.outputs)}
    for rec in formula.recs:
        _expr(rec.step, level, tensors, formula.op)
    for q in formula.equations:
        loose = set(free_vars(q.expr)) - set(q.indices)
        if loose:
            raise IllFormed(f"{formula.op}: {sorted(loose)} are bound nowhere")
        _expr(q.expr, level, tensors, formula.op)


def _expr(e: Expr, level: Level, ranks: dict[str, int], op: str) -> None:
    if isinstance(e, Lead | Given):
        raise IllFormed(f"{op}: {type(e).__name__} is left after instantiation")
    if level >= Level.EXPANDED and (isinstance(e, Named) or _of_index(e)):
        raise IllFormed(f"{op}: {type(e).__name__} is left after expansion")
    if level < Level.EXPANDED and isinstance(e, Rounded):
        raise IllFormed(f"{op}: a rounding stands before expansion")
    if isinstance(e, Load) and ranks.get(e.tensor) != len(e.indices):
        raise IllFormed(f"{op}: {e.tensor} is read with {len(e.indices)} indices")
    for child in children(e):
        _expr(child, level, ranks, op)


def _of_index(e: Expr) -> bool:
    return isinstance(e, Apply) and any(p.sort is Sort.INDEX for p in e.fn.params)
