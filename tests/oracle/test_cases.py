"""Faults that real kernels had: the right values of their smallest inputs, as the definitions give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specc.oracle import evaluate, evaluate_within, precise, uncertainty
from tests import twins
from tests.oracle.formulas import Array, Draw, close

DECODE = {"D": 1, "heads": 1, "kv_heads": 1, "scale": 1}


def run(op: str, constants: dict[str, Any], lead: int = 0, given: tuple[str, ...] = (), **tensors: Any) -> Any:
    (result,) = evaluate(close(op, constants, lead, given), {n: np.asarray(t) for n, t in tensors.items()}).values()
    return result


def test_per_head_norms_take_the_mean_over_the_axis_that_is_normalised() -> None:
    x = Draw(1)(2, 5, 4)
    y = run("rmsnormUnit", {"H": 4, "eps": 0}, lead=2, x=x)
    np.testing.assert_allclose((y**2).mean(axis=-1), 1, rtol=1e-14)


def test_layer_scalar_multiplies_the_whole_sum() -> None:
    constants = {"H": 1, "layer_scalar": True}
    assert run("residual", constants, 1, ("s",), x=[[2.0]], h=[[4.0]], s=[0.5])[0, 0] == 3


def test_padded_lanes_do_not_enter_the_mean() -> None:
    y = run("rmsnorm", {"H": 3, "eps": 0}, 1, x=[[1.0, 2.0, 2.0]], w=np.ones(3))
    np.testing.assert_allclose(y[0], np.array([1, 2, 2]) / np.sqrt(3), rtol=1e-15)


def test_a_wide_row_of_ones_is_normalised_to_one() -> None:
    y = run("rmsnorm", {"H": 5376, "eps": 1e-6}, 1, x=np.ones((1, 5376)), w=np.ones(5376))
    np.testing.assert_allclose(y, 1, rtol=1e-6)


def test_a_square_beyond_float16_is_normalised() -> None:
    x = np.zeros((1, 5376), np.float16)
    x[0, 0] = 256
    y = run("rmsnorm", {"H": 5376, "eps": 1e-6}, 1, x=x, w=np.ones(5376))
    assert y[0, 0] == pytest.approx(73.32, abs=0.005)


def test_offset_norm_with_zero_weight_is_the_unit_norm() -> None:
    x = Draw(2)(3, 8)
    y = run("rmsnormOffset", {"H": 8, "eps": 1e-6}, 1, x=x, w=np.zeros(8))
    np.testing.assert_array_equal(y, run("rmsnormUnit", {"H": 8, "eps": 1e-6}, 1, x=x))


def test_l2norm_adds_eps_to_the_sum_of_squares() -> None:
    y = run("l2norm", {"D": 128, "eps": 1e-6}, 1, x=np.full((1, 128), 1e-4))
    np.testing.assert_allclose(y, 0.06623, atol=5e-6)


def test_slices_of_a_fused_projection_are_read_with_their_strides() -> None:
    qkv = Draw(3)(4, 100).astype(np.float32)
    q = qkv[:, 3:67]
    y = run("rmsnormUnit", {"H": 64, "eps": 1e-6}, 1, x=q)
    np.testing.assert_allclose(y, twins.rmsnormUnit(q.astype(np.float64), 1e-6), rtol=1e-14)


def test_the_multiplier_stands_before_the_cap() -> None:
    z = run("lmHead", {"K": 1, "N": 1, "mul": 0.5, "softcap": 30}, 1, x=[[60.0]], w=[[1.0]])
    assert z[0, 0] == pytest.approx(22.85, abs=0.005)


@pytest.mark.parametrize("z", [1e4, -1e4, 1e300, -1e300])
def test_softcap_of_large_logits_is_the_cap(z: float) -> None:
    out = run("lmHead", {"K": 1, "N": 1, "softcap": 30}, 1, x=[[z]], w=[[1.0]])
    assert out[0, 0] == np.copysign(30, z)


def _gelu(gate: float) -> Any:
    formula, gu = close("geluMul", {"I": 1}, 1), np.array([[gate, 1.0]])
    return evaluate_within(formula, {"gu": gu}, {"y": 1e-30}).values["y"][0, 0]


def test_gelu_far_in_the_negative_tail_is_not_zero() -> None:
    assert _gelu(-8.0) == pytest.approx(-3.1077829375011112e-21, rel=1e-15)
    assert _gelu(-5.0) == pytest.approx(-2.2918e-7, rel=1e-4)


@pytest.mark.parametrize("gate", [10.1, 30.0, 100.0, 1e4, 1e30])
def test_gelu_of_large_gates_is_the_gate(gate: float) -> None:
    assert run("geluMul", {"I": 1}, 1, gu=[[gate, 1.0]])[0, 0] == gate


@pytest.mark.parametrize("gate", [-100.0, -1000.0, -1e4])
def test_silu_of_a_very_negative_gate_is_nearly_zero_not_nan(gate: float) -> None:
    formula, gu = close("siluMul", {"I": 1}, 1), {"gu": np.array([[gate, 1.0]])}
    y = evaluate(formula, gu)["y"][0, 0]
    assert -1e-40 < y <= 0
    assert uncertainty(formula, gu)["y"][0, 0] < 1e-40


def test_the_activation_is_on_the_first_half() -> None:
    y = run("geluMul", {"I": 1}, 1, gu=[[2.0, 3.0]])
    assert y[0, 0] == pytest.approx(3 * twins.geluTanh(2.0), rel=1e-15)


def _rope(x: Array, pos: list[int], active: int, theta: float = 1e4, **changes: int) -> Any:
    d = x.shape[-1]
    constants = {"D": d, "rot": d, "denom": d, "active": active, "theta": theta} | changes
    return run("rope", constants, x=x, pos=pos)


def test_rope_at_position_zero_is_the_identity() -> None:
    x = Draw(4)(1, 3, 8)
    np.testing.assert_array_equal(_rope(x, [0], 4), x)


def test_rope_pairs_the_halves_and_does_not_interleave() -> None:
    x = np.zeros((1, 1, 8))
    x[0, 0, 1] = 1
    y = _rope(x, [1], 4)[0, 0]
    angle = 1e4 ** (-2 / 8)
    assert list(np.flatnonzero(y)) == [1, 5]
    np.testing.assert_allclose(y[[1, 5]], [np.cos(angle), np.sin(angle)], rtol=1e-15)


def test_rope_leaves_inactive_frequencies_and_coordinates_past_rot_unchanged() -> None:
    x = Draw(5)(1, 1, 12)
    y = _rope(x, [7], 2, rot=8, denom=8)[0, 0]
    np.testing.assert_array_equal(y[[2, 3, 6, 7, 8, 9, 10, 11]], x[0, 0, [2, 3, 6, 7, 8, 9, 10, 11]])
    assert (y[[0, 1, 4, 5]] != x[0, 0, [0, 1, 4, 5]]).all()


def test_rope_at_the_last_position_keeps_its_angle() -> None:
    """In float32 the angle would be off by 1.9e-2; here it is right to 1e-9, and the bound says so."""
    x, pos = np.zeros((1, 1, 256)), 262143
    x[0, 0, :128] = 1
    constants = {"D": 256, "rot": 256, "denom": 256, "active": 128, "theta": 1e4}
    formula, tensors = close("rope", constants), {"x": x, "pos": np.array([pos])}
    y, bound = evaluate(formula, tensors)["y"][0, 0], uncertainty(formula, tensors)["y"][0, 0]
    for i in range(0, 256, 15):
        (right,) = precise(formula, tensors, at_points={"y": [(0, 0, i)]})["y"]
        assert abs(right - y[i]) <= bound[i] <= 1e-9
    single = np.float32(pos) * np.float32(1e4) ** (-np.arange(0, 256, 2, dtype=np.float32) / 256)
    exact = pos * 1e4 ** (-np.arange(0, 256, 2) / 256)
    assert np.abs(single - exact).max() > 1e-2


def _seen(op: str, n: int, length: int, window: int | None) -> list[int]:
    """Which keys get weight, read from one-hot values; the caches hold NaN from `n` on."""
    k, v = np.zeros((1, length, 1, 1)), np.zeros((1, length, 1, length))
    v[0, :, 0, :] = np.eye(length)
    k[0, n:] = v[0, n:] = np.nan
    constants = DECODE | {"D": 1} | ({} if window is None else {"window": window})
    formula = close(op, constants | {"D": length})
    q, keys = np.zeros((1, 1, length)), np.broadcast_to(k, (1, length, 1, length))
    o = evaluate(formula, {"q": q, "k": keys, "v": v, "seq_lens": np.array([n])})["o"][0, 0]
    seen = np.flatnonzero(o)
    if len(seen):
        np.testing.assert_allclose(o[seen], 1 / len(seen), rtol=1e-14)
    return [int(i) for i in seen]


@pytest.mark.parametrize("n", [0, 1, 4, 5, 9])
def test_sliding_decode_sees_the_last_window_of_keys(n: int) -> None:
    assert _seen("slidingDecodeGQA", n, 9, 4) == list(range(max(0, n - 4), n))


@pytest.mark.parametrize("n", [0, 1, 9])
def test_decode_sees_the_whole_sequence(n: int) -> None:
    assert _seen("decodeGQA", n, 9, None) == list(range(n))


@pytest.mark.parametrize("op", ["slidingDecodeGQA", "slidingGQA"])
def test_at_length_5000_a_window_of_4096_sees_904_to_4999(op: str) -> None:
    """Equal weights: the mean of the places seen, and of their squares, fixes the range."""
    places = np.arange(5000.0)
    k, v = np.zeros((5000, 1, 2)), np.stack([places, places**2], axis=-1)[:, None, :]
    constants = DECODE | {"D": 2, "window": 4096}
    if op == "slidingGQA":
        o = run(op, constants, q=np.zeros((1, 1, 2)), k=k, v=v, pos=[4999])
    else:
        o = run(op, constants, q=np.zeros((1, 1, 2)), k=k[None], v=v[None], seq_lens=[5000])
    seen = places[904:5000]
    np.testing.assert_allclose(o[0, 0], [seen.mean(), (seen**2).mean()], rtol=1e-13)


def test_a_row_that_sees_no_key_is_zero() -> None:
    draw = Draw(6)
    q, k = draw(2, 1, 1), np.full((3, 1, 1), np.nan)
    np.testing.assert_array_equal(run("causalGQA", DECODE, q=q, k=k, v=k, pos=[-1, -5]), np.zeros((2, 1, 1)))


@pytest.mark.parametrize("ratio", [1, 2, 5, 6, 7, 8, 16, 32])
def test_query_heads_are_grouped_by_integer_division(ratio: int) -> None:
    """One key, so each head gives back the value of its KV head."""
    heads, kv_heads = 32 // ratio * ratio, 32 // ratio
    v = np.arange(1.0, kv_heads + 1)[None, None, :, None]
    constants = DECODE | {"heads": heads, "kv_heads": kv_heads}
    o = run("decodeGQA", constants, q=np.ones((1, heads, 1)), k=np.ones_like(v), v=v, seq_lens=[1])
    assert [int(x) for x in o[0, :, 0]] == [1 + h // ratio for h in range(heads)]


def test_as_many_sequences_as_kv_heads_do_not_mix() -> None:
    draw, n = Draw(7), [3, 1, 0, 5]
    q, k, v = draw(4, 8, 2), draw(4, 5, 4, 2), draw(4, 5, 4, 2)
    constants = {"D": 2, "heads": 8, "kv_heads": 4, "scale": 1}
    o = run("decodeGQA", constants, q=q, k=k, v=v, seq_lens=n)
    for b in range(4):
        alone = run("decodeGQA", constants, q=q[b : b + 1], k=k[b : b + 1], v=v[b : b + 1], seq_lens=n[b : b + 1])
        np.testing.assert_allclose(o[b], alone[0], rtol=1e-14, atol=1e-14)


def test_logits_of_hundreds_keep_their_digits() -> None:
    draw = Draw(8, 12.0)
    tensors = {"q": draw(1, 1, 8), "k": draw(6, 1, 8), "v": draw(6, 1, 8), "pos": np.array([5])}
    formula = close("causalGQA", {"D": 8, "heads": 1, "kv_heads": 1, "scale": 1})
    assert np.abs(tensors["k"][:, 0] @ tensors["q"][0, 0]).max() > 200
    found, bound = evaluate(formula, tensors)["o"], uncertainty(formula, tensors)["o"]
    for d, right in enumerate(precise(formula, tensors, at_points={"o": [(0, 0, d) for d in range(8)]})["o"]):
        assert abs(right - found[0, 0, d]) <= bound[0, 0, d] <= 1e-9


def test_delta_rule_of_halves_gives_five_eighths() -> None:
    half, one = np.full((2, 1), 0.5), np.ones((2, 1, 1))
    S = run("gdnState", {}, k=one, v=one, alpha=half, beta=half)
    assert list(S[:, 0, 0, 0]) == [0.5, 0.625]


def test_delta_rule_does_not_scale_its_queries() -> None:
    ones = np.ones((1, 1, 4))
    operands = {"q": ones, "k": ones, "v": ones[..., :1], "alpha": np.ones((1, 1)), "beta": np.ones((1, 1))}
    assert evaluate(close("gatedDeltaRule"), operands)["o"][0, 0, 0] == 4


def test_the_first_step_does_not_depend_on_the_decay() -> None:
    """The state starts at 0."""
    draw = Draw(9)
    k, v, beta = draw(1, 1, 3), draw(1, 1, 2), np.ones((1, 1))
    first = run("gdnState", {}, k=k, v=v, alpha=np.zeros((1, 1)), beta=beta)
    np.testing.assert_array_equal(first, run("gdnState", {}, k=k, v=v, alpha=np.ones((1, 1)), beta=beta))


@pytest.mark.parametrize("tokens", [1, 2])
def test_short_prompts_are_padded_with_zeros_on_the_left(tokens: int) -> None:
    x, w = np.array([[2.0], [3.0]])[:tokens], np.array([[100.0, 10.0, 0.5, 0.25]])
    y = run("causalConvSilu", {}, x=x, w=w)
    expected = [twins.silu(2 * 0.25), twins.silu(2 * 0.5 + 3 * 0.25)][:tokens]
    np.testing.assert_allclose(y[:, 0], expected, rtol=1e-15)
