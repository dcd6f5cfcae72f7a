"""Whether the data of a case calls for the slow way through a kernel, which takes keys one by one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from specc.bounds.formats import FORMATS
from specc.evidence.case import Case
from specc.evidence.draw import Drawn
from specc.evidence.visible import visible_range
from specc.kernels import Attention, Kernel

ROOM = 4.0
"""How far below the largest number sums of values stay that surely do not overflow."""


def stays_finite(kernel: Kernel, drawn: Mapping[str, Drawn], case: Case) -> bool:
    """Whether all that a prefill kernel reads is finite, and so are sums of its values, whatever their weights. Results
    and bounds tell whether scores overflow."""
    schedule = kernel.schedule
    if not isinstance(schedule, Attention) or not all(np.all(np.isfinite(d.exact)) for d in drawn.values()):
        return False
    places = {n: d.exact.astype(np.int64) for n, d in drawn.items() if d.exact.dtype.kind == "i"}
    first, last = visible_range(kernel, places, case).read
    factors = [drawn[a.operand] for a in (schedule.k, schedule.v)]
    if any(d.unused is not None and np.any(d.unused[first:last]) for d in factors):
        return False  # between keys that are seen lie others, which hold NaN
    values = np.abs(np.asarray(factors[1].exact[first:last], np.float64))
    return float(np.max(values, initial=0.0)) * (last - first) < FORMATS["float32"].largest / ROOM
