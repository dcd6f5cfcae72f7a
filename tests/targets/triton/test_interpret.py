"""The interpreter harness: launching, sampling, and real arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.runtime.jit import JITFunction

from specc.targets.triton.interpret import (
    MemoryFault,
    Program,
    interpreted,
)


@triton.jit
def _copy(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def _unmasked_copy(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))


@triton.jit
def _dot(a, b, c, N: tl.constexpr, PRECISION: tl.constexpr):
    row = tl.arange(0, N)
    at = row[:, None] * N + row[None, :]
    acc = tl.zeros((N, N), dtype=tl.float32)
    if PRECISION == "default":
        acc = tl.dot(tl.load(a + at), tl.load(b + at), acc)
    else:
        acc = tl.dot(tl.load(a + at), tl.load(b + at), acc, input_precision=PRECISION)
    tl.store(c + at, acc)


@triton.jit
def _functions(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(y + at, libdevice.tanh(v))
    tl.store(y + BLOCK + at, libdevice.log1p(v))
    tl.store(y + 2 * BLOCK + at, cuda_libdevice.expm1(v))
    tl.store(y + 3 * BLOCK + at, libdevice.pow(v, v * 0 + 2.5))
    tl.store(y + 4 * BLOCK + at, libdevice.rsqrt(v))
    tl.store(y + 5 * BLOCK + at, tl.sin(v) + tl.cos(v) + tl.exp(v) + tl.log(v) + tl.sqrt(v) + tl.floor(v))


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
def _grid_shape(y):
    tl.store(y + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), 1.0)


@triton.jit
def _normalised(x, w, y, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    weight = tl.load(w + at, mask=at < n, other=0.0).to(tl.float32)
    out = v * tl.rsqrt(tl.sum(v * v, axis=0) / n + eps) * weight
    tl.store(y + row * n + at, out.to(tl.bfloat16).to(y.dtype.element_ty), mask=at < n)


def _nan(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(shape, math.nan, dtype=dtype)


def _run(kernel: JITFunction[Any], grid: tuple[int, ...], *args: object, **meta: object) -> None:
    with interpreted():
        kernel[grid](*args, **meta)


def test_a_plain_launcher_runs_and_options_have_no_effect() -> None:
    x, y = torch.randn(100), _nan(100)
    with interpreted() as trace:
        _copy[(triton.cdiv(100, 32),)](x, y, 100, BLOCK=32, num_warps=8, num_stages=4)
    assert torch.equal(x, y)
    assert (trace.write_counts(y) == 1).all()
    (launch,) = trace.launches
    assert (launch.kernel, launch.grid, len(launch.programs)) == ("_copy", (4, 1, 1), 4)


def test_a_grid_function_sees_constants() -> None:
    x, y = torch.randn(100), _nan(100)
    with interpreted():
        _copy[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, y, 100, BLOCK=64)
    assert torch.equal(x, y)


def test_an_unknown_keyword_is_refused() -> None:
    with interpreted(), pytest.raises(TypeError, match="num_wraps"):
        _copy[(1,)](torch.zeros(4), torch.zeros(4), 4, BLOCK=4, num_wraps=4)


def test_a_grid_longer_than_cuda_takes_is_refused() -> None:
    with interpreted(programs=lambda kernel, grid: []), pytest.raises(ValueError, match="65535"):
        _grid_shape[(1, 65536)](torch.zeros(1))


def test_an_empty_grid_runs_nothing() -> None:
    y = _nan(4)
    with interpreted() as trace:
        _copy[(0,)](torch.zeros(4), y, 4, BLOCK=4)
    assert trace.launches[0].programs == ()
    assert torch.isnan(y).all()


def test_sampled_programs_alone_run() -> None:
    def corners(kernel: str, grid: Program) -> Iterable[Program]:
        assert kernel == "_grid_shape"
        return [(0, 0, 0), (grid[0] - 1, grid[1] - 1, 0)]

    y = _nan(300, 200)
    with interpreted(programs=corners) as trace:
        _grid_shape[(300, 200)](y)
    assert trace.written(y).tolist() == [[0, 0], [299, 199]]
    assert trace.launches[0].programs == ((0, 0, 0), (299, 199, 0))
    assert int((~torch.isnan(y)).sum()) == 2


def test_a_sampled_program_outside_of_the_grid_is_refused() -> None:
    with interpreted(programs=lambda kernel, grid: [(4, 0, 0)]), pytest.raises(ValueError, match="outside"):
        _grid_shape[(4,)](torch.zeros(4))


def test_triton_is_as_before_after_a_launch_and_after_a_fault() -> None:
    def state() -> list[object]:
        owners = (
            tl,
            tl.core,
            tl.math,
            tl.tensor,
            tl.dtype,
            tl.float32,
            libdevice,
            cuda_libdevice,
            JITFunction,
        )
        return [dict(vars(owner)) for owner in owners]

    before = state()
    with interpreted(widen=True):
        _copy[(1,)](torch.zeros(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64), 4, BLOCK=4)
    assert state() == before
    with pytest.raises(MemoryFault):
        _run(_unmasked_copy, (1,), torch.zeros(3), torch.zeros(4), BLOCK=4)
    assert state() == before


def test_blocks_nest_and_the_inner_trace_takes_the_launch() -> None:
    y = _nan(4)
    with interpreted() as outer:
        with interpreted() as inner:
            _copy[(1,)](torch.zeros(4), y, 4, BLOCK=4)
        assert (len(outer.launches), len(inner.launches)) == (0, 1)
        _copy[(1,)](torch.zeros(4), y, 4, BLOCK=4)
    assert len(outer.launches) == 1


def test_a_kernel_cannot_be_launched_on_cpu_tensors_outside_of_a_block() -> None:
    with pytest.raises(RuntimeError):
        _copy[(1,)](torch.zeros(4), torch.zeros(4), 4, BLOCK=4)


def test_widened_kernels_agree_with_float64() -> None:
    torch.manual_seed(2)
    x, w = torch.randn(3, 100, dtype=torch.float64), torch.randn(100, dtype=torch.float64)
    y = _nan(3, 100, dtype=torch.float64)
    with interpreted(widen=True):
        _normalised[(3,)](x, w, y, 100, 1e-6, BLOCK=128)
    expected = x / torch.sqrt((x * x).mean(1, keepdim=True) + 1e-6) * w
    torch.testing.assert_close(y, expected, rtol=1e-13, atol=1e-13)


def test_widened_products_are_not_rounded() -> None:
    torch.manual_seed(3)
    a, b = torch.randn(32, 32, dtype=torch.float64), torch.randn(32, 32, dtype=torch.float64)
    c = _nan(32, 32, dtype=torch.float64)
    with interpreted(widen=True):
        _dot[(1,)](a, b, c, N=32, PRECISION="default")
    torch.testing.assert_close(c, a @ b, rtol=1e-13, atol=1e-13)


def test_widened_scans_and_functions() -> None:
    x = torch.linspace(0.1, 2, 16, dtype=torch.float64)
    y, total = _nan(6, 16, dtype=torch.float64), _nan(1, dtype=torch.float64)
    with interpreted(widen=True):
        _functions[(1,)](x, y, BLOCK=16)
        _log_sum_exp[(1,)](x, total, BLOCK=16)
    torch.testing.assert_close(y[0], x.tanh(), rtol=1e-14, atol=0)
    torch.testing.assert_close(total[0], torch.logsumexp(x, 0), rtol=1e-14, atol=0)


def test_the_unwidened_kernel_rounds() -> None:
    x, w = torch.randn(1, 100), torch.randn(100)
    y = _nan(1, 100)
    _run(_normalised, (1,), x, w, y, 100, 1e-6, BLOCK=128)
    assert torch.equal(y, y.bfloat16().float())


def test_widening_takes_float64_tensors_only() -> None:
    with interpreted(widen=True), pytest.raises(ValueError, match="x is torch.float32"):
        _copy[(1,)](torch.zeros(4), torch.zeros(4), 4, BLOCK=4)
