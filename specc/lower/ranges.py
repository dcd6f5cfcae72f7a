"""What is known of an index expression when its variables lie in known ranges."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor

from specc.instantiate import FALSE, TRUE
from specc.ops import Bin, Call, Cmp, Expr, Named, Neg, Num, Select, Size, Sort, Var, rebuild, walk
from specc.passes.simplify import identities

Range = tuple[int, int]
"""Inclusive."""

LARGEST = 2**62
"""Stands for the extent of a run-time axis where only its sign matters."""


def static_ranges(axes: Mapping[str, Expr]) -> dict[str, Range]:
    """The ranges of index variables with these extents."""
    return {v: (0, int(n.value) - 1 if isinstance(n, Num) else LARGEST) for v, n in axes.items()}


def bounds_of(e: Expr, ranges: Mapping[str, Range]) -> Range | None:
    """Interval that holds `e`, or None where nothing is known."""
    match e:
        case Num(value) if value.denominator == 1:
            return int(value), int(value)
        case Var(name) | Size(name):
            return ranges.get(name)
        case Named(_, inside):
            return bounds_of(inside, ranges)
        case Neg(arg):
            inner = bounds_of(arg, ranges)
            return None if inner is None else (-inner[1], -inner[0])
        case Bin(op, left, right, Sort.INDEX):
            a, b = bounds_of(left, ranges), bounds_of(right, ranges)
            return None if a is None or b is None else _combine(op, a, b)
        case Call("max" | "min" as fn, (left, right), Sort.INDEX):
            a, b = bounds_of(left, ranges), bounds_of(right, ranges)
            pick = max if fn == "max" else min
            return None if a is None or b is None else (pick(a[0], b[0]), pick(a[1], b[1]))
        case Call("abs", (arg,), Sort.INDEX):
            inner = bounds_of(arg, ranges)
            return None if inner is None else (max(inner[0], -inner[1], 0), max(-inner[0], inner[1]))
        case Select(_, then, other, Sort.INDEX):
            a, b = bounds_of(then, ranges), bounds_of(other, ranges)
            return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))
    return None


def _combine(op: str, a: Range, b: Range) -> Range | None:
    match op:
        case "+":
            return a[0] + b[0], a[1] + b[1]
        case "-":
            return a[0] - b[1], a[1] - b[0]
        case "·":
            corners = [x * y for x in a for y in b]
            return min(corners), max(corners)
        case "//" if b[0] > 0:
            corners = [x // y for x in a for y in b]
            return min(corners), max(corners)
        case "%" if b[0] > 0:
            inside = a[0] >= 0 and a[1] < b[0]
            return a if inside else (0, b[1] - 1)
        case "^" if b[0] == b[1] >= 0:
            ends = [x ** b[0] for x in a]
            return (0 if a[0] < 0 < a[1] else min(ends), max(ends)) if b[0] % 2 == 0 else (ends[0], ends[1])
    return None


def decide(e: Expr, ranges: Mapping[str, Range]) -> Expr:
    """`e` with every comparison that the ranges settle replaced by its truth, and conditionals on it resolved."""
    if isinstance(e, Select):
        cond = decide(e.cond, ranges)
        if cond in (TRUE, FALSE):
            return decide(e.then if cond == TRUE else e.other, ranges)
        return Select(cond, decide(e.then, ranges), decide(e.other, ranges), e.sort)
    if isinstance(e, Cmp):
        settled = _settle(e, ranges)
        if settled is not None:
            return settled
    return identities(rebuild(e, lambda child: decide(child, ranges)))


def _settle(e: Cmp, ranges: Mapping[str, Range]) -> Expr | None:
    a, b = bounds_of(e.left, ranges), bounds_of(e.right, ranges)
    if a is None or b is None:
        return None
    always = {"<": a[1] < b[0], "<=": a[1] <= b[0], ">": a[0] > b[1], ">=": a[0] >= b[1],
              "==": a == b and a[0] == a[1], "!=": a[1] < b[0] or a[0] > b[1]}  # fmt: skip
    never = {"<": a[0] >= b[1], "<=": a[0] > b[1], ">": a[1] <= b[0], ">=": a[1] < b[0],
             "==": a[1] < b[0] or a[0] > b[1], "!=": a == b and a[0] == a[1]}  # fmt: skip
    if always[e.op]:
        return TRUE
    return FALSE if never[e.op] else None


def cut_points(e: Expr, var: str, length: int) -> tuple[int, ...]:
    """Where comparisons of `var` (plus a constant) with a constant change their truth inside `0 <= var < length`."""
    points: set[int] = set()
    for node in walk(e):
        if isinstance(node, Cmp):
            points |= {*_cuts(node.left, node.op, node.right, var), *_cuts(node.right, TURNED[node.op], node.left, var)}
    return tuple(sorted(c for c in points if 0 < c < length))


TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
"""`a op b` is `b TURNED[op] a`."""


def _cuts(left: Expr, op: str, right: Expr, var: str) -> tuple[int, ...]:
    match left, right:
        case Var(name), Num(c) if name == var:
            edge = c
        case Bin("+", Var(name), Num(k)), Num(c) if name == var:
            edge = c - k
        case Bin("-", Var(name), Num(k)), Num(c) if name == var:
            edge = c + k
        case _:
            return ()
    if op in ("==", "!="):
        return (int(edge), int(edge) + 1) if edge.denominator == 1 else ()
    return (floor(edge) + 1,) if op in ("<=", ">") else (ceil(edge),)
