"""Which keys each row of an attention kernel sees, evaluated from its predicate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from specc.evidence.case import Case
from specc.evidence.integers import extent, integer, truth
from specc.kernels import Attention, Kernel

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Visible:
    """`mask[row, l]`. In a decode kernel each row has its own keys; in a prefill rows share them. `read`: the first key
    that lies in the range of some row, and one past the last; a prefill kernel may read those between, seen or not."""

    mask: Mask
    decode: bool
    keys: tuple[str, str]
    """Names of the operands that hold keys and values."""
    read: tuple[int, int]

    def unused(self, name: str, shape: tuple[int, ...]) -> Mask | None:
        """Positions of a key or value operand that no row sees."""
        if name not in self.keys:
            return None
        seen = self._seen()
        rest = (1,) * (len(shape) - seen.ndim)
        return np.broadcast_to(~seen.reshape(*seen.shape, *rest), shape)

    def edge_places(self, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Indices (row and key, or key) of the first and last visible key and their neighbours outside."""
        return sorted(set(self._edges(inside=True)) | set(self._edges(inside=False)))

    def outside_places(self, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Indices of the neighbours outside that no row sees."""
        seen = self._seen()
        return [p for p in self._edges(inside=False) if not seen[p]]

    def parts(self, count: int) -> npt.NDArray[np.int64]:
        """For each key, of a row in a decode kernel, in which of `count` equal parts of those that are seen it is."""
        seen = self._seen()
        rank = np.maximum(np.cumsum(seen, axis=-1) - 1, 0)
        return np.asarray(rank * count // np.maximum(seen.sum(axis=-1, keepdims=True), 1))

    def last(self) -> Mask:
        """The last key that is seen, of each row in a decode kernel."""
        seen = self._seen()
        return np.asarray(seen & (np.cumsum(seen, axis=-1) == seen.sum(axis=-1, keepdims=True)))

    def shared(self) -> npt.NDArray[np.int64]:
        """Keys that some rows see and others do not, in a prefill kernel."""
        return np.nonzero(self.mask.any(axis=0) & ~self.mask.all(axis=0))[0]

    def _seen(self) -> Mask:
        """Keys that some row sees: per row in a decode kernel."""
        return self.mask if self.decode else np.asarray(self.mask.any(axis=0))

    def _edges(self, inside: bool) -> list[tuple[int, ...]]:
        found: dict[tuple[int, ...], None] = {}
        for row, seen in enumerate(self.mask):
            (at,) = np.nonzero(seen)
            if len(at):
                ends = (int(at[0]), int(at[-1])) if inside else (int(at[0]) - 1, int(at[-1]) + 1)
                for end in (e for e in ends if 0 <= e < len(seen)):
                    found[(row, end) if self.decode else (end,)] = None
        return list(found)


def visible_range(kernel: Kernel, places: Mapping[str, npt.NDArray[np.int64]], case: Case) -> Visible:
    """The visible keys of every row for given lengths or positions."""
    schedule = kernel.schedule
    assert isinstance(schedule, Attention)
    sizes = dict(case.sizes)
    rows, keys = (extent(a.extent, sizes) for a in (schedule.row, schedule.keys))
    values: dict[str, npt.NDArray[np.int64]] = {
        schedule.row.var: np.arange(rows)[:, None],
        schedule.keys.var: np.arange(keys)[None, :],
    }
    for access in schedule.row_loads:
        if access.operand in places:
            values[access.name] = places[access.operand].reshape(rows, 1)
    mask = np.ones((rows, keys), dtype=bool)
    if schedule.visible is not None:
        mask = np.broadcast_to(truth(schedule.visible, values, sizes), (rows, keys))
    low, high = (
        np.asarray(end if e is None else integer(e, values, sizes))
        for e, end in ((schedule.low, 0), (schedule.high, keys))
    )
    read = max(int(np.min(low, initial=keys)), 0), min(int(np.max(high, initial=0)), keys)
    return Visible(mask, schedule.decode, (schedule.k.operand, schedule.v.operand), read)
