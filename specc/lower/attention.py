"""Attention: `Σ_l softmax_l(score | visible)·v`, with its visible range and head map solved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from specc.instantiate import fold
from specc.kernels import Access, Attention, Axis, HeadMap, Store
from specc.lower.access import Reader
from specc.lower.contraction import factors
from specc.lower.draft import Fit, NoFit, axes_of, single, static
from specc.lower.ranges import bounds_of
from specc.ops import (
    Bin,
    Call,
    Cmp,
    Expr,
    Formula,
    FormulaEquation,
    Load,
    Logic,
    Num,
    Reduce,
    Rounded,
    Softmax,
    Sort,
    Var,
    free_vars,
    rebuild,
    substitute,
    walk,
)
from specc.passes.rewrite import bottom_up
from specc.passes.simplify import identities

ACC, DOT, KV_HEAD = "acc", "dot", "kv_head"


@dataclass(frozen=True)
class _Parts:
    """The pieces of the formula before reads are named."""

    total: Reduce
    softmax: Softmax
    rounded: bool
    value: Load
    dot: Reduce
    scale: Expr | None


def attention(formula: Formula) -> Fit:
    """Raises NoFit unless the result is one softmax-weighted sum of values with a scaled query-key product."""
    q = single(formula)
    axes = axes_of(q)
    if len(axes) != 3:
        raise NoFit("the result has other axes than row, head, column")
    row, head, columns = axes
    parts = _parts(q)
    query, key = _query_key(parts.dot)
    head_map, index = _head_map(key, parts.value, head)
    keys = Axis(parts.softmax.var, parts.softmax.extent)
    decode = row.var in free_vars(key)
    read = Reader(formula.inputs)
    score = read(_replace(parts.softmax.score, parts.dot, Var(DOT, Sort.REAL)))
    visible = None if parts.softmax.visible is None else read(parts.softmax.visible)
    low, high = _range(visible, keys.var)
    acc: Expr = Var(ACC, Sort.REAL)
    acc = acc if parts.scale is None else Bin("·", parts.scale, acc, Sort.REAL)
    epilogue = read(_replace(q.expr, parts.total, acc))
    row_loads = tuple(read.found.values())
    if any({n for i in a.indices for n in free_vars(i)} - {row.var} for a in row_loads):
        raise NoFit("score, visibility or epilogue reads an operand per head or key")
    schedule = Attention(
        decode,
        row,
        head,
        keys,
        Axis(parts.dot.var, parts.dot.extent),
        columns,
        _access("q", query),
        _access("k", _at_kv(key, index)),
        _access("v", _at_kv(parts.value, index)),
        row_loads,
        DOT,
        score,
        visible,
        low,
        high,
        head_map,
        KV_HEAD,
        ACC,
        Store(q.tensor.name, tuple(Var(i) for i in q.indices), epilogue),
        parts.rounded,
    )
    static(parts.dot.extent, "the inner axis of the query-key product")
    static(columns.extent, "the value columns")
    own = "each row has its own keys (decode)" if decode else "rows share the keys (prefill)"
    return Fit(schedule, (), f"softmax over `{keys.var}` times values; {own}; {head_map.group} query heads a KV head")


def _parts(q: FormulaEquation) -> _Parts:
    sums = [n for n in walk(q.expr) if isinstance(n, Reduce) and any(isinstance(x, Softmax) for x in walk(n.body))]
    outer = [n for n in sums if n.op == "Σ" and n.where is None]
    if len(outer) != 1:
        raise NoFit("it is not one sum weighted by a softmax")
    total = outer[0]
    scale: Expr | None = None
    softmax: Softmax | None = None
    rounded, value = False, None
    for f in factors(total.body):
        inner = f.expr if isinstance(f, Rounded) else f
        if isinstance(inner, Softmax) and inner.var == total.var and softmax is None:
            softmax, rounded = inner, isinstance(f, Rounded)
        elif isinstance(f, Load) and total.var in free_vars(f) and value is None:
            value = f
        elif total.var not in free_vars(f):
            scale = f if scale is None else Bin("·", scale, f, Sort.REAL)
        else:
            raise NoFit("the softmax is weighted by something else than one value")
    if softmax is None or value is None:
        raise NoFit("a softmax weight or a value is missing from the sum")
    dots = {n for n in walk(softmax.score) if isinstance(n, Reduce)}
    if len(dots) != 1:
        raise NoFit("the score holds no single query-key product")
    return _Parts(total, softmax, rounded, value, dots.pop(), scale)


def _query_key(dot: Reduce) -> tuple[Load, Load]:
    loads = factors(dot.body)
    match loads:
        case [Load() as a, Load() as b] if dot.op == "Σ" and dot.where is None:
            if dot.var in free_vars(a) and dot.var in free_vars(b):
                return (a, b) if _is_query(a, b) else (b, a)
    raise NoFit("the query-key product is not Σ of two reads")


def _is_query(a: Load, b: Load) -> bool:
    """Whether `b` has one index variable more than `a`: the key position."""
    return len(set(free_vars(b)) - set(free_vars(a))) >= len(set(free_vars(a)) - set(free_vars(b)))


def _head_map(key: Load, value: Load, head: Axis) -> tuple[HeadMap, Expr]:
    """Solves the KV head index for runs of query heads, by evaluating it at every head."""
    heads = static(head.extent, "the number of query heads")
    indices = {i for load in (key, value) for i in load.indices if head.var in free_vars(i)}
    if len(indices) != 1:
        raise NoFit("k and v are read at different heads")
    (index,) = indices
    if free_vars(index) != (head.var,):
        raise NoFit("the KV head depends on more than the query head")
    table = [_at(index, head.var, h) for h in range(heads)]
    kv_heads = max(table) + 1
    members = [[h for h in range(heads) if table[h] == g] for g in range(kv_heads)]
    group = len(members[0])
    if any(len(m) != group for m in members) or group == 0:
        raise NoFit("KV heads serve different numbers of query heads")
    outer = members[1][0] - members[0][0] if kv_heads > 1 else 0
    step = members[0][1] - members[0][0] if group > 1 else 1
    if any(m[j] != g * outer + j * step for g, m in enumerate(members) for j in range(group)):
        raise NoFit("the query heads of a KV head are not evenly spaced")
    return HeadMap(heads, kv_heads, group, outer, step), index


def _at(index: Expr, var: str, h: int) -> int:
    closed = bottom_up(substitute(index, {var: Num(Fraction(h), Sort.INDEX)}), fold)
    interval = bounds_of(closed, {})
    if interval is None:
        raise NoFit("the KV head index is not a number for every query head")
    return interval[0]


def _at_kv(load: Load, index: Expr) -> Load:
    out = _replace(load, index, Var(KV_HEAD))
    assert isinstance(out, Load)
    return out


def _access(name: str, load: Load) -> Access:
    if any(isinstance(n, Load) for i in load.indices for n in walk(i)):
        raise NoFit("an index of q, k or v comes from data")
    return Access(name, load.tensor, load.indices)


def _range(visible: Expr | None, var: str) -> tuple[Expr | None, Expr | None]:
    """Bounds `low <= var < high` that hold wherever `visible` does, from comparisons of `var` with row values."""
    low: Expr | None = None
    high: Expr | None = None
    for op, bound in _comparisons(visible, var):
        match op:
            case ">" | ">=":
                edge = bound if op == ">=" else _plus_one(bound)
                low = edge if low is None else Call("max", (low, edge), Sort.INDEX)
            case "<" | "<=":
                edge = bound if op == "<" else _plus_one(bound)
                high = edge if high is None else Call("min", (high, edge), Sort.INDEX)
    return low, high


def _comparisons(e: Expr | None, var: str) -> Iterator[tuple[str, Expr]]:
    flip = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
    match e:
        case Logic("and", args):
            for a in args:
                yield from _comparisons(a, var)
        case Cmp(op, left, right):
            for side, other, o in ((left, right, op), (right, left, flip[op])):
                solved = _solve(side, other, var)
                if solved is not None:
                    yield o, solved


def _solve(side: Expr, other: Expr, var: str) -> Expr | None:
    """`other` moved so that `var` stands alone, for `var`, `var + c` and `var - c`."""
    if var in free_vars(other):
        return None
    match side:
        case Var(name) if name == var:
            return other
        case Bin("+" | "-" as op, Var(name), c) if name == var and var not in free_vars(c):
            return bottom_up(Bin("-" if op == "+" else "+", other, c, Sort.INDEX), identities)
    return None


def _plus_one(e: Expr) -> Expr:
    return bottom_up(Bin("+", e, Num(Fraction(1), Sort.INDEX), Sort.INDEX), identities)


def _replace(e: Expr, old: Expr, new: Expr) -> Expr:
    return new if e == old else rebuild(e, lambda c: _replace(c, old, new))
