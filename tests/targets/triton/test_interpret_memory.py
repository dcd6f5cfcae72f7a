"""Guarded memory: every access stays in its tensor, masked lanes read what they must."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.jit import JITFunction

from specc.targets.triton.interpret import (
    MemoryFault,
    interpreted,
)


@triton.jit
def _copy(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def _shifted_copy(x, y, n, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at + shift, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def _unmasked_copy(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))


@triton.jit
def _without_other(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n))


@triton.jit
def _scalar_other(x, y, take):
    tl.store(y, tl.load(x, mask=take > 0, other=0.0))


def _nan(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(shape, math.nan, dtype=dtype)


def _run(kernel: JITFunction[Any], grid: tuple[int, ...], *args: object, **meta: object) -> None:
    with interpreted():
        kernel[grid](*args, **meta)


def test_an_out_of_bounds_load_names_kernel_program_argument_and_offset() -> None:
    with pytest.raises(MemoryFault, match=r"_shifted_copy, program \(1, 0, 0\), line \d+: load") as caught:
        _run(_shifted_copy, (2,), torch.zeros(64), torch.zeros(64), 64, 1, BLOCK=32)
    fault = caught.value
    assert (fault.kernel, fault.program, fault.argument, fault.offset) == (
        "_shifted_copy",
        (1, 0, 0),
        "x",
        64,
    )


def test_a_load_before_the_first_element_raises() -> None:
    with pytest.raises(MemoryFault) as caught:
        _run(_shifted_copy, (1,), torch.zeros(64), torch.zeros(64), 64, -3, BLOCK=64)
    assert (caught.value.argument, caught.value.offset) == ("x", -3)


def test_an_out_of_bounds_store_raises_and_writes_nothing() -> None:
    backing = torch.zeros(8)
    with pytest.raises(MemoryFault, match="store") as caught:
        _run(_unmasked_copy, (1,), torch.ones(8), backing[:5], BLOCK=8)
    assert caught.value.argument == "y"
    assert (backing == 0).all()


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_view_with_an_offset_is_guarded_at_both_ends(shift: int) -> None:
    backing = torch.arange(100.0)
    y = _nan(32)
    _run(_shifted_copy, (1,), backing[10:42], y, 32, 0, BLOCK=32)
    assert torch.equal(y, backing[10:42])
    with pytest.raises(MemoryFault):
        _run(_shifted_copy, (1,), backing[10:42], y, 32, shift, BLOCK=32)


def test_a_pointer_may_not_reach_into_another_argument() -> None:
    backing = torch.arange(64.0)
    with pytest.raises(MemoryFault) as caught:
        _run(_shifted_copy, (1,), backing[:32], backing[32:], 32, 32, BLOCK=32)
    assert caught.value.argument == "x"


def test_an_empty_tensor_may_not_be_read() -> None:
    with pytest.raises(MemoryFault):
        _run(_unmasked_copy, (1,), torch.zeros(0), torch.zeros(1), BLOCK=1)


def test_masked_lanes_may_point_anywhere() -> None:
    y = _nan(3)
    _run(_copy, (1,), torch.arange(3.0), y, 3, BLOCK=1024)
    assert y.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_a_masked_lane_without_other_reads_nan(dtype: torch.dtype) -> None:
    y = torch.zeros(8, dtype=dtype)
    _run(_without_other, (1,), torch.ones(8, dtype=dtype), y, 5, BLOCK=8)
    assert torch.isnan(y).tolist() == [False] * 5 + [True] * 3


def test_a_masked_integer_lane_without_other_reads_the_smallest_integer() -> None:
    y = torch.zeros(8, dtype=torch.int32)
    _run(_without_other, (1,), torch.ones(8, dtype=torch.int32), y, 5, BLOCK=8)
    assert y.tolist() == [1] * 5 + [-(2**31)] * 3


@pytest.mark.parametrize(("take", "read"), [(0, 0.0), (1, 7.0)])
def test_an_other_of_zero_on_a_scalar_load_is_kept(take: int, read: float) -> None:
    y = _nan(1)
    _run(_scalar_other, (1,), torch.tensor([7.0]), y, take)
    assert y.item() == read
