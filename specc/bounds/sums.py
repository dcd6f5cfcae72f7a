"""Running error of sums: rows, and contractions by matrix products."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from specc.bounds.arithmetic import Arithmetic
from specc.bounds.exact import granularity, significant_bits, sum_is_exact
from specc.bounds.formats import EPS64, Array, Bools
from specc.bounds.numerics import AnyOrder, Summation, Tiles
from specc.bounds.values import EXACT, Val, place

SAMPLE = 32
"""Terms that are looked at before all are, to see that a sum is not exact."""
FALSE: Bools = np.zeros((), np.bool_)


def gamma(n: float, unit: float) -> float:
    """n·u / (1 - n·u): what n roundings amount to. Infinite from n·u = 1 on."""
    return n * unit / (1 - n * unit) if n * unit < 1 else np.inf


def row_sum(arithmetic: Arithmetic, a: Val, axis: str, how: Summation) -> Val:
    """Σ of `a` over `axis`."""
    a = arithmetic.to_accumulator(a)
    at = a.axes.index(axis)
    axes = a.axes[:at] + a.axes[at + 1 :]
    value, carried = np.sum(a.value, axis=at), _sum_error(a, at)
    size = np.sum(np.abs(a.value), axis=at) + carried
    exact = FALSE
    if np.any(carried == 0):
        grain = np.squeeze(granularity(a.value, at), axis=at)
        exact = (carried == 0) & (sum_is_exact(size, grain, arithmetic.numerics.format.precision) | _lonely(a, at))
    n = a.value.shape[at]
    unit = arithmetic.unit
    match how:
        case AnyOrder(per_term=per_term):
            rounding = gamma(how.depth(n) * per_term, unit) * size
        case Tiles():
            parts = _row_tiles(a, at, how.tile)
            rounding = _tiled_error(parts, how, unit, np.zeros_like(size), carried)
    total = np.where(exact, 0.0, carried + rounding + gamma(n, EPS64) * size)
    return arithmetic.finish(axes, value, total)


def _sum_error(a: Val, at: int) -> Array:
    if a.error.ndim == 0:
        return a.error * np.full(np.sum(a.value, axis=at).shape, float(a.value.shape[at]))
    return np.asarray(np.sum(np.broadcast_to(a.error, a.value.shape), axis=at))


def _lonely(a: Val, at: int) -> Bools:
    """At most one term is not zero."""
    return np.asarray(np.count_nonzero(a.value, axis=at) <= 1)


def _row_tiles(a: Val, at: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
    value = np.moveaxis(a.value, at, -1)
    for start in range(0, value.shape[-1], tile):
        piece = value[..., start : start + tile]
        yield piece.shape[-1], np.sum(piece, axis=-1), np.sum(np.abs(piece), axis=-1)


def _tiled_error(
    parts: Iterator[tuple[int, Array, Array]], how: Tiles, unit: float, zero: Array, carried: Array
) -> Array:
    """Rounding of a sum over tiles in order: each addition is off by a part of the running sum at that point, which is
    at most what stood there before the tile and all that the tile adds. A run that starts later sums to the
    difference of two such."""
    running, error, far = zero.copy(), zero.copy(), zero.copy()
    for n, total, size in parts:
        share = gamma(how.per_term * n + how.restarts, unit)
        reach = np.abs(running) + size
        if how.restarts:
            far = np.maximum(far, reach)
        error += share * (reach + far + error + carried)
        running += total
    return error


def contraction(arithmetic: Arithmetic, a: Val, b: Val, axis: str, orders: tuple[Summation, ...]) -> Val:
    """Σ over `axis` of a·b by matrix products; axes that both have are a batch. Any of `orders` may be taken."""
    a, b = arithmetic.to_accumulator(a), arithmetic.to_accumulator(b)
    batch = tuple(x for x in a.axes if x in b.axes and x != axis)
    rows = tuple(x for x in a.axes if x not in b.axes)
    columns = tuple(x for x in b.axes if x not in a.axes)
    left, right = (
        _Matrix(a, (*batch, *rows, axis), len(batch), True),
        _Matrix(b, (*batch, axis, *columns), len(batch), False),
    )
    value, error = _product(arithmetic, left, right, orders)
    shape = (*left.shape[: len(batch)], *left.outer, *right.outer)
    axes = (*batch, *rows, *columns)
    return arithmetic.finish(axes, value.reshape(shape), error.reshape(shape))


class _Matrix:
    """An operand as [batch.., rows, inner] (or [batch.., inner, columns])."""

    def __init__(self, v: Val, order: tuple[str, ...], batch: int, left: bool) -> None:
        whole = np.broadcast_to(place(v.value, v.axes, order), self._shape(v, order))
        self.shape = whole.shape
        self.outer = whole.shape[batch:-1] if left else whole.shape[batch + 1 :]
        self.inner = whole.shape[-1] if left else whole.shape[batch]
        flat = (-1, self.inner) if left else (self.inner, -1)
        self.flat = (*whole.shape[:batch], *flat) if 0 not in whole.shape else self._empty(whole.shape[:batch], left)
        self.value = np.ascontiguousarray(whole).reshape(self.flat)
        self.size = np.abs(self.value)
        self.certain = v.certain
        self.error = EXACT
        if not self.certain:
            self.error = np.broadcast_to(place(v.error, v.axes, order), whole.shape).reshape(self.flat)

    @staticmethod
    def _shape(v: Val, order: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(v.value.shape[v.axes.index(x)] for x in order)

    def _empty(self, batch: tuple[int, ...], left: bool) -> tuple[int, ...]:
        n = int(np.prod(self.outer))
        return (*batch, n, self.inner) if left else (*batch, self.inner, n)


def _product(arithmetic: Arithmetic, a: _Matrix, b: _Matrix, orders: tuple[Summation, ...]) -> tuple[Array, Array]:
    with np.errstate(invalid="ignore", over="ignore"):
        value, size = a.value @ b.value, a.size @ b.size
        carried = np.zeros_like(size)
        if not a.certain:
            carried += a.error @ b.size
        if not b.certain:
            carried += (a.size if a.certain else a.size + a.error) @ b.error
    exact = _exact(arithmetic, a, b, size, carried)
    if np.all(exact):
        return value, np.zeros_like(size)
    n, unit = a.inner, arithmetic.unit
    product = 0.0 if _products_exact(a, b, arithmetic.numerics.format.precision) else unit
    rounding = np.zeros_like(size)
    for how in orders:
        np.maximum(rounding, _ordered(a, b, how, unit, size, carried), out=rounding)
    underflow = n * max(arithmetic.numerics.flush, arithmetic.numerics.format.smallest)
    error = carried + rounding + (product + gamma(n, EPS64)) * (size + carried) + underflow
    return value, np.where(exact, 0.0, error)


def _ordered(a: _Matrix, b: _Matrix, how: Summation, unit: float, size: Array, carried: Array) -> Array:
    match how:
        case AnyOrder(per_term=per_term):
            return gamma(how.depth(a.inner) * per_term, unit) * (size + carried)
        case Tiles():
            return _tiled_error(_matrix_tiles(a, b, how.tile), how, unit, np.zeros_like(size), carried)


def _matrix_tiles(a: _Matrix, b: _Matrix, tile: int) -> Iterator[tuple[int, Array, Array]]:
    for start in range(0, a.inner, tile):
        part = slice(start, start + tile)
        left, right = a.value[..., part], b.value[..., part, :]
        yield left.shape[-1], left @ right, a.size[..., part] @ b.size[..., part, :]


def _products_exact(a: _Matrix, b: _Matrix, precision: int) -> bool:
    if not (a.certain and b.certain):
        return False
    bits = sorted((significant_bits(a.value), significant_bits(b.value)))
    return sum(bits) <= precision or bits[0] == 1


def _exact(arithmetic: Arithmetic, a: _Matrix, b: _Matrix, size: Array, carried: Array) -> Bools:
    """Where the accumulator holds every product and every partial sum."""
    clean = carried == 0
    if not np.any(clean):
        return FALSE
    precision = arithmetic.numerics.format.precision
    some = granularity(a.value[..., :SAMPLE], -1) + granularity(b.value[..., :SAMPLE, :], -2)
    if not np.any(clean & sum_is_exact(size, some, precision)) and not _sparse(a.value, b.value):
        return FALSE
    grain = granularity(a.value, -1) + granularity(b.value, -2)
    exact: Bools = clean & (grain >= arithmetic.numerics.format.emin) & sum_is_exact(size, grain, precision)
    if not np.all(exact) and _products_exact(a, b, precision) and _sparse(a.value, b.value):
        exact |= clean & ((a.value != 0).astype(np.float64) @ (b.value != 0).astype(np.float64) <= 1)
    return exact


def _sparse(*operands: Array) -> bool:
    return any(np.count_nonzero(x) * 2 <= x.size for x in operands)
