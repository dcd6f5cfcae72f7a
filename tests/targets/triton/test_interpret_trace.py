"""The record of stores: counts, indices, and elements stored twice."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.jit import JITFunction

from specc.targets.triton.interpret import (
    DoubleWrite,
    interpreted,
)


@triton.jit
def _copy(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def _store_twice(y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    tl.store(y + at, at.to(tl.float32), mask=at < n)


@triton.jit
def _store_same_lane(y, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, BLOCK) // 2, tl.full((BLOCK,), 1.0, tl.float32))


@triton.jit
def _count(y, BLOCK: tl.constexpr):
    tl.atomic_add(y + tl.arange(0, BLOCK) // 2, 1.0)


@triton.jit
def _running_offset(y, start, step):
    tl.store(y, start + step)


def _nan(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(shape, math.nan, dtype=dtype)


def _run(kernel: JITFunction[Any], grid: tuple[int, ...], *args: object, **meta: object) -> None:
    with interpreted():
        kernel[grid](*args, **meta)


def test_a_second_store_by_another_program_raises() -> None:
    with pytest.raises(DoubleWrite, match=r"element 8 of y .* \(0, 0, 0\) and by program \(1, 0, 0\)"):
        _run(_store_twice, (3,), _nan(64), 64, BLOCK=16)


def test_a_second_store_by_the_same_program_raises() -> None:
    with pytest.raises(DoubleWrite, match="element 0 of y"):
        _run(_store_same_lane, (1,), _nan(8), BLOCK=8)


def test_double_stores_are_counted_when_they_may_happen() -> None:
    y = _nan(64)
    with interpreted(check_once=False) as trace:
        _store_twice[(3,)](y, 64, BLOCK=16)
    assert trace.write_counts(y).tolist() == [1] * 8 + [2] * 16 + [1] * 8 + [0] * 32


def test_atomics_may_meet() -> None:
    y = torch.zeros(4)
    with interpreted() as trace:
        _count[(2,)](y, BLOCK=8)
    assert y.tolist() == [4.0] * 4
    assert trace.write_counts(y).tolist() == [4] * 4


def test_counts_follow_a_strided_view() -> None:
    backing = _nan(4, 6)
    view = backing.t()[1:4]
    with interpreted() as trace:
        _copy[(1,)](torch.ones(8), view, 8, BLOCK=8)
    assert trace.write_counts(view).tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0]]
    assert trace.written(view).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]]
    assert trace.write_counts(backing).sum() == 8


def test_written_tensors_name_the_argument_and_the_elements() -> None:
    x, y = torch.zeros(8), _nan(10)
    with interpreted() as trace:
        _copy[(1,)](x, y, 8, BLOCK=8)
    (entry,) = trace.written_tensors()
    assert (entry.kernel, entry.argument, entry.elements) == ("_copy", "y", 8)
    assert entry.tensor is y


def test_a_huge_tensor_costs_what_is_written() -> None:
    y = torch.empty(3_000_000_000, dtype=torch.int8)
    with interpreted() as trace:
        _running_offset[(1,)](y[2_999_999_990:], 3, 4)
    assert trace.written(y).tolist() == [[2_999_999_990]]
