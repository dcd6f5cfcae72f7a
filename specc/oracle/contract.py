"""Sums of products over named axes, as batched matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from specc.oracle.arithmetic import Float64
from specc.oracle.arrays import Array, Budget, Values, align, shape_of


def contract(field: Float64, factors: Sequence[Values], axis: str, mask: Values | None, budget: Budget) -> Values:
    """Σ over `axis` of the product of `factors`, each of which has that axis, where `mask` holds. A factor
    where the mask is false does not count, be it inf or NaN. Raises TooLarge."""
    if mask is None:
        return _contract(field, list(factors), axis, budget)
    covered = [k for k, f in enumerate(factors) if set(mask.axes) <= set(f.axes)]
    if not covered:
        smallest = min(range(len(factors)), key=lambda k: factors[k].data.size)
        covered = [smallest]
    kept = [_masked(field, f, mask, budget) if k in covered else f for k, f in enumerate(factors)]
    loose = [f for k, f in enumerate(factors) if k not in covered]
    sound = _sound(field, loose, axis, mask.length(axis) if axis in mask.axes else factors[0].length(axis))
    if sound.all():
        return _contract(field, kept, axis, budget)
    return _split(field, factors, kept, axis, mask, sound, budget)


def _split(
    field: Float64,
    factors: Sequence[Values],
    kept: Sequence[Values],
    axis: str,
    mask: Values,
    sound: Array,
    budget: Budget,
) -> Values:
    """Positions with an inf or NaN that the mask may hide are multiplied out, the rest goes the fast way."""
    rest = np.flatnonzero(sound)
    odd = np.flatnonzero(~sound)
    terms = _product(field, [f.take(axis, odd) for f in factors], budget)
    slow = field.sum(_masked(field, terms, mask.take(axis, odd), budget), axis)
    if not rest.size:
        return slow
    fast = _contract(field, [f.take(axis, rest) for f in kept], axis, budget)
    _, (a, b) = align(slow, fast)
    return field.add(a, b)


def _sound(field: Float64, factors: Sequence[Values], axis: str, n: int) -> Array:
    sound = np.ones(n, bool)
    for f in factors:
        others = tuple(k for k, a in enumerate(f.axes) if a != axis)
        sound &= field.finite(f).all(axis=others)
    return sound


def _masked(field: Float64, f: Values, mask: Values, budget: Budget) -> Values:
    budget.check(shape_of(f, mask))
    _, (x, m) = align(f, mask)
    return field.keep(m, x)


def _product(field: Float64, factors: Sequence[Values], budget: Budget) -> Values:
    out = factors[0]
    for f in factors[1:]:
        budget.check(shape_of(out, f))
        _, (a, b) = align(out, f)
        out = field.mul(a, b)
    return out


def _contract(field: Float64, factors: list[Values], axis: str, budget: Budget) -> Values:
    while len(factors) > 2:
        factors = _reduce_count(field, factors, budget)
    if len(factors) == 1:
        return field.sum(factors[0], axis)
    a, b = factors
    nested = set(a.axes) <= set(b.axes) or set(b.axes) <= set(a.axes)
    if nested and (min(a.data.ndim, b.data.ndim) > 1 or a.axes == b.axes):
        return field.sum(_product(field, factors, budget), axis)
    return _matmul(field, a, b, axis, budget)


def _reduce_count(field: Float64, factors: list[Values], budget: Budget) -> list[Values]:
    """Multiplies the two factors whose product is smallest."""
    pairs = [(i, j) for i in range(len(factors)) for j in range(i + 1, len(factors))]
    i, j = min(pairs, key=lambda p: (prod(shape_of(factors[p[0]], factors[p[1]])), p))
    rest = [f for k, f in enumerate(factors) if k not in (i, j)]
    return [*rest, _product(field, [factors[i], factors[j]], budget)]


def _matmul(field: Float64, a: Values, b: Values, axis: str, budget: Budget) -> Values:
    batch = tuple(x for x in a.axes if x in b.axes and x != axis)
    rows = tuple(x for x in a.axes if x not in batch and x != axis)
    columns = tuple(x for x in b.axes if x not in batch and x != axis)
    sizes = {x: v.length(x) for v in (a, b) for x in v.axes}
    n, m, k, c = (prod(sizes[x] for x in part) for part in (batch, rows, (axis,), columns))
    budget.check((n, m, c))
    left = a.expand((*batch, *rows, axis)).map(lambda x: x.reshape(n, m, k), ("b", "m", "k"))
    right = b.expand((*batch, axis, *columns)).map(lambda x: x.reshape(n, k, c), ("b", "k", "n"))
    axes = (*batch, *rows, *columns)
    return field.matmul(left, right).map(lambda x: x.reshape([sizes[a] for a in axes]), axes)
