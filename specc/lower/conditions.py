"""Under which conditions a part of a formula is needed."""

from __future__ import annotations

from dataclasses import dataclass

from specc.lower.logic import both, either, negation
from specc.ops import Expr, Logic, Select, children, free_vars


@dataclass(frozen=True)
class Conditions:
    """`expr` holds where something is needed; None: everywhere."""

    expr: Expr | None

    def over(self, variables: set[str]) -> tuple[Expr | None, bool]:
        """What of it can be told from `variables`, and whether that is all."""
        parts = _conjuncts(self.expr)
        known = [p for p in parts if set(free_vars(p)) <= variables]
        guard: Expr | None = None
        for p in known:
            guard = both(guard, p)
        return guard, len(known) == len(parts)


def _conjuncts(e: Expr | None) -> list[Expr]:
    match e:
        case None:
            return []
        case Logic("and", args):
            return [p for a in args for p in _conjuncts(a)]
    return [e]


def needed_where(e: Expr, part: Expr) -> Conditions:
    """Where the value of `part` is needed for that of `e`."""
    return Conditions(_where(e, part)[1])


def _where(e: Expr, part: Expr) -> tuple[bool, Expr | None]:
    """Whether `part` occurs in `e`, and under which condition."""
    if e == part:
        return True, None
    sides: list[tuple[Expr, Expr | None]] = [(c, None) for c in children(e)]
    if isinstance(e, Select):
        sides = [(e.cond, None), (e.then, e.cond), (e.other, negation(e.cond))]
    elif isinstance(e, Logic) and e.op in ("and", "or"):
        before: Expr | None = None
        sides = []
        for a in e.args:
            sides.append((a, before))
            before = both(before, a if e.op == "and" else negation(a))
    found = False
    where: Expr | None = None
    for child, cond in sides:
        occurs, inner = _where(child, part)
        if occurs:
            here = both(cond, inner)
            where = either(where, here) if found else here
            found = True
    return found, where
