"""Drawn values as stored torch tensors: storage type, strides, offsets and NaN where nothing may be read."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch

from specc.evidence.case import Case
from specc.evidence.draw import ROW_STEP, Drawn, inputs
from specc.ir import Role
from specc.kernels import Kernel, Operand

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
    offset, pad = (0, 0) if operand.role is Role.WEIGHT else (case.offset, case.pad)
    return spread(contiguous, offset, pad)


def spread(tensor: torch.Tensor, offset: int, pad: int) -> torch.Tensor:
    """The same values `offset` elements into a buffer of NaN, with `pad` elements between the outermost slices."""
    if not offset and not (pad and tensor.dim() > 1):
        return tensor
    inner = math.prod(tensor.shape[1:])
    step = inner + (pad if tensor.dim() > 1 else 0)
    rows = tensor.shape[0] if tensor.dim() else 1
    buffer = torch.full((offset + rows * step + 1,), float("nan"), dtype=tensor.dtype)
    strides = (step, *tensor.stride()[1:]) if tensor.dim() else ()
    view = torch.as_strided(buffer, tensor.shape, strides, offset)
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
