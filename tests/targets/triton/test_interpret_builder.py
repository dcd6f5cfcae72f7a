"""A GPU's roundings, products and integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.runtime.jit import JITFunction

from specc.targets.triton.interpret import (
    IndexWrap,
    KernelError,
    KernelFault,
    StorageArithmetic,
    interpreted,
)


@triton.jit
def _cast(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at).to(y.dtype.element_ty))


@triton.jit
def _double_in_storage(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(y + at, v + v)


@triton.jit
def _compare_in_storage(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(y + at, tl.where(v > tl.load(y + at), v, -1.0))


@triton.jit
def _sum_in_storage(x, y, BLOCK: tl.constexpr):
    tl.store(y, tl.sum(tl.load(x + tl.arange(0, BLOCK)), axis=0))


@triton.jit
def _exp_in_storage(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.exp(tl.load(x + at)))


@triton.jit
def _select_in_storage(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.where(at < n, tl.load(x + at), 0.0))


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
def _tanh_in_storage(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, libdevice.tanh(tl.load(x + at)))


@triton.jit
def _row_times_stride(x, y, row, stride):
    tl.store(y, tl.load(x + row * stride))


@triton.jit
def _row_times_stride_wide(x, y, row, stride):
    tl.store(y, tl.load(x + (row.to(tl.int64) * stride - 4_000_000_000)))


@triton.jit
def _loop_offset(y, steps, stride):
    total = tl.zeros((), dtype=tl.int64)
    for i in range(steps):
        total += i * stride
    tl.store(y, total)


@triton.jit
def _running_offset(y, start, step):
    tl.store(y, start + step)


@triton.jit
def _truncating_division(y, a, b):
    tl.store(y, a // b)
    tl.store(y + 1, a % b)


@triton.jit
def _small_product(a, b, c, N: tl.constexpr, K: tl.constexpr):
    n, k = tl.arange(0, N), tl.arange(0, K)
    acc = tl.dot(tl.load(a + n[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + n[None, :]))
    tl.store(c + n[:, None] * N + n[None, :], acc)


def _nan(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(shape, math.nan, dtype=dtype)


def _run(kernel: JITFunction[Any], grid: tuple[int, ...], *args: object, **meta: object) -> None:
    with interpreted():
        kernel[grid](*args, **meta)


@triton.jit
def _scaled_store(y, factor):
    tl.store(y, factor)


def _tf32(x: torch.Tensor) -> torch.Tensor:
    mantissa, exponent = torch.frexp(x.double())
    return torch.ldexp(torch.round(mantissa * 2048) / 2048, exponent)


def _product(precision: str, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    a, b = torch.randn(32, 32).to(dtype), torch.randn(32, 32).to(dtype)
    c = _nan(32, 32)
    _run(_dot, (1,), a, b, c, N=32, PRECISION=precision)
    return a, b, c.double()


def test_float32_to_bfloat16_rounds_to_nearest_even() -> None:
    values = [1.0, 1.00390625, 1.01171875, 1.0039063, -1.00390625, math.inf, -math.inf, 3.4e38, 1e-40, -0.0]
    x = torch.tensor([*values, *torch.randn(6).tolist()])
    y = torch.zeros(16, dtype=torch.bfloat16)
    _run(_cast, (1,), x, y, BLOCK=16)
    assert torch.equal(y, x.bfloat16())
    _run(_cast, (1,), torch.full((16,), math.nan), y, BLOCK=16)
    assert torch.isnan(y).all()


def test_float32_to_float16_rounds_to_nearest_even_and_overflows() -> None:
    x = torch.tensor([2049.0, 2051.0, 65519.0, 65520.0, 1e-8, math.nan, -math.inf, 0.1])
    y = torch.zeros(8, dtype=torch.float16)
    _run(_cast, (1,), x, y, BLOCK=8)
    assert torch.equal(y.nan_to_num(7.0), x.half().nan_to_num(7.0))


@pytest.mark.parametrize("target", [torch.float32, torch.float16, torch.float64, torch.int32])
def test_bfloat16_is_widened_exactly(target: torch.dtype) -> None:
    x = torch.tensor([1.5, -2.25, 100.0, 0.0], dtype=torch.bfloat16)
    y = torch.zeros(4, dtype=target)
    _run(_cast, (1,), x, y, BLOCK=4)
    assert torch.equal(y, x.to(target))


@pytest.mark.parametrize("kernel", [_double_in_storage, _compare_in_storage, _sum_in_storage])
def test_arithmetic_in_bfloat16_raises(kernel: JITFunction[Any]) -> None:
    x, y = torch.ones(8, dtype=torch.bfloat16), torch.ones(8, dtype=torch.bfloat16)
    with pytest.raises(StorageArithmetic, match="bfloat16"):
        _run(kernel, (1,), x, y, BLOCK=8)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kernel", [_exp_in_storage, _tanh_in_storage])
def test_functions_of_storage_types_raise(kernel: JITFunction[Any], dtype: torch.dtype) -> None:
    with pytest.raises(KernelFault):
        _run(kernel, (1,), torch.ones(8, dtype=dtype), torch.ones(8, dtype=dtype), BLOCK=8)


def test_bfloat16_values_may_be_selected() -> None:
    x, y = torch.randn(8).bfloat16(), torch.ones(8, dtype=torch.bfloat16)
    _run(_select_in_storage, (1,), x, y, 5, BLOCK=8)
    assert torch.equal(y, torch.where(torch.arange(8) < 5, x, 0.0))


def test_a_float_argument_is_rounded_to_float32() -> None:
    y = _nan(1, dtype=torch.float64)
    _run(_scaled_store, (1,), y, 0.1)
    assert y.item() == float(np.float32(0.1)) * 1.0


@pytest.mark.parametrize("precision", ["default", "tf32"])
def test_float32_products_are_tf32_unless_asked_otherwise(precision: str) -> None:
    a, b, c = _product(precision)
    torch.testing.assert_close(c, _tf32(a) @ _tf32(b), rtol=0, atol=1e-5)
    assert (c - a.double() @ b.double()).abs().max() > 1e-4


@pytest.mark.parametrize("precision", ["ieee", "tf32x3"])
def test_precise_products_are_float32(precision: str) -> None:
    a, b, c = _product(precision)
    torch.testing.assert_close(c, a.double() @ b.double(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_of_storage_types_accumulate_in_float32(dtype: torch.dtype) -> None:
    a, b, c = _product("default", dtype)
    torch.testing.assert_close(c, a.double() @ b.double(), rtol=0, atol=1e-5)


def test_a_product_below_the_tensor_core_minimum_is_refused() -> None:
    a = torch.ones(16, 8, dtype=torch.bfloat16)
    with pytest.raises(KernelError, match="K >= 16"):
        _run(_small_product, (1,), a, a, _nan(16, 16), N=16, K=8)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 4e-7), (torch.float64, 1e-15)])
def test_libdevice_and_elementary_functions_compute(dtype: torch.dtype, tolerance: float) -> None:
    x = torch.linspace(0.01, 3.0, 16, dtype=dtype)
    y = _nan(6, 16, dtype=dtype)
    _run(_functions, (1,), x, y, BLOCK=16)
    v = x.double()
    sums = v.sin() + v.cos() + v.exp() + v.log() + v.sqrt() + v.floor()
    expected = torch.stack([v.tanh(), v.log1p(), v.expm1(), v**2.5, v.rsqrt(), sums])
    torch.testing.assert_close(y.double(), expected, rtol=tolerance, atol=tolerance * 10)


def test_an_index_product_that_wraps_raises() -> None:
    with pytest.raises(IndexWrap, match="product.*int32"):
        _run(_row_times_stride, (1,), torch.zeros(1), _nan(1), 524288, 8192)


def test_an_index_product_in_int64_does_not_wrap() -> None:
    y = _nan(1)
    _run(_row_times_stride_wide, (1,), torch.tensor([5.0]), y, 500_000, 8_000)
    assert y.item() == 5.0


def test_an_index_sum_that_wraps_raises() -> None:
    y = torch.zeros(1, dtype=torch.int64)
    with pytest.raises(IndexWrap, match="addition"):
        _run(_running_offset, (1,), y, 2**31 - 1, 2)
    _run(_running_offset, (1,), y, 2**31 - 1, 2**31)
    assert y.item() == 2**32 - 1


def test_a_loop_variable_is_an_int32() -> None:
    y = torch.zeros(1, dtype=torch.int64)
    _run(_loop_offset, (1,), y, 4, 1_000_000_000 // 3)
    with pytest.raises(IndexWrap):
        _run(_loop_offset, (1,), y, 4, 1_000_000_000)


def test_division_of_integers_truncates_as_on_a_gpu() -> None:
    y = torch.zeros(2, dtype=torch.int32)
    _run(_truncating_division, (1,), y, -7, 2)
    assert y.tolist() == [-3, -1]
