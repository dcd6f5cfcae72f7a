"""Operands by formula: the maker of cases computes them with NumPy, the GPU check with torch, both to the same bits.

An element is a binary fraction that its storage type holds exactly. A large operand is rows that overlap in one short
buffer, so that nobody computes or ships gigabytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch

LARGE = 1 << 23
"""Elements from which on rows overlap."""
ROW_STEP = 8
"""Elements between the beginnings of overlapping rows."""
WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class Layout:
    """`kind`: "real", "unit", "index" (below `top`), or "places" (the numbers of `places`, repeated). Reals have `bits`
    bits and lie between -2^(1 - shift) and 2^(1 - shift); with `tail`, only so many at the end of a row are not 0.
    Units lie between ½ and 1, 1 included. `dtype`: how it is stored, if not in the storage type of the case, or as
    int64. `skew`: elements from a multiple of 16 bytes to the first one."""

    name: str
    shape: tuple[int, ...]
    kind: str
    seed: int
    shift: int = 0
    bits: int = 8
    tail: int = 0
    top: int = 0
    places: tuple[int, ...] = ()
    dtype: str = ""
    skew: int = 0

    def stored(self, dtype: str) -> str:
        """The type of its elements, where `dtype` is that of the case."""
        return self.dtype or (dtype if self.kind in ("real", "unit") else "int64")

    @property
    def overlapping(self) -> bool:
        return self.kind == "real" and prod(self.shape) > LARGE

    @property
    def length(self) -> int:
        """Elements of the buffer."""
        if self.overlapping:
            return (prod(self.shape[:-1]) - 1) * ROW_STEP + self.shape[-1]
        return prod(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index to the next, where rows overlap."""
        outer = self.shape[:-1]
        return (*(ROW_STEP * prod(outer[n + 1 :]) for n in range(len(outer))), 1)


def layout(values: Mapping[str, Any]) -> Layout:
    """From JSON, where tuples are lists."""
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    return Layout(**fields)


def mixed(number: Any, seed: int) -> Any:
    """32 well-mixed bits of each 64-bit integer; the same in NumPy and torch, whose products wrap alike."""
    x = (number * 2654435761 + seed * 40503 + 1) & WORD
    x = ((x ^ (x >> 16)) * 2246822519) & WORD
    x = ((x ^ (x >> 13)) * 3266489917) & WORD
    return x ^ (x >> 16)


def reals(words: Any, places: Any, o: Layout) -> Any:
    """Binary fractions out of random words at `places` of the buffer."""
    if o.kind == "unit":
        return 1 - (words & ((1 << (o.bits - 1)) - 1)) / float(1 << o.bits)
    values = ((words & ((1 << o.bits) - 1)) - (1 << (o.bits - 1))) / float(1 << (o.bits - 2 + o.shift))
    return values * (places % o.shape[-1] >= o.shape[-1] - o.tail) if o.tail else values


def numpy_operand(o: Layout) -> np.ndarray[Any, np.dtype[Any]]:
    """Exact values: float64 or int64."""
    if o.kind == "places":
        return np.resize(np.array(o.places, dtype=np.int64), o.shape)
    places = np.arange(o.length, dtype=np.int64)
    words = mixed(places, o.seed)
    if o.kind == "index":
        return np.asarray(words % o.top).reshape(o.shape)
    buffer = reals(words, places, o)
    if o.overlapping:
        steps = tuple(n * buffer.itemsize for n in o.strides)
        return np.lib.stride_tricks.as_strided(buffer, o.shape, steps, writeable=False)
    return np.asarray(buffer).reshape(o.shape)


def torch_operand(o: Layout, dtype: str, device: torch.device) -> torch.Tensor:
    """The same values, contiguous and stored in `dtype`, or in the operand's own."""
    values = _values(o, dtype, device)
    if not o.skew:
        return values.contiguous()
    room = torch.empty(values.numel() + o.skew, dtype=values.dtype, device=device)
    return room[o.skew :].view(o.shape).copy_(values)


def _values(o: Layout, dtype: str, device: torch.device) -> torch.Tensor:
    stored = getattr(torch, o.stored(dtype))
    if o.kind == "places":
        return torch.as_tensor(np.resize(np.array(o.places), o.shape), dtype=stored, device=device)
    places = torch.arange(o.length, dtype=torch.int64, device=device)
    words = mixed(places, o.seed)
    if o.kind == "index":
        found: torch.Tensor = (words % o.top).reshape(o.shape).to(stored)
        return found
    buffer: torch.Tensor = reals(words, places, o).to(stored)
    return buffer.as_strided(o.shape, o.strides) if o.overlapping else buffer.reshape(o.shape)
