"""Puts in what lets stand for, and scalar functions of an index; places the roundings of the profile."""

from __future__ import annotations

from specc.ops import Apply, Expr, Formula, Named, Rounded, Softmax, rebuild, substitute
from specc.passes.rewrite import each
from specc.wellformed import dissolves


def inline(e: Apply) -> Expr:
    """The value of a scalar function, in its `computed as` form where it has one."""
    body = e.fn.computed or e.fn.body
    return substitute(body, {p.name: a for p, a in zip(e.fn.params, e.args, strict=True)})


def inline_index_functions(e: Expr) -> Expr:
    """`e` without scalar functions that dissolve."""
    if isinstance(e, Apply) and dissolves(e.fn):
        return inline_index_functions(inline(e))
    return rebuild(e, inline_index_functions)


def inline_all(formula: Formula) -> Formula:
    """`formula` without any Apply, as `computed as` forms have it."""

    def visit(e: Expr) -> Expr:
        return visit(inline(e)) if isinstance(e, Apply) else rebuild(e, visit)

    return each(formula, visit)


def expand(formula: Formula, rounds: tuple[tuple[str, str, str], ...]) -> Formula:
    """No Named is left, and of Apply only functions that do not dissolve.
    A `let` or constant that `rounds` names for this op is rounded; so is every softmax weight when `rounds` names
    `softmax`."""
    roles = {name: role for op, name, role in rounds if op == formula.op}
    weights = next((role for op, _, role in rounds if op == "softmax"), None)

    def visit(e: Expr) -> Expr:
        match e:
            case Apply(fn) if dissolves(fn):
                return visit(inline(e))
            case Named(name, inner):
                return Rounded(visit(inner), roles[name]) if name in roles else visit(inner)
            case Softmax() if weights is not None:
                return Rounded(rebuild(e, visit), weights)
        return rebuild(e, visit)

    return each(formula, visit)
