"""Arrays whose axes have names, and reading elements of operands into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class TooLarge(Exception):
    """An intermediate would pass the limit; `args[0]` is its size in bytes."""


@dataclass(frozen=True)
class Budget:
    """The size in bytes that no intermediate may pass."""

    limit: int

    def check(self, shape: Sequence[int]) -> None:
        """Raises TooLarge."""
        size = 8 * prod(shape)
        if size > self.limit:
            raise TooLarge(size)


@dataclass(frozen=True)
class Values:
    """One value per combination of positions along `axes`. `error` bounds how far `data` is from the real
    value; None stands for exact. For truth values `error` is inf where the decision is not sure."""

    axes: tuple[str, ...]
    data: Array
    error: Array | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.data, np.ndarray):
            object.__setattr__(self, "data", np.asarray(self.data))

    def map(self, f: Callable[[Array], Array], axes: tuple[str, ...]) -> Values:
        """The same change of shape for data and error."""
        return Values(axes, f(self.data), None if self.error is None else f(self.error))

    def length(self, axis: str) -> int:
        return int(self.data.shape[self.axes.index(axis)])

    def expand(self, axes: tuple[str, ...]) -> Values:
        """A view with all `axes` in their order; those that are missing have length 1."""
        if axes == self.axes:
            return self
        if not self.axes:
            return self.map(lambda x: x.reshape((1,) * len(axes)), axes)
        order = [self.axes.index(a) for a in axes if a in self.axes]
        index = tuple(slice(None) if a in self.axes else None for a in axes)
        return self.map(lambda x: np.transpose(x, order)[index], axes)

    def take(self, axis: str, chosen: Array) -> Values:
        """Only the `chosen` places along `axis`; unchanged where `axis` is missing."""
        if axis not in self.axes:
            return self
        where = (slice(None),) * self.axes.index(axis) + (chosen,)
        return self.map(lambda x: x[where], self.axes)

    def any_over(self, axes: Sequence[str]) -> Values:
        """For truth values: whether one holds along `axes`."""
        drop = tuple(k for k, a in enumerate(self.axes) if a in axes)
        kept = tuple(a for a in self.axes if a not in axes)
        return self.map(lambda x: np.asarray(x.max(axis=drop, initial=0)).astype(x.dtype), kept) if drop else self


def scalar(value: Any) -> Values:
    return Values((), np.asarray(value))


def merge(*values: Values) -> tuple[str, ...]:
    """The axes of all, each once; those of the first that has most come first, in its order."""
    out = max((v.axes for v in values), key=len)
    for v in values:
        out += tuple(a for a in v.axes if a not in out)
    return out


def align(*values: Values) -> tuple[tuple[str, ...], tuple[Values, ...]]:
    axes = merge(*values)
    return axes, tuple(v.expand(axes) for v in values)


def shape_of(*values: Values) -> tuple[int, ...]:
    """The shape of the aligned values together."""
    _, aligned = align(*values)
    return np.broadcast_shapes(*(v.data.shape for v in aligned))


def both(a: Values | None, b: Values | None) -> Values | None:
    """The conjunction of two masks; None holds everywhere."""
    if a is None or b is None:
        return b if a is None else a
    axes, (x, y) = align(a, b)
    return Values(axes, x.data & y.data)


def negate(mask: Values) -> Values:
    return Values(mask.axes, ~mask.data, mask.error)


def checked(name: str, axis: int, index: Values, size: int, guard: Values | None) -> Values:
    """`index` brought into range where `guard` is false. Raises IndexError where it holds."""
    bad = (index.data < 0) | (index.data >= size)
    if not bad.any():
        return index
    _, (b, i) = align(Values(index.axes, bad), index)
    wrong = b.data
    if guard is not None:
        _, (b, g, i) = align(Values(index.axes, bad), guard, index)
        wrong = b.data & g.data
    if wrong.any():
        first = np.broadcast_to(i.data, wrong.shape)[wrong].flat[0]
        raise IndexError(f"`{name}` is read at {int(first)} along axis {axis}, which has length {size}")
    return Values(index.axes, np.clip(index.data, 0, max(size - 1, 0)))


def gather(name: str, source: Values, indices: Sequence[Values], guard: Values | None, budget: Budget) -> Values:
    """`source[indices]` for an operand or table `source`, whose own axes have no meaning here. Only the
    elements that are read are touched. Raises IndexError, TooLarge."""
    shape = source.data.shape
    found = [checked(name, k, i, n, guard) for k, (i, n) in enumerate(zip(indices, shape, strict=True))]
    found = [_constant(i) for i in found]
    axes = tuple(dict.fromkeys(a for i in found for a in i.axes))
    extent = shape_of(*found) if found else ()
    budget.check(extent)
    if 0 in shape:
        return Values(merge(*found), np.zeros(extent, source.data.dtype))
    used = [a for i in found for a in i.axes]
    if len(used) == len(set(used)) and all(len(i.axes) <= 1 for i in found):
        return source.map(lambda x: _outer(x, [i.data for i in found]), axes)
    key = tuple(i.expand(axes).data for i in found)
    return source.map(lambda x: x[key], axes)


def _constant(index: Values) -> Values:
    if index.axes and index.data.size and index.data.min() == index.data.max():
        return scalar(index.data.flat[0])
    return index


def _outer(x: Array, indices: Sequence[Array]) -> Array:
    """`x` at every combination of one position per axis; an axis with a single position (0-d) is dropped."""
    first = [_slice(i) for i in indices]
    view = x[tuple(first)]
    scattered = [s == slice(None) for s in first if isinstance(s, slice)]
    rest = [i for i in indices if i.ndim]
    for k in sorted(range(len(rest)), key=lambda k: (rest[k].size / max(view.shape[k], 1), k)):
        if scattered[k]:
            view = view[(slice(None),) * k + (rest[k],)]
    return view


def _slice(index: Array) -> int | slice:
    if index.ndim == 0:
        return int(index)
    if index.size and index[-1] - index[0] == index.size - 1 and bool((np.diff(index) == 1).all()):
        return slice(int(index[0]), int(index[-1]) + 1)
    return slice(None)
