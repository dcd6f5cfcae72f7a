"""Linear maps that real kernels got wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.cases.support import STORAGE, TARGETS, Array, Trial, draw, kernel, trial


def tf32(x: Array) -> Array:
    """10 explicit bits of a float32's significand, cut."""
    bits = x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    return bits.view(np.float32).astype(np.float64)


def test_float32_products_do_not_go_through_tf32() -> None:
    """Three full significands a row, so that the products are all that is rounded: a derived bound of thousands of
    random terms is wider than the fault."""
    x, w = np.zeros((4, 5376)), np.zeros((8, 5376))
    x[:, [0, 2000, 5375]], w[:, [0, 2000, 5375]] = draw(1, 4, 3, scale=8), draw(2, 8, 3, scale=8)
    of = trial(kernel("linear", K=5376, N=8), "float32", x=x, w=w).right()
    fault = tf32(of.tensors["x"]) @ tf32(of.tensors["w"]).T
    assert np.abs(fault - of.oracle()).max() > 1e-2
    of.refutes(fault)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize(("rows", "k", "n"), [(1, 3, 5), (1, 15, 130), (17, 100, 72), (129, 17, 33)])
def test_no_side_needs_to_be_a_multiple_of_its_tile(rows: int, k: int, n: int, dtype: str) -> None:
    trial(kernel("linear", K=k, N=n), dtype, x=draw(3, rows, k), w=draw(4, n, k)).right()


@pytest.mark.parametrize(("rows", "k", "n"), [(1, 3, 5), (1, 15, 130), (17, 100, 72)])
def test_sums_of_small_integers_are_exact_on_every_tile(rows: int, k: int, n: int) -> None:
    random = np.random.default_rng(5)
    x, w = random.integers(-3, 4, (rows, k)) * 1.0, random.integers(-3, 4, (n, k)) * 1.0
    of = trial(kernel("linear", K=k, N=n), "float32", x=x, w=w)
    for target in TARGETS:
        np.testing.assert_array_equal(of.outputs(target)["y"], x @ w.T)


OPS: dict[str, tuple[dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "linear": ({"K": 20, "N": 6}, {"x": (0, 20), "w": (6, 20)}),
    "gateUp": ({"K": 20, "I": 6}, {"x": (0, 20), "wg": (6, 20), "wu": (6, 20)}),
    "lmHead": ({"K": 20, "N": 6, "softcap": 30}, {"x": (0, 20), "w": (6, 20)}),
    "geluMul": ({"I": 6}, {"gu": (0, 12)}),
    "rmsnorm": ({"H": 6, "eps": "1e-6"}, {"x": (0, 6), "w": (6,)}),
}


@pytest.mark.parametrize("op", OPS)
def test_no_tokens_give_an_empty_result(op: str) -> None:
    constants, shapes = OPS[op]
    of = trial(kernel(op, **constants), "bfloat16", **{n: np.ones(s) for n, s in shapes.items()})
    for target in TARGETS:
        (result,) = of.outputs(target).values()
        assert result.shape == of.oracle().shape and result.shape[0] == 0


def _head(z: float, dtype: str = "float32", **constants: Any) -> Trial:
    return trial(kernel("lmHead", K=1, N=1, softcap=30, **constants), dtype, x=[[z]], w=[[1.0]])


@pytest.mark.parametrize("dtype", STORAGE)
def test_the_multiplier_stands_before_the_cap(dtype: str) -> None:
    of = _head(60.0, dtype, mul="0.5").right()
    assert f"{of.oracle()[0, 0]:.2f}" == "22.85"
    of.refutes(14.46)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("z", [1e4, -1e4])
def test_softcap_of_large_logits_is_the_cap(z: float, dtype: str) -> None:
    of = _head(z, dtype).right()
    assert of.oracle()[0, 0] == np.copysign(30, z)
    assert all(of.outputs(t)["logits"][0, 0] == np.copysign(30, z) for t in TARGETS)
    of.refutes(np.nan)


@pytest.mark.parametrize("z", [1e-6, 1e-3, 0.1])
def test_softcap_is_stable_near_zero(z: float) -> None:
    """2σ(2u) - 1 in float32 loses up to all digits of a small tanh."""
    of = _head(z).right()
    one, u = np.float32(1), np.float32(z) / np.float32(30)
    fault = np.float32(30) * (np.float32(2) / (one + np.exp(-np.float32(2) * u)) - one)
    of.refutes(float(fault))
