"""Normalisations that real kernels got wrong."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.cases.support import STORAGE, TARGETS, draw, kernel, stored, trial

EPS = "1e-6"


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("width", [3, 769, 5376])
@pytest.mark.parametrize("op", ["rmsnorm", "rmsnormOffset", "rmsnormGated"])
def test_padded_lanes_do_not_enter_the_mean(op: str, width: int, dtype: str) -> None:
    operands = {"x": draw(1, 2, width), "w": draw(2, width), "z": draw(3, 2, width)}
    names = ("x", "z", "w") if op == "rmsnormGated" else ("x", "w")
    trial(kernel(op, H=width, eps=EPS), dtype, **{n: operands[n] for n in names}).right()


@pytest.mark.parametrize("dtype", STORAGE)
def test_a_mean_over_four_lanes_of_three_is_refuted(dtype: str) -> None:
    of = trial(kernel("rmsnorm", H=3, eps=EPS), dtype, x=[[1.0, 2.0, 2.0]], w=np.ones(3)).right()
    np.testing.assert_allclose(of.oracle()[0], np.array([1, 2, 2]) / np.sqrt(3 + 1e-6), rtol=8 * 2.0**-53)
    of.refutes(np.array([1, 2, 2]) / np.sqrt(9 / 4))


@pytest.mark.parametrize("dtype", STORAGE)
def test_a_row_of_5376_ones_is_normalised_to_one(dtype: str) -> None:
    """A sum of squares in bfloat16 sticks at 256, and every result is 4.58."""
    of = trial(kernel("rmsnorm", H=5376, eps=EPS), dtype, x=np.ones((1, 5376)), w=np.ones(5376)).right()
    assert f"{of.oracle()[0, 0]:.5f}" == "1.00000"
    of.refutes(4.58)
    if dtype != "float32":
        assert all((of.outputs(t)["y"] == 1).all() for t in TARGETS)


def test_a_square_beyond_float16_is_normalised() -> None:
    x = np.zeros((1, 5376))
    x[0, 0] = 256
    of = trial(kernel("rmsnorm", H=5376, eps=EPS), "float16", x=x, w=np.ones(5376)).right()
    assert f"{of.oracle()[0, 0]:.2f}" == "73.32"
    of.refutes(0)


@pytest.mark.parametrize("dtype", STORAGE)
def test_an_offset_norm_adds_one_to_its_weight_once(dtype: str) -> None:
    x = draw(4, 2, 769)
    unit = trial(kernel("rmsnormUnit", H=769, eps=EPS), dtype, x=x).right().oracle()
    for weight in (0, 1, -1):
        of = trial(kernel("rmsnormOffset", H=769, eps=EPS), dtype, x=x, w=np.full(769, float(weight))).right()
        np.testing.assert_array_equal(of.oracle(), (1 + weight) * unit)
        of.refutes(weight * unit).refutes((2 + weight) * unit)


@pytest.mark.parametrize("op", ["rmsnorm", "rmsnormOffset", "rmsnormUnit", "l2norm"])
def test_a_norm_leaves_its_input_as_it_was(op: str) -> None:
    """`outputs` compares all memory under the operands before and after; a sandwich reads them again."""
    constants = {"D" if op == "l2norm" else "H": 64, "eps": EPS}
    weights = {} if op in ("rmsnormUnit", "l2norm") else {"w": draw(5, 64)}
    of = trial(kernel(op, **constants), "bfloat16", x=draw(6, 3, 64), **weights)
    for target in TARGETS:
        of.outputs(target)


@pytest.mark.parametrize("offset", [0, 1, 3])
@pytest.mark.parametrize("dtype", STORAGE)
def test_heads_of_a_fused_projection_are_read_with_row_stride_16384(dtype: str, offset: int) -> None:
    tokens, heads, width = 2, 32, 256
    qkv = torch.full((tokens * 16384 + offset,), float("nan")).to(stored(np.ones(1), dtype).dtype)
    view = qkv[offset:].view(tokens, 16384)[:, : heads * width].view(tokens, heads, width)
    x = draw(7, tokens, heads, width)
    view.copy_(torch.from_numpy(x))
    assert view.stride() == (16384, 256, 1) and view.storage_offset() == offset
    of = kernel("rmsnorm", lead=2, H=width, eps=EPS)
    trial(of, dtype, x=view.double().numpy(), w=draw(8, width)).stored_as(x=view).right()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_l2norm_adds_eps_to_the_sum_of_squares(dtype: str) -> None:
    of = trial(kernel("l2norm", D=128, eps=EPS), dtype, x=np.full((1, 128), 1e-4)).right()
    places = np.unique(of.oracle())
    assert len(places) == 1
    assert dtype != "float32" or f"{places[0]:.5f}" == "0.06623"
    for fault in (0.08839, 0.00879, 0.08831):
        of.refutes(fault)
