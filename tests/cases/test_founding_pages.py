"""Where a founding page can be misread."""

from __future__ import annotations

import numpy as np
import pytest

from specc.ops import Num
from tests.cases.support import STORAGE, draw, gemma, kernel, trial


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize(("layer", "width"), [(0, 256), (5, 512)])
def test_per_head_norms_take_the_mean_over_the_axis_that_is_normalised(layer: int, width: int, dtype: str) -> None:
    """Heads of different sizes; a mean over all heads of a token is refuted."""
    of = gemma().node(f"layers[{layer}].attn.qk_norm").kernel()
    heads = 4
    x = draw(1, 2, heads, width) * np.array([1.0, 4.0, 16.0, 2.0])[:, None]
    made = trial(of, dtype, x=x, w=np.ones(width)).right()
    exact = made.tensors["x"]
    mean = (exact**2).mean(axis=-1)
    roundings = width + 8
    np.testing.assert_allclose((made.oracle() ** 2).mean(axis=-1), mean / (mean + 1e-6), rtol=roundings * 2.0**-53)
    made.refutes(exact / np.sqrt((exact**2).mean(axis=(1, 2), keepdims=True)))


@pytest.mark.parametrize("dtype", STORAGE)
def test_the_layer_scalar_multiplies_the_whole_sum(dtype: str) -> None:
    of = gemma().node("layers[*].mlp_residual").kernel()
    made = trial(of, dtype, x=np.full((1, 5376), 2.0), h=np.full((1, 5376), 4.0), s=[0.5]).right()
    assert (made.oracle() == 3).all()
    made.refutes(0.5 * 2 + 4).refutes(2 + 0.5 * 4)
    trial(kernel("residual", H=5376), dtype, x=np.full((1, 5376), 2.0), h=np.full((1, 5376), 4.0)).right().refutes(3)


def test_the_global_projection_has_18432_columns_of_queries_and_keys() -> None:
    node = gemma().node("layers[5].attn.qkv_proj")
    (weight,) = (o for o in node.kernel().operands if o.name == "w")
    assert [int(d.value) for d in weight.dims if isinstance(d, Num)] == [(32 + 4) * 512, 5376] == [18432, 5376]


def test_global_values_are_the_projection_of_keys_before_norm_and_rotation() -> None:
    written = {}
    for node in gemma().nodes:
        if node.layers is None or 5 in node.layers:
            for application in node.variant.applications:
                written[node.path, application.label] = [r.wire for r in application.reads]
    assert written["attn.v_norm", "v"] == ["k"]
    assert written["attn.qk_norm", "k"] == ["k"]
    assert written["attn.rope", "k"][0] == "kn"
