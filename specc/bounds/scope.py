"""Index positions in scope, conditions on them, and reading of operands at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specc.bounds.formats import Bools
from specc.bounds.values import Ints, Truth, Val, aligned, place, union

COMPARE = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
YES: Bools = np.ones((), np.bool_)


@dataclass(frozen=True)
class Scope:
    """Positions of the index variables in scope, and where the value is needed (None: everywhere)."""

    positions: Mapping[str, NDArray[np.int64]]
    needed: Truth | None = None

    def bind(self, var: str, extent: int) -> Scope:
        return replace(self, positions={**self.positions, var: np.arange(extent, dtype=np.int64)})

    def only(self, cond: Truth) -> Scope:
        """The scope with `cond` added to what is needed."""
        return replace(self, needed=cond if self.needed is None else conjunction(self.needed, cond))

    def shape(self, axes: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(len(self.positions[a]) for a in axes)


def conjunction(a: Truth, b: Truth) -> Truth:
    axes = union(a.axes, b.axes)
    x, cx, y, cy = (place(v, t.axes, axes) for t in (a, b) for v in (t.value, t.certain))
    return Truth(axes, x & y, (cx & cy) | (cx & ~x) | (cy & ~y))


def negation(a: Truth) -> Truth:
    return Truth(a.axes, ~a.value, a.certain)


def possibly(a: Truth, outcome: bool) -> Truth:
    """Where `a` may come out as `outcome`."""
    return Truth(a.axes, (a.value == outcome) | ~a.certain, YES)


def compare_integers(op: str, a: Ints, b: Ints) -> Truth:
    axes = union(a.axes, b.axes)
    return Truth(axes, np.asarray(COMPARE[op](place(a.value, a.axes, axes), place(b.value, b.axes, axes))), YES)


def compare_reals(op: str, a: Val, b: Val) -> Truth:
    """Certain where the intervals of the two do not meet."""
    axes, ((x, ex), (y, ey)) = aligned(a, b)
    with np.errstate(invalid="ignore"):
        certain = (np.abs(x - y) > ex + ey) | (ex + ey == 0)
    return Truth(axes, np.asarray(COMPARE[op](x, y)), np.asarray(certain))


def combine(f: Any, a: Ints, b: Ints) -> Ints:
    """`f` of integers, elementwise."""
    axes = union(a.axes, b.axes)
    return Ints(axes, np.asarray(f(place(a.value, a.axes, axes), place(b.value, b.axes, axes)), np.int64))


def gather(name: str, indices: list[Ints], tensor: NDArray[Any], scope: Scope) -> tuple[tuple[str, ...], NDArray[Any]]:
    """The elements of `tensor` at `indices`. Raises IndexError if one that is needed is out of range."""
    clipped = [_in_range(name, i, n, scope) for i, n in zip(indices, tensor.shape, strict=True)]
    single = [i.axes for i in clipped if i.axes]
    if all(len(a) == 1 for a in single) and len(set(single)) == len(single):
        for dim, i in enumerate(clipped):
            if i.axes:
                tensor = _take(tensor, i.value, dim)
        whole = tuple(slice(None) if i.axes else int(i.value) for i in clipped)
        return tuple(a for i in clipped for a in i.axes), tensor[whole]
    axes = union(*(i.axes for i in clipped))
    return axes, tensor[tuple(place(i.value, i.axes, axes) for i in clipped)]


def _take(tensor: NDArray[Any], index: NDArray[np.int64], dim: int) -> NDArray[Any]:
    if index.size and index[-1] - index[0] + 1 == index.size and np.all(np.diff(index) == 1):
        return tensor[(slice(None),) * dim + (slice(int(index[0]), int(index[-1]) + 1),)]
    # Indexing copies what it takes; `take` would first copy all of a strided operand.
    return tensor[(slice(None),) * dim + (index,)]


def _in_range(name: str, index: Ints, n: int, scope: Scope) -> Ints:
    outside = (index.value < 0) | (index.value >= n)
    if not np.any(outside):
        return index
    axes = index.axes
    if scope.needed is not None:
        axes = union(index.axes, scope.needed.axes)
        outside = place(outside, index.axes, axes) & place(scope.needed.value, scope.needed.axes, axes)
    if np.any(outside):
        raise IndexError(f"{name} is read out of range")
    return Ints(index.axes, np.clip(index.value, 0, max(n - 1, 0)))
