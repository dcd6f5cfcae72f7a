"""Reads that leave their operand, each shown by a point at which it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from specc.formula_text import expr_text
from specc.instantiate import compare
from specc.lower.logic import negation
from specc.lower.ranges import bounds_of
from specc.ops import (
    Apply,
    Bin,
    Call,
    Cmp,
    Expr,
    Formula,
    Load,
    Logic,
    Named,
    Neg,
    Num,
    Reduce,
    Select,
    Size,
    Softmax,
    Sort,
    State,
    Var,
    children,
    free_vars,
    walk,
)

POINTS = 2048
"""About how many points are tried for a read."""
RUNTIME = 1000
"""Every run-time size where reads are tried: what holds of sizes that differ is not judged."""


@dataclass(frozen=True)
class _Read:
    load: Load
    axes: Mapping[str, Expr]
    guards: tuple[Expr, ...]


def stray_read(formula: Formula) -> str | None:
    """A read that leaves its operand, in words, or None where none is found. A read is not judged where its index or a
    condition around it comes from data."""
    dims = {t.name: t.dims for t in formula.inputs}
    for q in formula.equations:
        axes = dict(zip(q.indices, q.tensor.dims, strict=True))
        for read in _reads(q.expr, axes, ()):
            for index, dim in zip(read.load.indices, dims.get(read.load.tensor, ()), strict=False):
                point = _outside(index, dim, read)
                if point is not None:
                    return f"`{expr_text(read.load)}` leaves `{read.load.tensor}`: {_told(index, dim, point)}"
    return None


def _told(index: Expr, dim: Expr, point: Mapping[str, int]) -> str:
    shown, length = expr_text(index), expr_text(dim)
    if not isinstance(dim, Num):
        return f"`{shown}` does not always lie in 0 ≤ … < {length}; put a condition around it"
    where = ", ".join(f"{n} = {point[n]}" for n in free_vars(index) if n in point)
    return f"`{shown}` is {value(index, point)} at {where}, not in 0 ≤ … < {length}; put a condition around it"


def _reads(e: Expr, axes: Mapping[str, Expr], guards: tuple[Expr, ...]) -> Iterator[_Read]:
    """All reads in `e`, with the index variables and conditions around them."""
    parts: list[tuple[Expr, Mapping[str, Expr], tuple[Expr, ...]]]
    match e:
        case Load():
            yield _Read(e, axes, guards)
            parts = [(i, axes, guards) for i in e.indices]
        case Select(cond, then, other):
            parts = [(cond, axes, guards), (then, axes, (*guards, cond)), (other, axes, (*guards, negation(cond)))]
        case Logic("and" | "or" as op, args):
            known = [a if op == "and" else negation(a) for a in args]
            parts = [(a, axes, (*guards, *known[:n])) for n, a in enumerate(args)]
        case Reduce(_, var, extent, where, body) | Softmax(var, extent, body, where):
            inner: Mapping[str, Expr] = {**axes, var: extent}
            parts = [(body, inner, guards)]
            if where is not None:
                parts = [(where, inner, guards), (body, inner, (*guards, where))]
        case Apply(fn) if any(isinstance(n, Select) for n in walk(fn.body)):
            parts = []
        case _:
            parts = [(c, axes, guards) for c in children(e)]
    for part in parts:
        yield from _reads(*part)


def _outside(index: Expr, dim: Expr, read: _Read) -> dict[str, int] | None:
    """A point at which all guards hold and the index does not lie in its axis."""
    if isinstance(index, Var) and read.axes.get(index.name) == dim:
        return None
    exprs = (index, *read.guards)
    if any(isinstance(n, Load | State) for e in exprs for n in walk(e)):
        return None
    names = [n for n in dict.fromkeys(v for e in exprs for v in free_vars(e)) if n in read.axes]
    sizes = {n.name: RUNTIME for e in (*exprs, dim, *read.axes.values()) for n in walk(e) if isinstance(n, Size)}
    lengths = [value(read.axes[n], sizes) for n in names]
    length = value(dim, sizes)
    if length is None or any(n is None for n in lengths):
        return None
    box = {n: (0, int(size or 0) - 1) for n, size in zip(names, lengths, strict=True)}
    within = bounds_of(index, {**{n: (size, size) for n, size in sizes.items()}, **box})
    if within is not None and within[0] >= 0 and within[1] < length:
        return None
    many = int(POINTS ** (1 / max(1, len(names))))
    for place in product(*(_candidates(int(n or 0), many) for n in lengths)):
        point = {**sizes, **dict(zip(names, place, strict=True))}
        if all(value(g, point) == 1 for g in read.guards):
            found = value(index, point)
            if found is not None and not 0 <= found < length:
                return point
    return None


def _candidates(length: int, many: int) -> list[int]:
    """Up to `many` indices of an axis, its ends among them."""
    if length <= many:
        return list(range(length))
    half = max(1, many // 2)
    return [*range(half), *range(length - half, length)]


def value(e: Expr, point: Mapping[str, int]) -> Fraction | int | None:
    """What an index or a condition (1 or 0) is where variables and sizes are given; None where data decides."""
    match e:
        case Num(n):
            return n.numerator if n.denominator == 1 else n
        case Var(name) | Size(name):
            return point.get(name)
        case Named(_, inner):
            return value(inner, point)
        case Neg(arg):
            given = value(arg, point)
            return None if given is None else -given
        case Bin() | Cmp() | Call("max" | "min", (_, _)):
            left, right = e.args if isinstance(e, Call) else (e.left, e.right)
            a, b = value(left, point), value(right, point)
            return None if a is None or b is None else _combine(e, a, b)
        case Logic(op, args):
            known = [value(a, point) for a in args]
            return None if None in known else _junction(op, [bool(k) for k in known])
        case Select(cond, then, other):
            held = value(cond, point)
            return None if held is None else value(then if held else other, point)
    return None


def _combine(e: Bin | Cmp | Call, a: Fraction | int, b: Fraction | int) -> Fraction | int | None:
    match e:
        case Cmp(op):
            return int(compare(op, a, b))
        case Call(fn):
            return max(a, b) if fn == "max" else min(a, b)
        case Bin("+"):
            return a + b
        case Bin("-"):
            return a - b
        case Bin("·"):
            return a * b
        case Bin("//" | "%" as op) if b != 0:
            return a // b if op == "//" else a % b
        case Bin("/") if b != 0 and e.sort is Sort.REAL:
            return Fraction(a) / b
    return None


def _junction(op: str, known: list[bool]) -> int:
    match op:
        case "not":
            return int(not known[0])
        case "and" | "true":
            return int(all(known))
    return int(any(known))
