"""Generated pointwise and gather kernels."""

from __future__ import annotations

from math import prod
from types import SimpleNamespace

import pytest
import torch
import triton

from specc.targets.triton import emit_pointwise
from specc.targets.triton.emit import emit
from specc.targets.triton.emit_pointwise import pointwise_slots
from specc.targets.triton.tiles import load_tiles
from tests.targets.triton.generated import STORAGE, assert_right, custom, operands, ran, results, shipped, strided


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("width", [1, 64, 1000, 2048])
def test_gated_activations_are_right_for_any_width(dtype: torch.dtype, width: int) -> None:
    kernel = shipped("geluMul", I=width)
    assert_right(kernel, operands(kernel, {"R0": 3}, dtype))


def test_the_activation_neither_overflows_nor_cancels() -> None:
    kernel = shipped("siluMul", I=4)
    gu = torch.tensor([[-100.0, 100.0, 10.1, -8.0, 1.0, 1.0, 1.0, 1.0]])
    y = ran(kernel, {"gu": gu}).outputs["y"]
    assert y.isfinite().all()
    assert y[0, 0] == pytest.approx(-3.7e-42, rel=0.1)


def test_rotation_pairs_halves_and_copies_the_rest() -> None:
    kernel = shipped("rope", lead=0, D=24, rot=16, denom=16, active=5, theta=10000)
    sizes = {"T": 4, "Hn": 3}
    tensors = operands(kernel, sizes, indices={"pos": [0, 1, 262143, 17]})
    found = assert_right(kernel, tensors)
    assert torch.equal(found.outputs["y"][0], tensors["x"][0])


def test_one_angle_serves_all_heads_of_a_token() -> None:
    text = emit(shipped("rope", lead=0, D=256, rot=256, denom=256, active=128, theta=10000))
    assert text.count("libdevice.sinpi(") == 1
    assert "pos = tl.load(pos_ptr + t)" in text


def test_frequencies_come_from_a_float64_table_that_is_made_once() -> None:
    text = emit(shipped("rope", lead=0, D=64, rot=64, denom=64, active=32, theta=10000))
    assert "@cache\ndef _table(device: torch.device)" in text
    assert "dtype=torch.float64" in text


def test_a_stencil_reads_nothing_before_the_first_row() -> None:
    kernel = shipped("causalConvSilu", lead=0, K=4, C=70)
    for rows in (1, 2, 5):
        tensors = operands(kernel, {"T": rows})
        tensors["x"] = strided(tensors["x"], 3, 300)
        assert_right(kernel, tensors)


def test_unknown_tokens_read_as_nan_and_known_ones_as_their_row() -> None:
    kernel = shipped("embed", mul=3, H=769, V=50)
    tensors = operands(kernel, {"R0": 4}, torch.bfloat16, indices={"tokens": [49, -1, 50, 0]})
    y = results(kernel, tensors)["y"]
    assert y[[1, 2]].isnan().all()
    assert torch.equal(y[[0, 3]], (tensors["w"][[49, 0]].float() * 3).to(torch.bfloat16))


def test_tokens_far_out_of_range_form_no_address() -> None:
    kernel = shipped("embed", mul=3, H=769, V=50)
    tensors = operands(kernel, {"R0": 2}, indices={"tokens": [0, 0]})
    far = torch.tensor([2**62, -(2**62)])
    assert results(kernel, tensors | {"tokens": far})["y"].isnan().all()


def test_a_scalar_operand_multiplies_the_whole_sum() -> None:
    kernel = shipped("residual", given=("s",), H=5, layer_scalar=True)
    tensors = {"x": torch.full((1, 5), 2.0), "h": torch.full((1, 5), 4.0), "s": torch.tensor([0.5])}
    assert (ran(kernel, tensors).outputs["y"] == 3).all()


def test_short_rows_share_a_program() -> None:
    kernel = shipped("sigmoidGate", N=64)
    assert "ROWS" in emit(kernel)
    assert_right(kernel, operands(kernel, {"R0": 37}, torch.float16))


def test_long_strips_of_different_lengths_are_each_written_once() -> None:
    text = "op m(x[T, H]; H: nat) -> y[T, H]\n  y[t, i] = if i < 1500 then x[t, i] else 2 · x[t, i - 1500]\n"
    kernel = custom(text, H=5000)
    assert_right(kernel, operands(kernel, {"T": 2}))


def test_names_of_a_formula_do_not_collide_with_those_of_a_kernel() -> None:
    text = "op m(out[pid, H], tl[H]; H: nat) -> acc[pid, H]\n  acc[row, i] = out[row, i] + tl[i]\n"
    kernel = custom(text, H=40)
    assert_right(kernel, operands(kernel, {"pid": 3}))


def test_two_results_come_together() -> None:
    text = "op m(x[T, H]; H: nat) -> y[T, H], z[T, H]\n  y[t, i] = 2 · x[t, i]\n  z[t, i] = x[t, i]²\n"
    kernel = custom(text, H=40)
    assert_right(kernel, operands(kernel, {"T": 3}))


@pytest.mark.parametrize("width", [1 << 27, 150_000_001, 1 << 30])
def test_no_axis_of_a_grid_is_longer_than_it_may_be(width: int) -> None:
    kernel = custom("op f(x[T, H]; H: nat) -> y[T, H]\n  y[t, i] = 2 · x[t, i]\n", H=width)
    (slots,) = pointwise_slots(kernel, load_tiles(None)).launches
    given = {"T": 3, "triton": triton, "config": SimpleNamespace(tiles={"BLOCK": 1024})}
    rows, *across = (eval(text, given) for text in slots.grid)
    assert rows == 3 and max(across) <= 65535 and 0 <= prod(across) * 1024 - width < 65535 * 1024


@pytest.mark.parametrize("width", [10 * 1024, 5000])
def test_a_row_over_two_axes_of_a_grid_is_right(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(emit_pointwise, "MOST_ACROSS", 3)
    kernel = shipped("geluMul", I=width)
    assert "tl.program_id(2) * 3 + tl.program_id(1)" in emit(kernel)
    assert_right(kernel, operands(kernel, {"R0": 2}))
