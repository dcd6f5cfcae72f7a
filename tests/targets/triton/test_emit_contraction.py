"""Generated contraction kernels: right on awkward shapes, and plain to read."""

from __future__ import annotations

import pytest
import torch

from specc.targets.triton.emit import emit
from tests.targets.triton.generated import STORAGE, assert_right, custom, operands, ran, shipped, strided


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("rows", [1, 17, 130])
def test_products_are_right_when_no_side_is_a_multiple_of_its_tile(dtype: torch.dtype, rows: int) -> None:
    kernel = shipped("linear", K=100, N=72)
    assert_right(kernel, operands(kernel, {"R0": rows}, dtype), inner=64)


def test_k_below_what_a_tensor_core_takes_is_padded() -> None:
    kernel = shipped("linear", K=3, N=5)
    assert_right(kernel, operands(kernel, {"R0": 2}))


def test_no_rows_launch_nothing() -> None:
    kernel = shipped("linear", K=100, N=72)
    found = ran(kernel, operands(kernel, {"R0": 0}))
    assert found.outputs["y"].shape == (0, 72)
    assert found.trace.launches == []


def test_rows_of_several_axes_take_their_own_strides() -> None:
    kernel = shipped("linear", lead=2, K=32, N=16)
    tensors = operands(kernel, {"R0": 3, "R1": 5})
    tensors["x"] = strided(tensors["x"], 7, 3)
    assert_right(kernel, tensors, inner=64)


def test_strided_operands_with_an_odd_offset_are_read_where_they_lie() -> None:
    kernel = shipped("linear", K=100, N=72)
    tensors = operands(kernel, {"R0": 17}, torch.bfloat16)
    tensors = {n: strided(t, 13, 5) for n, t in tensors.items()}
    assert_right(kernel, tensors, inner=64)


def test_columns_are_chosen_from_two_weights() -> None:
    kernel = shipped("gateUp", K=40, I=24)
    assert_right(kernel, operands(kernel, {"R0": 5}, torch.bfloat16), inner=64)
    assert "tl.where(n < 24, wg, wu)" in emit(kernel)


def test_the_epilogue_is_computed_in_float32_before_the_only_rounding() -> None:
    kernel = shipped("lmHead", K=64, N=40, mul=0.5, softcap=30)
    tensors = operands(kernel, {"R0": 3})
    tensors["x"] = tensors["x"] * 100
    assert_right(kernel, tensors, inner=64)


def test_a_computed_factor_is_rounded_to_storage_before_the_product() -> None:
    text = "op m(x[T, K], w[N, K]; K: nat, N: nat) -> y[T, N]\n  y[t, n] = Σ_k (x[t, k] + 1) · w[n, k]\n"
    kernel = custom(text, K=32, N=16)
    assert ".to(x_ptr.dtype.element_ty)" in emit(kernel)
    assert_right(kernel, operands(kernel, {"T": 3}), inner=64)


def test_a_weight_stored_the_other_way_round_is_read_with_its_stride() -> None:
    text = "op m(x[T, K], w[K, N]; K: nat, N: nat) -> y[T, N]\n  y[t, n] = Σ_k x[t, k] · w[k, n]\n"
    kernel = custom(text, K=24, N=40)
    assert_right(kernel, operands(kernel, {"T": 3}), inner=64)


def test_an_epilogue_reads_operands_at_rows_and_columns() -> None:
    text = "op m(x[T, K], w[N, K], b[N], r[T, N]; K: nat, N: nat) -> y[T, N]\n"
    text += "  y[t, n] = r[t, n] + b[n] + Σ_k x[t, k] · w[n, k]\n"
    kernel = custom(text, K=24, N=20)
    assert_right(kernel, operands(kernel, {"T": 17}, torch.float16), inner=64)


def test_nan_in_a_row_stays_in_that_row() -> None:
    kernel = shipped("linear", K=100, N=72)
    tensors = operands(kernel, {"R0": 17}, torch.bfloat16)
    tensors["x"][3, 99] = float("nan")
    y = ran(kernel, tensors).outputs["y"]
    assert y[3].isnan().all()
    assert not y[[r for r in range(17) if r != 3]].isnan().any()


def test_the_product_is_formed_in_full_float32_precision() -> None:
    text = emit(shipped("linear", K=100, N=72))
    assert 'input_precision="ieee"' in text
    assert "tl.zeros((BLOCK_M, BLOCK_N), tl.float32)" in text


def test_the_real_arithmetic_of_a_kernel_is_its_formula() -> None:
    kernel = shipped("lmHead", K=40, N=24, softcap=30)
    tensors = {n: t.double() for n, t in operands(kernel, {"R0": 3}).items()}
    found = ran(kernel, tensors, widen=True)
    assert found.error("logits").max() < 1e-12
