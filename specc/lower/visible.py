"""The range of an index, solved from a condition on it: the keys that a row sees, the elements that may be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from specc.lower.logic import negation
from specc.lower.ranges import TURNED, bounds_of, static_ranges
from specc.ops import Bin, Call, Cmp, Expr, Logic, Neg, Num, Sort, Var, free_vars
from specc.passes.rewrite import bottom_up
from specc.passes.simplify import identities


def visible_range(visible: Expr | None, var: str) -> tuple[Expr | None, Expr | None]:
    """Bounds `low <= var < high` that hold wherever `visible` does, from comparisons of `var` with row values."""
    low: Expr | None = None
    high: Expr | None = None
    for op, bound in _comparisons(visible, var):
        if op in (">", ">=", "=="):
            edge = _plus_one(bound) if op == ">" else bound
            low = edge if low is None else Call("max", (low, edge), Sort.INDEX)
        if op in ("<", "<=", "=="):
            edge = bound if op == "<" else _plus_one(bound)
            high = edge if high is None else Call("min", (high, edge), Sort.INDEX)
    return low, high


def covered(index: Expr, dim: Expr, axes: Mapping[str, Expr], given: Expr | None = None) -> bool:
    """Whether `0 <= index < dim` is seen to hold for index variables of these extents, where `given` holds."""
    ranges = static_ranges(axes)
    found = bounds_of(index, ranges)
    if found is not None and isinstance(dim, Num) and found[0] >= 0 and found[1] < dim.value:
        return True
    names = free_vars(index)
    solved = alone(index, names[0]) if len(names) == 1 and names[0] in axes else None
    if solved is None or solved[0] < 0 or not isinstance(solved[1] or _NOUGHT, Num):
        return False
    offset = solved[1] or _NOUGHT
    assert isinstance(offset, Num)
    low, high = visible_range(given, names[0])
    least = max(0, (bounds_of(low, ranges) or (0, 0))[0]) if low is not None else 0
    return least + offset.value >= 0 and _below(names[0], offset, high, dim, axes)


def _below(var: str, offset: Num, high: Expr | None, dim: Expr, axes: Mapping[str, Expr]) -> bool:
    """Whether var + offset < dim, where `high` bounds var if it is given."""
    for end in (axes[var], high):
        if end is not None and offset.value <= 0 and end == dim:
            return True
        if end is not None and _plus(end, offset) == dim:
            return True
        most = None if end is None else bounds_of(end, static_ranges(axes))
        if most is not None and isinstance(dim, Num) and most[1] + offset.value <= dim.value:
            return True
    return False


def _comparisons(e: Expr | None, var: str) -> Iterator[tuple[str, Expr]]:
    """What must hold of `var` wherever `e` does, as `var op bound`."""
    match e:
        case Logic("and", args):
            for a in args:
                yield from _comparisons(a, var)
        case Logic("not", (Cmp() as c,)) if isinstance(negation(c), Cmp):
            yield from _comparisons(negation(c), var)
        case Cmp(op, left, right) if left.sort is Sort.INDEX and right.sort is Sort.INDEX:
            for side, other, o in ((left, right, op), (right, left, TURNED[op])):
                solved = None if var in free_vars(other) else alone(side, var)
                if solved is not None:
                    sign, rest = solved
                    yield (o, _minus(other, rest)) if sign > 0 else (TURNED[o], _minus(rest, other))


def alone(e: Expr, var: str) -> tuple[int, Expr | None] | None:
    """`e` as ±var + rest, where it has that form."""
    match e:
        case Var(name) if name == var:
            return 1, None
        case Neg(arg):
            inner = alone(arg, var)
            return None if inner is None else (-inner[0], _minus(None, inner[1]))
        case Bin("+" | "-" as op, left, right) if var not in free_vars(right):
            inner = alone(left, var)
            return None if inner is None else (inner[0], (_plus if op == "+" else _minus)(inner[1], right))
        case Bin("+" | "-" as op, left, right) if var not in free_vars(left):
            inner = alone(right, var)
            if inner is None:
                return None
            return (inner[0], _plus(left, inner[1])) if op == "+" else (-inner[0], _minus(left, inner[1]))
    return None


def _plus(a: Expr | None, b: Expr | None) -> Expr | None:
    if a is None or b is None:
        return b if a is None else a
    return _index("+", a, b)


def _minus(a: Expr | None, b: Expr | None) -> Expr:
    """None is 0."""
    if b is None:
        return _NOUGHT if a is None else a
    return bottom_up(Neg(b, Sort.INDEX), identities) if a is None else _index("-", a, b)


def _index(op: str, a: Expr, b: Expr) -> Expr:
    return bottom_up(Bin(op, a, b, Sort.INDEX), identities)


def _plus_one(e: Expr) -> Expr:
    return _index("+", e, Num(Fraction(1), Sort.INDEX))


_NOUGHT = Num(Fraction(0), Sort.INDEX)
