"""Run-time sizes that integers are divided by: there is no result where one of them is 0, so launches are refused."""

from __future__ import annotations

from specc.lower.ranges import LARGEST, bounds_of
from specc.ops import Apply, Bin, Expr, Num, Size, children, substitute, walk
from specc.targets.naming import inside


def divisors(node: object) -> tuple[Expr, ...]:
    """What integers inside a schedule, formula or expression are divided by, where it is made of run-time sizes and may
    be 0. What a divisor divides by itself comes before it."""
    return tuple(right for right in _rights(node, {}) if _may_be_zero(right))


def divisor(node: object) -> Expr | None:
    """What `node` itself divides an integer by, if it is made of run-time sizes and may be 0."""
    match node:
        case Bin("//" | "%", _, right) if _may_be_zero(right):
            return right
    return None


def _rights(node: object, known: dict[str, tuple[Expr, ...]]) -> tuple[Expr, ...]:
    """What integers inside `node` are divided by, those of functions that it calls included. `known`: by function, in
    terms of its parameters."""
    found: dict[Expr, None] = {}
    for part in reversed(inside(node)):
        match part:
            case Apply(fn, args):
                if fn.name not in known:
                    known[fn.name] = _rights(fn.computed or fn.body, known)
                values = {p.name: a for p, a in zip(fn.params, args, strict=True)}
                found |= dict.fromkeys(substitute(right, values) for right in known[fn.name])
            case Bin("//" | "%", _, right):
                found[right] = None
    return tuple(found)


def _may_be_zero(e: Expr) -> bool:
    leaves = [n for n in walk(e) if not children(n)]
    sizes = {n.name: (0, LARGEST) for n in leaves if isinstance(n, Size)}
    if not sizes or not all(isinstance(n, Size | Num) for n in leaves):
        return False
    bounds = bounds_of(e, sizes)
    return bounds is None or bounds[0] <= 0 <= bounds[1]
