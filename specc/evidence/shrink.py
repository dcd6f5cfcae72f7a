"""Simpler neighbours of a case, simplest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from specc.evidence.case import Case
from specc.evidence.strategy import families, lengths
from specc.kernels import Attention, Kernel
from specc.ops import Size


def simpler(kernel: Kernel, case: Case) -> Iterator[Case]:
    """Cases that differ from `case` in one respect and are smaller or plainer there."""
    for change in _plain(case):
        yield replace(case, **change)  # type: ignore[arg-type]
    for family in families(kernel)[: families(kernel).index(case.family)]:
        yield replace(case, family=family)
    for name, size in case.sizes:
        for smaller in (n for n in sorted(lengths(kernel, name, case.family)) if n < size):
            yield _resized(kernel, case, name, smaller)
    for n, place in enumerate(case.places):
        for lower in (p for p in (0, 1, place // 2, place - 1) if 0 <= p < place):
            yield replace(case, places=(*case.places[:n], lower, *case.places[n + 1 :]))


def _plain(case: Case) -> Iterator[dict[str, object]]:
    if case.moved:
        yield {"moved": "", "axis": 0}
    if case.offset:
        yield {"offset": 0}
    if case.pad:
        yield {"pad": 0}
    if case.magnitude != 1.0:
        yield {"magnitude": 1.0}
    if case.index_type != "int64":
        yield {"index_type": "int64"}
    if case.seed:
        yield {"seed": 0}


def _resized(kernel: Kernel, case: Case, name: str, size: int) -> Case:
    """`case` with one size smaller, and places that still lie among the keys."""
    sizes = tuple((n, size if n == name else s) for n, s in case.sizes)
    schedule = kernel.schedule
    if not isinstance(schedule, Attention) or not isinstance(schedule.keys.extent, Size):
        return replace(case, sizes=sizes)
    keys = dict(sizes)[schedule.keys.extent.name]
    top = keys if schedule.decode else keys - 1
    return replace(case, sizes=sizes, places=tuple(min(p, top) for p in case.places))
