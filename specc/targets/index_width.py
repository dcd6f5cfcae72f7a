"""Which integers of a kernel 32 bits hold, for targets whose index variables have so many."""

from __future__ import annotations

from collections.abc import Mapping

from specc.kernels import Attention, Axis, Kernel, Pointwise
from specc.lower.ranges import Range, bounds_of
from specc.lower.visible import alone
from specc.ops import Bin, Cmp, Expr, Num, Sort, Var, children, free_vars
from specc.targets.naming import found

MOST = 2**30
"""The largest run-time size that launchers take."""
FARTHEST = 3 * 2**29
"""Positions are cut to this distance from 0 where that changes no comparison."""


def fits(found: Range | None) -> bool:
    """Whether 32 bits hold every number of a range."""
    return found is not None and found[0] >= -(2**31) and found[1] < 2**31


def index_ranges(kernel: Kernel) -> dict[str, Range]:
    """The ranges of index variables, of run-time sizes, and of positions that are cut; the rest has 64 bits."""
    fixed = _fixed(kernel)
    return fixed | dict.fromkeys(_cut(kernel, fixed), (-FARTHEST, FARTHEST))


def cut_positions(kernel: Kernel) -> frozenset[str]:
    """Integers of a row that only matter where they are near: cut, they have 32 bits."""
    return _cut(kernel, _fixed(kernel))


def _fixed(kernel: Kernel) -> dict[str, Range]:
    schedule = kernel.schedule
    ranges: dict[str, Range] = dict.fromkeys(kernel.sizes, (0, MOST))
    ranges |= {a.var: (0, _extent(a.extent) - 1) for a in found(schedule, Axis)}
    if isinstance(schedule, Pointwise):
        ranges[schedule.inner] = (0, max(s.length for s in schedule.strips) - 1)
    if isinstance(schedule, Attention):
        ranges[schedule.kv_head] = (0, schedule.head_map.kv_heads - 1)
    return ranges


def _extent(e: Expr) -> int:
    return int(e.value) if isinstance(e, Num) else MOST


def _cut(kernel: Kernel, ranges: Mapping[str, Range]) -> frozenset[str]:
    a = kernel.schedule
    if not isinstance(a, Attention):
        return frozenset()
    integers = {o.name for o in kernel.operands if o.sort is Sort.INDEX}
    places = [e for x in a.row_loads for e in (*x.indices, x.guard)]
    exprs = [e for e in (a.score, a.visible, a.store.value, *places) if e is not None]
    names = [x.name for x in a.row_loads if x.operand in integers]
    return frozenset(n for n in names if all(_only_compared(e, n, ranges) for e in exprs))


def _only_compared(e: Expr, name: str, ranges: Mapping[str, Range]) -> bool:
    """Whether `e` is the same if the integer `name` is cut: it is compared with what is nearer than that."""
    match e:
        case Var(own):
            return own != name
        case Cmp(_, left, right) if name in free_vars(e) and left.sort is right.sort is Sort.INDEX:
            solved = alone(Bin("-", left, right, Sort.INDEX), name)
            if solved is None:
                return False
            rest = (0, 0) if solved[1] is None else bounds_of(solved[1], ranges)
            return rest is not None and rest[0] > -FARTHEST and rest[1] < FARTHEST
    return all(_only_compared(c, name, ranges) for c in children(e))
