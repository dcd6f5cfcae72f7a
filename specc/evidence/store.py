"""Drawn values as stored torch tensors: storage type, strides, offsets and NaN where nothing may be read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from specc.evidence.case import Case
from specc.evidence.draw import ROW_STEP, Drawn
from specc.evidence.integers import extent
from specc.evidence.operands import inputs
from specc.ir import Role
from specc.kernels import Kernel, Operand
from specc.ops import Sort

VECTOR = 8
"""Elements of the longest vector."""
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32, "float64": torch.float64}


def stored(kernel: Kernel, drawn: Mapping[str, Drawn], case: Case, widen: bool = False) -> dict[str, torch.Tensor]:
    """The inputs of the formula of `kernel` as a launcher gets them. `widen`: every real one in float64."""
    operands = inputs(kernel)
    types = {n: torch.float64 if widen else DTYPES[operands[n].stored(case.dtype)] for n in drawn}
    return {name: _store(operands[name], d, case, types[name]) for name, d in drawn.items()}


def _store(operand: Operand, drawn: Drawn, case: Case, dtype: torch.dtype) -> torch.Tensor:
    if operand.role is Role.INDEX:
        return torch.from_numpy(drawn.exact.astype(np.int32 if case.index_type == "int32" else np.int64))
    if drawn.buffer is not None:
        flat = torch.from_numpy(drawn.buffer).to(dtype)
        return torch.as_strided(flat, drawn.exact.shape, (ROW_STEP, 1))
    values = drawn.exact if drawn.unused is None else np.where(drawn.unused, np.nan, drawn.exact)
    contiguous = torch.from_numpy(np.ascontiguousarray(values)).to(dtype)
    return spread(contiguous, *_place(operand, case))


def _place(operand: Operand, case: Case) -> tuple[int, int, int]:
    """Elements before an operand and between its rows, and the axis of these."""
    moves = operand.name == case.moved if case.moved else operand.role is not Role.WEIGHT
    return (case.offset, case.pad, case.axis) if moves else (0, 0, 0)


def placed_results(kernel: Kernel, case: Case) -> dict[str, torch.Tensor]:
    """Results before they are written, where the case says how they lie or are stored: the one that it moves, and those
    that no input gives a type."""
    chosen = [o for o in kernel.operands if o.output and o.name == case.moved]
    empty = _unwritten(chosen, dict(case.sizes), case.dtype)
    moved = {n: spread(t, case.offset, case.pad, case.axis) for n, t in empty.items()}
    return untyped_results(kernel, dict(case.sizes), case.dtype) | moved


def untyped_results(kernel: Kernel, sizes: Mapping[str, int], dtype: str) -> dict[str, torch.Tensor]:
    """The results of a kernel without real inputs but accumulators, others saying how results are stored, before they
    are written."""
    reals = [o for o in kernel.operands if o.sort is Sort.REAL]
    if not all(o.output or o.role is Role.ACCUMULATOR for o in reals):
        return {}
    return _unwritten([o for o in reals if o.output], sizes, dtype)


def _unwritten(operands: Sequence[Operand], sizes: Mapping[str, int], dtype: str) -> dict[str, torch.Tensor]:
    return {
        o.name: torch.full([extent(d, sizes) for d in o.dims], math.nan, dtype=DTYPES[o.stored(dtype)])
        for o in operands
    }


def spread(tensor: torch.Tensor, offset: int, pad: int, axis: int = 0) -> torch.Tensor:
    """The same values `offset` elements into a buffer of NaN, with `pad` elements between the slices of an axis; slices
    of axes before it start at multiples of VECTOR elements, so that they stay on boundaries that they were on."""
    if not offset and not (pad and tensor.dim() > axis + 1):
        return tensor
    steps: list[int] = []
    reach = 1
    for n in reversed(range(tensor.dim())):
        outer = n < axis and n < tensor.dim() - 1
        steps.append(-(-reach // VECTOR) * VECTOR if outer else reach + (pad if n == axis < tensor.dim() - 1 else 0))
        reach = steps[-1] * tensor.shape[n]
    buffer = torch.full((offset + reach + 1,), float("nan"), dtype=tensor.dtype)
    view = torch.as_strided(buffer, tensor.shape, steps[::-1], offset)
    view.copy_(tensor)
    return view


def exact_values(drawn: Mapping[str, Drawn]) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """What oracle and bounds are given: stored values, without poison."""
    return {name: d.exact for name, d in drawn.items()}


def snapshot(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies of the memory that lies under `tensors`, gaps included."""
    return {n: _memory(t).clone() for n, t in tensors.items()}


def changed(before: Mapping[str, torch.Tensor], tensors: Mapping[str, torch.Tensor]) -> list[str]:
    """Names of tensors whose memory differs, bit for bit, from a snapshot."""
    return [n for n, t in tensors.items() if not torch.equal(before[n], _memory(t))]


def _memory(tensor: torch.Tensor) -> torch.Tensor:
    return torch.tensor([], dtype=torch.uint8).set_(tensor.untyped_storage())
