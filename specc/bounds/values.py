"""Values with named axes: an array of real values, a bound on their error, and how they are held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from specc.bounds.formats import Array, Bools

EXACT: Array = np.zeros(())
T = TypeVar("T", bound=np.generic)


class Held(IntEnum):
    """How a kernel holds a value. An operation on two goes by the greater; see `Arithmetic.meet`."""

    CONSTANT = 0
    """Known before launch: folded in wide arithmetic, rounded once when it meets an accumulator."""
    INTEGER = 1
    """Exact, made of indices."""
    WIDE = 2
    """float64: a table operand, or one combined with indices and constants."""
    ACCUMULATOR = 3


@dataclass(frozen=True, eq=False)
class Val:
    """`value` and `error` >= 0 (0-d when the same everywhere), both broadcast over `axes`, named by index variable.

    A kernel holds some number within `error` of `value`. Where `error` is 0 it holds exactly `value`.
    """

    axes: tuple[str, ...]
    value: Array
    error: Array = field(default_factory=lambda: EXACT)
    held: Held = Held.ACCUMULATOR

    @property
    def certain(self) -> bool:
        """No error anywhere."""
        return self.error is EXACT or not np.any(self.error)


@dataclass(frozen=True, eq=False)
class Ints:
    """Exact integers over named axes."""

    axes: tuple[str, ...]
    value: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Truth:
    """A condition over named axes. Where it is not `certain`, a kernel may decide it either way."""

    axes: tuple[str, ...]
    value: Bools
    certain: Bools

    @property
    def constant(self) -> bool | None:
        """The one answer for every point, or None."""
        if not np.all(self.certain):
            return None
        if np.all(self.value):
            return True
        return None if np.any(self.value) else False


def union(*axes: tuple[str, ...]) -> tuple[str, ...]:
    """All axes, in order of first occurrence."""
    return tuple(dict.fromkeys(a for group in axes for a in group))


def place(array: NDArray[T], axes: tuple[str, ...], target: Sequence[str]) -> NDArray[T]:
    """A view of `array` with its axes ordered as in `target`, and length 1 at axes it does not have."""
    if array.ndim == 0 or axes == tuple(target):
        return array
    present = [a for a in target if a in axes]
    index: tuple[Any, ...] = tuple(slice(None) if a in axes else None for a in target)
    out: NDArray[T] = array.transpose([axes.index(a) for a in present])[index]
    return out


def aligned(*vals: Val) -> tuple[tuple[str, ...], list[tuple[Array, Array]]]:
    """The union of the axes, and each (value, error) placed on it."""
    axes = union(*(v.axes for v in vals))
    return axes, [(place(v.value, v.axes, axes), place(v.error, v.axes, axes)) for v in vals]


def full(v: Val, axes: tuple[str, ...], shape: tuple[int, ...]) -> Val:
    """`v` broadcast to exactly `axes` and `shape`."""
    value = np.broadcast_to(place(v.value, v.axes, axes), shape)
    return Val(axes, value, np.broadcast_to(place(v.error, v.axes, axes), shape), v.held)
