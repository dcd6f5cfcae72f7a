"""What must hold of a formula at each level; a failure is a fault of specc, not of a user."""

from __future__ import annotations

from enum import IntEnum

from specc.ops import (
    Apply,
    Expr,
    Formula,
    Given,
    Lead,
    Load,
    Named,
    Reduce,
    Rounded,
    ScalarDef,
    Sort,
    free_vars,
    walk,
)


class Level(IntEnum):
    """CLOSED: instantiated. EXPANDED: lets and scalar functions that dissolve are gone, roundings may stand. LOWERED:
    no scalar function is left at all."""

    CLOSED = 1
    EXPANDED = 2
    LOWERED = 3


class IllFormed(AssertionError):
    """A pass broke the formula it was given."""


def check(formula: Formula, level: Level) -> None:
    """Raises IllFormed when `formula` is not what `level` promises."""
    checker = _Checker(formula, level)
    for rec in formula.recs:
        names = tuple(v for v, _ in rec.indices)
        checker.whole(rec.init, names)
        checker.whole(rec.step, names)
    for q in formula.equations:
        checker.whole(q.expr, q.indices)


class _Checker:
    def __init__(self, formula: Formula, level: Level) -> None:
        self.op, self.level = formula.op, level
        self.tensors = {t.name: t for t in formula.inputs}

    def whole(self, e: Expr, indices: tuple[str, ...]) -> None:
        loose = sorted(set(free_vars(e)) - set(indices))
        if loose:
            self.fail(f"{', '.join(loose)} bound nowhere")
        for node in walk(e):
            self.node(node)

    def node(self, e: Expr) -> None:
        if isinstance(e, Lead | Given):
            self.fail(f"{type(e).__name__} is left after instantiation")
        if self.level >= Level.EXPANDED and (isinstance(e, Named) or (isinstance(e, Apply) and dissolves(e.fn))):
            self.fail(f"{type(e).__name__} is left after expansion")
        if self.level >= Level.LOWERED and isinstance(e, Apply):
            self.fail(f"{e.fn.name} is left after lowering")
        if self.level < Level.EXPANDED and isinstance(e, Rounded):
            self.fail("a rounding stands before expansion")
        if isinstance(e, Load):
            self.load(e)

    def load(self, e: Load) -> None:
        tensor = self.tensors.get(e.tensor)
        if tensor is None:
            self.fail(f"{e.tensor} is read and is no operand")
        elif len(tensor.dims) != len(e.indices):
            self.fail(f"{e.tensor} is read with {len(e.indices)} indices")
        elif tensor.sort is not e.sort:
            self.fail(f"{e.tensor} holds {tensor.sort} and is read as {e.sort}")

    def fail(self, why: str) -> None:
        raise IllFormed(f"{self.op}: {why}")


def dissolves(fn: ScalarDef) -> bool:
    """Whether `fn` is put in where it is called: a function of an index, such as `invFreq`, or one with a reduction.
    Targets print the others as functions of their own."""
    if any(p.sort is Sort.INDEX for p in fn.params):
        return True
    forms = (fn.body,) if fn.computed is None else (fn.body, fn.computed)
    nodes = [n for form in forms for n in walk(form)]
    return any(isinstance(n, Reduce) or (isinstance(n, Apply) and dissolves(n.fn)) for n in nodes)
