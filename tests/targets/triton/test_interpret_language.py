"""Triton's language as kernels use it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.language import exp
from triton.language.extra.libdevice import tanh
from triton.runtime.jit import JITFunction

from specc.targets.triton.interpret import (
    FalseHint,
    KernelError,
    interpreted,
)


@triton.jit
def _scaled(x, factor):
    return x * factor


@triton.jit
def _softmax_rows(x, y, n, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = _scaled(tl.load(x + row * n + at, mask=at < n, other=float("-inf")).to(tl.float32), scale)
    e = tl.exp(v - tl.max(v, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(y + row * n + at, out.to(y.dtype.element_ty), mask=at < n)


@triton.jit
def _online(m_left, s_left, m_right, s_right):
    m = tl.maximum(m_left, m_right)
    return m, s_left * tl.exp(m_left - m) + s_right * tl.exp(m_right - m)


@triton.jit
def _log_sum_exp(x, y, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    m, s = tl.reduce((v, tl.full((BLOCK,), 1.0, tl.float32)), 0, _online)
    tl.store(y, m + tl.log(s))


@triton.jit
def _decay(a_left, b_left, a_right, b_right):
    return a_left * a_right, b_left * a_right + b_right


@triton.jit
def _linear_recurrence(a, b, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    _, h = tl.associative_scan((tl.load(a + at), tl.load(b + at)), 0, _decay)
    tl.store(y + at, h)


@triton.jit
def _shapes(x, y, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    left, right = tl.split(tl.reshape(tl.load(x + at), (M, N // 2, 2)))
    back = tl.reshape(tl.join(left, right), (M, N))
    tl.store(y + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], tl.trans(back) + back.T)


@triton.jit
def _statistics(x, y, M: tl.constexpr, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    rows = tl.arange(0, M)
    tl.store(y + rows, v.sum(axis=1))
    tl.store(y + M + rows, tl.max(v, axis=1))
    tl.store(y + 2 * M + rows, tl.argmax(v, axis=1).to(tl.float32))
    tl.store(y + 3 * M + rows, tl.min(v, axis=-1))
    tl.store(y + 4 * M, tl.sum(v))
    tl.store(y + 4 * M + 1 + tl.arange(0, N), tl.sum(v, axis=0))


@triton.jit
def _logic(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at >= 2 and at < n
    tl.store(y + at, tl.where(not inside, -1.0, tl.load(x + at)))


@triton.jit
def _block_condition(y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if at < 2:
        tl.store(y + at, 1.0)


@triton.jit
def _hinted(x, y, first, BLOCK: tl.constexpr):
    tl.assume(first >= 0)
    first = tl.multiple_of(first, 16)
    at = tl.max_contiguous(first + tl.arange(0, BLOCK), BLOCK)
    tl.store(y + at, tl.load(x + at))


@triton.jit
def _unrolled(y, N: tl.constexpr):
    for i in tl.static_range(N):
        tl.store(y + i, i * 1.0)
    for i in tl.range(N, 2 * N, num_stages=2):
        tl.store(y + i, i.to(tl.float32))


@triton.jit
def _unsupported_range(y, a, b):
    tl.store(y, 0 < a < b)


_GAIN = tl.constexpr(1.5)


@triton.jit
def _tile_copy(x, y, M, N, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(y, shape=[M, N], strides=[N, 1], block_shape=[BLOCK, BLOCK])
    at = [tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK]
    target.store(at, source.load(at))


@triton.jit
def _copy_of_a_tuple(tensors, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(tensors[1] + at, _GAIN * tl.load(tensors[0] + at, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def _imported_by_name(x, flags, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    flag = tl.load(flags + at)
    tl.store(y + at, tl.where(flag, exp(v), tanh(v)))
    tl.store(flags + at, ~flag)


@triton.jit
def _collatz(y, n):
    steps = 0
    while n != 1 and steps < 1000:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    tl.store(y, steps)


def _nan(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(shape, math.nan, dtype=dtype)


def _run(kernel: JITFunction[Any], grid: tuple[int, ...], *args: object, **meta: object) -> None:
    with interpreted():
        kernel[grid](*args, **meta)


def test_device_functions_and_reductions() -> None:
    x, y = torch.randn(5, 37), _nan(5, 37)
    _run(_softmax_rows, (5,), x, y, 37, 0.5, BLOCK=64)
    torch.testing.assert_close(y, torch.softmax(x * 0.5, dim=1))


def test_a_reduction_with_a_function_of_its_own() -> None:
    x, y = torch.randn(256) * 10, _nan(1)
    _run(_log_sum_exp, (1,), x, y, BLOCK=256)
    torch.testing.assert_close(y[0], torch.logsumexp(x, 0))


def test_a_scan_with_a_function_of_its_own() -> None:
    a, b, y = torch.rand(64), torch.randn(64), _nan(64)
    _run(_linear_recurrence, (1,), a, b, y, BLOCK=64)
    h, expected = 0.0, []
    for decay, step in zip(a.tolist(), b.tolist(), strict=True):
        h = decay * h + step
        expected.append(h)
    torch.testing.assert_close(y, torch.tensor(expected))


def test_split_join_reshape_and_transpose() -> None:
    x, y = torch.randn(8, 16), _nan(16, 8)
    _run(_shapes, (1,), x, y, M=8, N=16)
    assert torch.equal(y, 2 * x.t())


def test_reductions_over_every_axis() -> None:
    x, y = torch.randn(8, 16), _nan(4 * 8 + 1 + 16)
    _run(_statistics, (1,), x, y, M=8, N=16)
    rows = [x.sum(1), x.amax(1), x.argmax(1).float(), x.amin(1), x.sum().reshape(1), x.sum(0)]
    torch.testing.assert_close(y, torch.cat(rows))


def test_and_or_not_act_on_every_lane() -> None:
    x, y = torch.arange(8.0), _nan(8)
    _run(_logic, (1,), x, y, 5, BLOCK=8)
    assert y.tolist() == [-1, -1, 2, 3, 4, -1, -1, -1]


def test_a_block_as_condition_raises() -> None:
    with pytest.raises(KernelError, match="scalar"):
        _run(_block_condition, (1,), _nan(8), BLOCK=8)


def test_a_chained_comparison_raises() -> None:
    with pytest.raises(KernelError, match="chained"):
        _run(_unsupported_range, (1,), _nan(1), 1, 2)


def test_static_and_pipelined_ranges() -> None:
    y = _nan(8)
    _run(_unrolled, (1,), y, N=4)
    assert y.tolist() == list(range(8))


def test_true_hints_pass_and_false_hints_raise() -> None:
    x, y = torch.randn(64), _nan(64)
    _run(_hinted, (1,), x, y, 32, BLOCK=16)
    assert torch.equal(x[32:48], y[32:48])
    with pytest.raises(FalseHint, match="multiple"):
        _run(_hinted, (1,), x, y, 8, BLOCK=16)
    with pytest.raises(FalseHint, match="assume"):
        _run(_hinted, (1,), x, y, -16, BLOCK=16)


def test_descriptors_copy_tiles_and_stop_at_the_edges() -> None:
    x, y = torch.randn(40, 52), _nan(40, 52)
    with interpreted() as trace:
        _tile_copy[(3, 4)](x, y, 40, 52, BLOCK=16)
    assert torch.equal(x, y)
    assert (trace.write_counts(y) == 1).all()


def test_tuples_of_tensors_and_global_constants() -> None:
    x, y = torch.arange(8.0), _nan(7)
    _run(_copy_of_a_tuple, (1,), (x, y), 7, BLOCK=8)
    assert torch.equal(y, 1.5 * x[:7])


def test_loops_and_conditions_on_scalars() -> None:
    y = torch.zeros(1, dtype=torch.int32)
    _run(_collatz, (1,), y, 27)
    assert y.item() == 111


def test_functions_imported_by_name_and_boolean_tensors() -> None:
    x, flags, y = torch.randn(8), torch.arange(8) % 3 == 0, _nan(8)
    before = flags.clone()
    _run(_imported_by_name, (1,), x, flags, y, BLOCK=8)
    torch.testing.assert_close(y, torch.where(before, x.exp(), x.tanh()))
    assert torch.equal(flags, ~before)
