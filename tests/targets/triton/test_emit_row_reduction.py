"""Generated row reductions: padded lanes stay out, rows may be long, short, strided or several."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from specc.targets.triton.emit import emit
from tests.targets.triton.generated import STORAGE, assert_right, custom, operands, ran, results, shipped, strided

EPS = Fraction("1e-6")
LAYER_NORM = """op layerNorm(x[T, H], w[H]; H: nat, eps: real) -> y[T, H]
  let m = Σ_j x[t, j] / H
  let v = Σ_j (x[t, j] - m)² / H
  y[t, i] = (x[t, i] - m) / √(v + eps) · w[i]
"""


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("width", [1, 3, 256, 769, 5376])
def test_a_norm_is_right_for_any_width(dtype: torch.dtype, width: int) -> None:
    kernel = shipped("rmsnorm", H=width, eps=EPS)
    assert_right(kernel, operands(kernel, {"R0": 3}, dtype))


def test_rows_of_tokens_and_heads_are_views_of_a_wider_buffer() -> None:
    kernel = shipped("rmsnorm", lead=2, H=256, eps=EPS)
    tensors = operands(kernel, {"R0": 3, "R1": 5}, torch.bfloat16)
    tensors["x"] = strided(tensors["x"], 264, 3)
    assert_right(kernel, tensors)


def test_fewer_heads_than_a_tile_has_rows_are_masked() -> None:
    kernel = shipped("rmsnorm", lead=2, H=64, eps=EPS)
    assert_right(kernel, operands(kernel, {"R0": 2, "R1": 3}))


def test_two_dependent_reductions_keep_padded_lanes_out_of_both() -> None:
    kernel = custom(LAYER_NORM, H=769, eps=EPS)
    tensors = operands(kernel, {"T": 2})
    tensors["x"] += 100
    assert_right(kernel, tensors, inner=200)


def test_two_dependent_reductions_of_a_long_row_read_it_once() -> None:
    kernel = custom(LAYER_NORM, H=5376, eps=EPS)
    assert emit(kernel).count("tl.load(x_row + i") == 1
    assert_right(kernel, operands(kernel, {"T": 2}))


def test_a_row_too_long_for_registers_is_read_again() -> None:
    kernel = shipped("rmsnorm", H=70000, eps=EPS)
    assert emit(kernel).count("tl.load(x_row + i") == 2
    assert_right(kernel, operands(kernel, {"R0": 1}))


def test_softmax_sees_only_what_its_predicate_lets_it_see() -> None:
    kernel = shipped("softmax", L=100)
    tensors = operands(kernel, {"R0": 5}, indices={"n": [0, 1, 99, 100, 7]})
    tensors["s"] *= 50
    tensors["s"][4, 7:] = float("nan")
    found = assert_right(kernel, tensors)
    assert (found.outputs["p"][0] == 0).all()


def test_nan_reaches_a_maximum() -> None:
    text = "op top(x[T, H]; H: nat) -> y[T, H]\n  y[t, i] = x[t, i] - Max_j x[t, j]\n"
    kernel = custom(text, H=100)
    tensors = operands(kernel, {"T": 3})
    tensors["x"][1, 50] = float("nan")
    y = ran(kernel, tensors).outputs["y"]
    assert y[1].isnan().all()
    assert not y[[0, 2]].isnan().any()


def test_a_gathered_row_out_of_range_is_nan() -> None:
    kernel = shipped("embed", norm=True, eps=EPS, H=769, V=50)
    tensors = operands(kernel, {"R0": 4}, indices={"tokens": [49, -1, 50, 2**31 - 1]})
    y = results(kernel, tensors | {"tokens": tensors["tokens"].to(torch.int64)})["y"]
    assert y[1:].isnan().all()
    assert not y[0].isnan().any()


@pytest.mark.parametrize("op", ["rmsnormOffset", "rmsnormUnit", "rmsnormGated"])
def test_the_other_norms_are_right(op: str) -> None:
    kernel = shipped(op, H=769, eps=EPS)
    assert_right(kernel, operands(kernel, {"R0": 3}, torch.bfloat16))


def test_inputs_stay_unchanged() -> None:
    kernel = shipped("rmsnorm", H=769, eps=EPS)
    tensors = operands(kernel, {"R0": 3})
    before = {n: t.clone() for n, t in tensors.items()}
    ran(kernel, tensors)
    assert all(torch.equal(t, before[n]) for n, t in tensors.items())


def test_the_real_arithmetic_of_a_norm_is_its_formula() -> None:
    kernel = shipped("rmsnorm", H=769, eps=EPS)
    tensors = {n: t.double() for n, t in operands(kernel, {"R0": 3}).items()}
    assert ran(kernel, tensors, widen=True).error("y").max() < 1e-12
