"""What every node needs: types of storage, and sums over the visible positions alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Precision:
    """Storage type of each role. Arithmetic is done in `accumulator`; a node rounds its result once, when it stores
    it, and where the rounding profile says so."""

    weight: torch.dtype
    activation: torch.dtype
    cache: torch.dtype
    accumulator: torch.dtype

    @classmethod
    def storing(cls, dtype: torch.dtype) -> Precision:
        """Everything stored in `dtype`; arithmetic in float64 for float64, in float32 for shorter types."""
        wide = torch.float64 if dtype is torch.float64 else torch.float32
        return cls(dtype, dtype, dtype, wide)

    def load(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The operands in the accumulator's type."""
        return tuple(t.to(self.accumulator) for t in tensors)


FLOAT64 = Precision.storing(torch.float64)
FLOAT32 = Precision.storing(torch.float32)


def rounded(value: float, dtype: torch.dtype) -> float:
    """A constant after a store in `dtype`."""
    return torch.tensor(value, dtype=torch.float64).to(dtype).item()


def masked_softmax(scores: Tensor, visible: Tensor, dim: int = -1) -> Tensor:
    """Softmax over the visible positions; 0 at the others, and everywhere when there is none."""
    weights = torch.softmax(torch.where(visible, scores, -math.inf), dim)
    return torch.where(visible, weights, 0)


def weighted_sum(equation: str, weights: Tensor, values: Tensor, visible: Tensor) -> Tensor:
    """`einsum(equation, weights, values)` over the visible positions: what a value holds elsewhere, infinities and
    NaN included, does not reach the result."""
    finite = values.isfinite()
    total = torch.einsum(equation, weights, torch.where(finite, values, 0))
    if finite.all():
        return total

    def meet(where: Tensor, what: Tensor) -> Tensor:
        return torch.einsum(equation, where.to(total.dtype), what.to(total.dtype)) > 0

    visible = visible.expand_as(weights)
    none = visible & (weights == 0)
    nan = meet(visible, values.isnan()) | meet(none, values.isinf())
    for limit in (math.inf, -math.inf):
        total = torch.where(meet(weights > 0, values == limit), total + limit, total)
    return torch.where(nan, math.nan, total)


def views(y: Tensor, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Consecutive parts of the last axis of `y`, each split into the axes of its shape."""
    parts = torch.split(y, [math.prod(shape) for shape in shapes], dim=-1)
    return tuple(part.reshape(*y.shape[:-1], *shape) for part, shape in zip(parts, shapes, strict=True))


def append(cache: Tensor, rows: Tensor, pos: Tensor) -> Tensor:
    """Stores `rows` [T, …] at positions `pos` of one sequence, `cache` [S, …], and gives its positions up to the last
    of them, [L, …]."""
    cache[pos] = rows.to(cache.dtype)
    return cache[: int(pos.max()) + 1] if len(pos) else cache[:0]


def append_each(cache: Tensor, rows: Tensor, seq_lens: Tensor) -> Tensor:
    """Stores row b of `rows` [B, …] as the last position of sequence b, `cache` [B, S, …], and gives the cache."""
    cache[torch.arange(len(rows), device=rows.device), seq_lens - 1] = rows.to(cache.dtype)
    return cache
