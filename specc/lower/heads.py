"""Which query heads share a KV head."""

from __future__ import annotations

from fractions import Fraction

from specc.instantiate import fold
from specc.kernels import Axis, HeadMap
from specc.lower.draft import NoFit, static
from specc.lower.ranges import bounds_of
from specc.ops import Expr, Load, Num, Sort, Var, free_vars, rebuild, substitute
from specc.passes.rewrite import bottom_up, exchange


def head_map(head: Axis, kv_head: str, key: Load, value: Load) -> tuple[HeadMap, tuple[Load, Load]]:
    """Solves the KV head index for runs of query heads, by evaluating it at every head; and the reads of key and value
    with `kv_head` in its place. Raises NoFit where the query heads of a KV head are not evenly spaced."""
    heads = static(head.extent, "the axis of query heads")
    indices = list({i: None for load in (key, value) for i in load.indices if head.var in free_vars(i)})
    if not indices:
        return HeadMap(heads, 1, heads, 0, 1), (key, value)
    if len(indices) != 1:
        raise NoFit("keys and values are read at different heads")
    (index,) = indices
    if free_vars(index) != (head.var,):
        raise NoFit("the KV head depends on more than the query head")
    table = [_at(index, head.var, h) for h in range(heads)]
    if table and min(table) < 0:
        raise NoFit("a KV head is negative")
    return _spaced(table), (_at_kv(key, index, kv_head), _at_kv(value, index, kv_head))


def _spaced(table: list[int]) -> HeadMap:
    kv_heads = max(table) + 1
    members = [[h for h, g in enumerate(table) if g == kv] for kv in range(kv_heads)]
    group = len(members[0])
    if group == 0 or any(len(m) != group for m in members):
        raise NoFit("KV heads serve different numbers of query heads")
    outer = members[1][0] - members[0][0] if kv_heads > 1 else 0
    step = members[0][1] - members[0][0] if group > 1 else 1
    if any(m[j] != g * outer + j * step for g, m in enumerate(members) for j in range(group)):
        raise NoFit("the query heads of a KV head are not evenly spaced")
    return HeadMap(len(table), kv_heads, group, outer, step)


def _at(index: Expr, var: str, h: int) -> int:
    closed = bottom_up(substitute(index, {var: Num(Fraction(h), Sort.INDEX)}), fold)
    interval = bounds_of(closed, {})
    if interval is None:
        raise NoFit("the KV head index is not a number for every query head")
    return interval[0]


def _at_kv(load: Load, index: Expr, kv_head: str) -> Load:
    out = rebuild(load, lambda i: exchange(i, index, Var(kv_head)))
    assert isinstance(out, Load)
    return out
