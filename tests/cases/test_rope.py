"""Rotations that real kernels got wrong."""

from __future__ import annotations

import numpy as np
import pytest

from specc.bounds.formats import round_to
from specc.oracle import evaluate
from tests.cases.support import STORAGE, TARGETS, Array, Trial, draw, gemma, kernel, trial
from tests.oracle.formulas import close

FAR = 262143


def rope(x: Array, pos: list[int], dtype: str, theta: int = 10000, active: int | None = None) -> Trial:
    d = x.shape[-1]
    half = d // 2 if active is None else active
    return trial(kernel("rope", D=d, rot=d, denom=d, active=half, theta=theta), dtype, x=x, pos=pos)


def turned(x: Array, cos: Array, sin: Array) -> Array:
    """Halves turned by given cosines and sines."""
    low, high = np.split(x, 2, axis=-1)
    return np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=-1)


@pytest.mark.parametrize("dtype", STORAGE)
def test_position_zero_is_the_identity(dtype: str) -> None:
    of = rope(draw(1, 2, 3, 256), [0, 0], dtype).right()
    for target in TARGETS:
        np.testing.assert_array_equal(of.outputs(target)["y"], of.tensors["x"])


@pytest.mark.parametrize("dtype", STORAGE)
def test_halves_are_concatenated_and_not_interleaved(dtype: str) -> None:
    x = np.zeros((1, 1, 16))
    x[0, 0, 1] = 1
    of = rope(x, [1], dtype).right()
    angle = 1e4 ** (-2 / 16)
    for target in TARGETS:
        assert list(np.flatnonzero(of.outputs(target)["y"])) == [1, 9]
    np.testing.assert_allclose(of.oracle()[0, 0, [1, 9]], [np.cos(angle), np.sin(angle)], rtol=8 * 2.0**-53)
    fault = np.zeros((1, 1, 16))
    fault[0, 0, 0], fault[0, 0, 1] = -np.sin(1.0), np.cos(1.0)
    of.refutes(fault)


@pytest.mark.parametrize(("layer", "theta", "other"), [(0, 10_000, 1_000_000), (5, 1_000_000, 10_000)])
def test_full_and_sliding_layers_have_their_own_theta(layer: int, theta: int, other: int) -> None:
    node = gemma().node(f"layers[{layer}].attn.rope")
    d, active = (512, 64) if layer == 5 else (256, 128)
    of = trial(node.kernel(), "bfloat16", x=draw(2, 1, 2, d), pos=[100]).right()
    constants = {"D": d, "rot": d, "denom": d, "active": active}
    np.testing.assert_array_equal(of.oracle(), evaluate(close("rope", constants | {"theta": theta}), of.tensors)["y"])
    of.refutes(evaluate(close("rope", constants | {"theta": other}), of.tensors)["y"])


def frequencies(theta: float, d: int) -> Array:
    return theta ** (-np.arange(0, d, 2, dtype=np.float64) / d)


def test_angles_at_the_last_position_need_more_than_float32() -> None:
    of = rope(draw(3, 1, 1, 256), [FAR], "float32").right()
    exact = FAR * frequencies(1e4, 256)
    product = (np.float32(FAR) * frequencies(1e4, 256).astype(np.float32)).astype(np.float64)
    rounded = FAR * frequencies(1e4, 256).astype(np.float32).astype(np.float64)
    assert f"{np.abs(rounded - exact).max():.1e}" == "7.8e-03"
    assert np.abs(product - exact).max() > 1e-2
    for fault in (product, rounded):
        of.refutes(turned(of.tensors["x"], np.cos(fault), np.sin(fault)))


@pytest.mark.parametrize("dtype", STORAGE)
def test_the_last_position_is_right_in_every_storage_type(dtype: str) -> None:
    rope(draw(4, 2, 2, 256), [FAR, FAR - 1], dtype).right()


@pytest.mark.parametrize(("dtype", "off"), [("float16", "0.71"), ("bfloat16", "1.30")])
def test_an_angle_table_in_storage_is_refuted(dtype: str, off: str) -> None:
    """Position 1857, 16 frequencies: position, frequency and their product are rounded."""
    x = np.ones((1, 1, 32))
    of = rope(x, [1857], dtype).right()
    exact = 1857 * frequencies(1e4, 32)
    short = round_to(round_to(np.array(1857.0), dtype) * round_to(frequencies(1e4, 32), dtype), dtype)
    assert f"{np.abs(np.cos(short) - np.cos(exact)).max():.2f}" == off
    for table in (short, round_to(exact, dtype)):
        of.refutes(turned(x, np.cos(table), np.sin(table)))


def test_coordinates_past_the_active_pairs_are_copied() -> None:
    of = rope(draw(5, 1, 2, 512), [FAR], "bfloat16", 1_000_000, active=64).right()
    still = [*range(64, 256), *range(320, 512)]
    for target in TARGETS:
        np.testing.assert_array_equal(of.outputs(target)["y"][..., still], of.tensors["x"][..., still])
