"""Where an expression is evaluated: the values of its index variables, and which of them count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from specc.oracle.arrays import Array, Values, both


@dataclass(frozen=True)
class Table:
    """Values of a recurrence at the `positions` of each of its indices; time comes first, -1 is before 0."""

    positions: tuple[Array, ...]
    values: Values

    def places(self, axis: int, index: Array) -> Array:
        """Where the positions `index` stand along `axis`; all of them are there."""
        return np.searchsorted(self.positions[axis], index)


@dataclass(frozen=True)
class Scope:
    """`vars` gives each variable its values. Where `guard` is false, nothing is read and any value will do.
    `previous` holds the last step of each recurrence under way."""

    vars: Mapping[str, Values] = field(default_factory=dict)
    guard: Values | None = None
    previous: Mapping[str, Table] = field(default_factory=dict)

    def bind(self, /, **values: Values) -> Scope:
        return replace(self, vars={**self.vars, **values})

    def over(self, var: str, positions: Array) -> tuple[Scope, str]:
        """`var` runs over `positions` along a new axis, whose name is returned."""
        used = {a for v in self.vars.values() for a in v.axes} | set(self.guard.axes if self.guard else ())
        axis = var
        while axis in used:
            axis += "'"
        return self.bind(**{var: Values((axis,), positions)}), axis

    def take(self, axis: str, chosen: Array) -> Scope:
        """Only the `chosen` places along `axis`."""
        guard = None if self.guard is None else self.guard.take(axis, chosen)
        return replace(self, vars={n: v.take(axis, chosen) for n, v in self.vars.items()}, guard=guard)

    def where(self, mask: Values | None) -> Scope:
        return replace(self, guard=both(self.guard, mask))

    def without_guard_on(self, axes: tuple[str, ...]) -> Scope:
        """The guard holds where it held anywhere along `axes`."""
        return self if self.guard is None else replace(self, guard=self.guard.any_over(axes))
