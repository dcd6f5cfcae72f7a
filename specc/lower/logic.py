"""Conditions put together, turned round, and weakened."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

from specc.ops import Cmp, Expr, Logic, Sort, free_vars


def both(a: Expr | None, b: Expr | None) -> Expr | None:
    """Conjunction; None is no condition."""
    if a is None or b is None:
        return b if a is None else a
    return a if a == b else Logic("and", (a, b))


def either(a: Expr | None, b: Expr | None) -> Expr | None:
    """Disjunction; None always holds."""
    if a is None or b is None:
        return None
    return a if a == b else Logic("or", (a, b))


def negation(e: Expr) -> Expr:
    """`not e`. A comparison of indices is turned round; one of real numbers is not, for NaN fails both."""
    flipped = {"<": ">=", ">=": "<", "<=": ">", ">": "<=", "==": "!=", "!=": "=="}
    if isinstance(e, Cmp) and e.left.sort is Sort.INDEX and e.right.sort is Sort.INDEX:
        return Cmp(flipped[e.op], e.left, e.right)
    return Logic("not", (e,))


def weakened(e: Expr, known: Collection[str], positive: bool = True) -> Expr | None:
    """A condition over `known` names that holds wherever `e` does (or where it does not, if not `positive`)."""
    match e:
        case Logic("not", (arg,)):
            return weakened(arg, known, not positive)
        case Logic("and" | "or" as op, args):
            parts = [weakened(a, known, positive) for a in args]
            return reduce(both if (op == "and") == positive else either, parts)
    if set(free_vars(e)) <= set(known):
        return e if positive else negation(e)
    return None
