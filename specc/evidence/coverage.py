"""Whether every element of a result that should have been written was."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Written = npt.NDArray[np.int64]

NARROWEST = 16
"""Columns of the narrowest tile that a program may own of a row that several programs share."""


class Incomplete(Exception):
    """A result has elements that no program wrote."""


def require_all(name: str, shape: Sequence[int], written: Written) -> None:
    """Raises Incomplete unless every element is in `written`, whose rows are distinct indices."""
    total = math.prod(shape)
    if len(written) != total:
        raise Incomplete(f"{total - len(written)} of {total} elements of {name} were never written")


def require_heads(name: str, shape: Sequence[int], written: Written, axis: int, heads: Sequence[int]) -> None:
    """Raises Incomplete unless every element of the given heads is written."""
    total = math.prod(shape) // shape[axis] * len(heads)
    found = int(np.isin(written[:, axis], heads).sum())
    if found != total:
        raise Incomplete(f"{total - found} of {total} elements of {name} at heads {list(heads)} were never written")


def require_corners(name: str, shape: Sequence[int], written: Written, narrowest: int = NARROWEST) -> None:
    """For a launch of which the first, the last and some more programs ran. Raises Incomplete unless the first and the
    last element were written, and the columns that were lie in whole tiles, none narrower than `narrowest`."""
    for corner in (np.zeros(len(shape), np.int64), np.array(shape) - 1):
        if not np.any(np.all(written == corner, axis=1)):
            raise Incomplete(f"{name}{[int(c) for c in corner]} was never written")
    columns = np.unique(written[:, -1])
    breaks = np.flatnonzero(np.diff(columns) != 1)
    starts = columns[np.concatenate([[0], breaks + 1])]
    lengths = np.diff(np.concatenate([starts[:1] * 0, breaks + 1, [len(columns)]]))
    inner = [int(n) for start, n in zip(starts, lengths, strict=True) if start + n != shape[-1]]
    tile = math.gcd(*(int(s) for s in starts), *inner)
    if tile and tile < narrowest:
        raise Incomplete(f"columns {starts.tolist()[:4]} and on of {name} are written in runs of {inner[:4]}")
