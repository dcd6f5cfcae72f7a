"""The oracle and the hand-written twins agree on every op, over drawn shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specc.library import load_library
from specc.oracle import evaluate
from tests import twins
from tests.oracle.formulas import HEADS, LEADS, MAGNITUDES, SEEDS, Draw, assert_agree, beside_shipped, close

WIDTHS = st.sampled_from([1, 2, 3, 7, 16, 769])
EPS = 1e-6


def test_every_op_and_every_scalar_function_has_a_twin() -> None:
    library = load_library()
    names = [op.name for op in library.ops] + [fn.name for fn in library.defs]
    assert [n for n in names if not hasattr(twins, n)] == []


SCALARS: dict[str, Any] = {
    "sigmoid": (twins.sigmoid, 1),
    "silu": (twins.silu, 1),
    "softplus": (twins.softplus, 1),
    "geluTanh": (twins.geluTanh, 1),
    "softcap": (twins.softcap, 2),
}


@pytest.mark.parametrize("name", SCALARS)
@given(x=st.lists(st.floats(-30, 30), min_size=1, max_size=8), c=st.sampled_from([0.5, 30.0, 50.0]))
def test_scalar_functions_equal_their_twins(name: str, x: list[float], c: float) -> None:
    twin, arity = SCALARS[name]
    call = f"{name}(c, x[t])" if arity == 2 else f"{name}(x[t])"
    library = beside_shipped(f"op f(x[T]; c: real) -> y[T]\n  y[t] = {call}\n")
    expected = [twin(c, v) if arity == 2 else twin(v) for v in x]
    assert_agree(close("f", {"c": c}, library=library), {"x": np.array(x)}, np.array(expected))


@given(theta=st.sampled_from([1e4, 1e6]), half=st.integers(1, 40), data=st.data())
def test_frequencies_equal_their_twin(theta: float, half: int, data: st.DataObject) -> None:
    active = data.draw(st.integers(0, half))
    text = "op f(x[I]; theta: real, denom: nat, active: nat) -> y[I]\n"
    library = beside_shipped(text + "  y[i] = invFreq(theta, denom, active, i)\n")
    formula = close("f", {"theta": theta, "denom": 2 * half, "active": active}, library=library)
    right = np.array([twins.invFreq(theta, 2 * half, active, i) for i in range(half)])
    assert_agree(formula, {"x": np.zeros(half)}, right)


NORMS: dict[str, Any] = {
    "rmsnorm": lambda x, w, z: ({"x": x, "w": w}, twins.rmsnorm(x, w, EPS)),
    "rmsnormOffset": lambda x, w, z: ({"x": x, "w": w}, twins.rmsnormOffset(x, w, EPS)),
    "rmsnormUnit": lambda x, w, z: ({"x": x}, twins.rmsnormUnit(x, EPS)),
    "rmsnormGated": lambda x, w, z: ({"x": x, "w": w, "z": z}, twins.rmsnormGated(x, z, w, EPS)),
    "l2norm": lambda x, w, z: ({"x": x}, twins.l2norm(x, EPS)),
}


@pytest.mark.parametrize("name", NORMS)
@given(lead=LEADS, width=WIDTHS, seed=SEEDS, magnitude=MAGNITUDES)
def test_norms_equal_their_twins(name: str, lead: tuple[int, ...], width: int, seed: int, magnitude: float) -> None:
    draw = Draw(seed, magnitude)
    tensors, right = NORMS[name](draw(*lead, width), draw(width), draw(*lead, width))
    constants = {("D" if name == "l2norm" else "H"): width, "eps": EPS}
    assert_agree(close(name, constants, len(lead)), tensors, right)


@given(lead=LEADS, k=WIDTHS, n=st.integers(1, 9), seed=SEEDS, magnitude=MAGNITUDES)
def test_linear_equals_its_twin(lead: tuple[int, ...], k: int, n: int, seed: int, magnitude: float) -> None:
    draw = Draw(seed, magnitude)
    x, w = draw(*lead, k), draw(n, k)
    assert_agree(close("linear", {"K": k, "N": n}, len(lead)), {"x": x, "w": w}, twins.linear(x, w))


@given(lead=LEADS, k=WIDTHS, n=st.integers(1, 9), seed=SEEDS, magnitude=MAGNITUDES)
def test_gate_up_equals_its_twin(lead: tuple[int, ...], k: int, n: int, seed: int, magnitude: float) -> None:
    draw = Draw(seed, magnitude)
    x, wg, wu = draw(*lead, k), draw(n, k), draw(n, k)
    assert_agree(close("gateUp", {"K": k, "I": n}, len(lead)), {"x": x, "wg": wg, "wu": wu}, twins.gateUp(x, wg, wu))


@pytest.mark.parametrize("name", ["siluMul", "geluMul"])
@given(lead=LEADS, width=WIDTHS, seed=SEEDS, magnitude=MAGNITUDES)
def test_gated_units_equal_their_twins(
    name: str, lead: tuple[int, ...], width: int, seed: int, magnitude: float
) -> None:
    gu = Draw(seed, magnitude)(*lead, 2 * width)
    assert_agree(close(name, {"I": width}, len(lead)), {"gu": gu}, getattr(twins, name)(gu))


@given(lead=LEADS, width=WIDTHS, seed=SEEDS, r=st.sampled_from([1, 0.22]), scaled=st.booleans())
def test_residual_equals_its_twin(lead: tuple[int, ...], width: int, seed: int, r: float, scaled: bool) -> None:
    draw = Draw(seed)
    tensors = {"x": draw(*lead, width), "h": draw(*lead, width)} | ({"s": draw(1)} if scaled else {})
    constants = {"H": width, "r": r, "layer_scalar": scaled}
    formula = close("residual", constants, len(lead), ("s",) if scaled else ())
    assert_agree(formula, tensors, twins.residual(tensors["x"], tensors["h"], r, tensors.get("s")))


@given(lead=LEADS, width=WIDTHS, seed=SEEDS, mul=st.sampled_from([1.0, 73.5]), norm=st.booleans())
def test_embed_equals_its_twin(lead: tuple[int, ...], width: int, seed: int, mul: float, norm: bool) -> None:
    draw = Draw(seed)
    tokens, w = draw.integers(0, 10, *lead), draw(11, width)
    constants = {"H": width, "mul": mul, "norm": norm} | ({"eps": EPS} if norm else {})
    formula = close("embed", constants, len(lead))
    assert_agree(formula, {"tokens": tokens, "w": w}, twins.embed(tokens, w, mul, EPS if norm else None))


@given(
    lead=LEADS, k=WIDTHS, n=st.integers(1, 9), seed=SEEDS,
    mul=st.sampled_from([1.0, 0.5]), cap=st.sampled_from([None, 30.0, 0.1]),
)  # fmt: skip
def test_lm_head_equals_its_twin(
    lead: tuple[int, ...], k: int, n: int, seed: int, mul: float, cap: float | None
) -> None:
    draw = Draw(seed)
    x, w = draw(*lead, k), draw(n, k)
    constants = {"K": k, "N": n, "mul": mul} | ({} if cap is None else {"softcap": cap})
    formula = close("lmHead", constants, len(lead))
    assert_agree(formula, {"x": x, "w": w}, twins.lmHead(x, w, mul, cap))


@given(lead=LEADS, width=WIDTHS, seed=SEEDS, magnitude=MAGNITUDES)
def test_sigmoid_gate_equals_its_twin(lead: tuple[int, ...], width: int, seed: int, magnitude: float) -> None:
    draw = Draw(seed, magnitude)
    o, gate = draw(*lead, width), draw(*lead, width)
    assert_agree(close("sigmoidGate", {"N": width}, len(lead)), {"o": o, "gate": gate}, twins.sigmoidGate(o, gate))


@given(lead=LEADS, width=WIDTHS, seed=SEEDS, magnitude=MAGNITUDES)
def test_softmax_equals_its_twin_also_where_nothing_is_visible(
    lead: tuple[int, ...], width: int, seed: int, magnitude: float
) -> None:
    draw = Draw(seed, 20 * magnitude)
    s, n = draw(*lead, width), draw.integers(0, width + 1, *lead)
    assert_agree(close("softmax", lead=len(lead)), {"s": s, "n": n}, twins.softmax(s, n))


@given(
    heads=HEADS, t=st.integers(0, 5), more=st.integers(0, 6), d=st.integers(1, 5),
    window=st.sampled_from([None, 1, 2, 5, 100]), scale=st.sampled_from([1, 0.25]),
    seed=SEEDS, late=st.booleans(),
)  # fmt: skip
def test_prefill_attention_equals_its_twin(
    heads: tuple[int, int],
    t: int,
    more: int,
    d: int,
    window: int | None,
    scale: float,
    seed: int,
    late: bool,
) -> None:
    """L = T + more keys: the queries are a later chunk; unless `late`, some queries see no key at all."""
    draw, (hq, hk), length = Draw(seed, 2.0), heads, t + more
    q, k, v = draw(t, hq, d), draw(length, hk, d), draw(length, hk, d)
    pos = np.arange(more, length) - (0 if late else more + 3)
    constants = {"D": d, "heads": hq, "kv_heads": hk, "scale": scale}
    tensors = {"q": q, "k": k, "v": v, "pos": pos}
    if window is None:
        assert_agree(close("causalGQA", constants), tensors, twins.causalGQA(q, k, v, pos, scale))
    else:
        right = twins.slidingGQA(q, k, v, pos, scale, window)
        assert_agree(close("slidingGQA", constants | {"window": window}), tensors, right)


@given(
    heads=HEADS, b=st.integers(0, 4), s=st.integers(1, 9), d=st.integers(1, 5),
    window=st.sampled_from([None, 1, 3, 100]), scale=st.sampled_from([1, 0.25]), seed=SEEDS,
)  # fmt: skip
def test_decode_attention_equals_its_twin(
    heads: tuple[int, int], b: int, s: int, d: int, window: int | None, scale: float, seed: int
) -> None:
    """Unused places of the caches hold NaN."""
    draw, (hq, hk) = Draw(seed, 2.0), heads
    q, k, v, seq_lens = draw(b, hq, d), draw(b, s, hk, d), draw(b, s, hk, d), draw.integers(0, s, b)
    for row, n in enumerate(seq_lens):
        k[row, n:] = v[row, n:] = np.nan
    constants = {"D": d, "heads": hq, "kv_heads": hk, "scale": scale}
    tensors = {"q": q, "k": k, "v": v, "seq_lens": seq_lens}
    if window is None:
        assert_agree(close("decodeGQA", constants), tensors, twins.decodeGQA(q, k, v, seq_lens, scale))
    else:
        right = twins.slidingDecodeGQA(q, k, v, seq_lens, scale, window)
        assert_agree(close("slidingDecodeGQA", constants | {"window": window}), tensors, right)


@given(heads=HEADS, n=st.integers(1, 9), d=st.integers(1, 4), window=st.sampled_from([None, 1, 3, 9]), seed=SEEDS)
def test_decode_is_prefill_at_the_last_position(
    heads: tuple[int, int], n: int, d: int, window: int | None, seed: int
) -> None:
    draw, (hq, hk) = Draw(seed, 2.0), heads
    q, k, v = draw(1, hq, d), draw(n, hk, d), draw(n, hk, d)
    constants = {"D": d, "heads": hq, "kv_heads": hk, "scale": 1} | ({} if window is None else {"window": window})
    prefill, decode = ("causalGQA", "decodeGQA") if window is None else ("slidingGQA", "slidingDecodeGQA")
    assert load_library().op(decode).prefill == prefill
    a = evaluate(close(prefill, constants), {"q": q, "k": k, "v": v, "pos": np.array([n - 1])})["o"]
    b = evaluate(close(decode, constants), {"q": q, "k": k[None], "v": v[None], "seq_lens": np.array([n])})["o"]
    np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


@given(
    t=st.integers(0, 4), heads=st.integers(1, 3), d=st.integers(2, 12), theta=st.sampled_from([1e4, 1e6]),
    seed=SEEDS, data=st.data(),
)  # fmt: skip
def test_rope_equals_its_twin(t: int, heads: int, d: int, theta: float, seed: int, data: st.DataObject) -> None:
    rot = 2 * data.draw(st.integers(0, d // 2))
    active = data.draw(st.integers(0, rot // 2))
    denom = data.draw(st.sampled_from([d, max(rot, 1)]))
    draw = Draw(seed)
    x, pos = draw(t, heads, d), draw.integers(0, 5000, t)
    formula = close("rope", {"D": d, "rot": rot, "denom": denom, "active": active, "theta": theta})
    assert_agree(formula, {"x": x, "pos": pos}, twins.rope(x, pos, rot, denom, active, theta))


DELTA = {"t": st.integers(0, 5), "hk": st.integers(1, 2), "ratio": st.integers(1, 3),
         "dk": st.integers(1, 4), "dv": st.integers(1, 3), "seed": SEEDS}  # fmt: skip


def _delta(t: int, hk: int, ratio: int, dk: int, dv: int, seed: int) -> dict[str, Any]:
    draw = Draw(seed)
    k = draw(t, hk, dk)
    k /= np.sqrt((k**2).sum(-1, keepdims=True))
    hv = hk * ratio
    return {
        "q": draw(t, hk, dk),
        "k": k,
        "v": draw(t, hv, dv),
        "alpha": draw.unit(t, hv),
        "beta": draw.unit(t, hv),
    }


@given(**DELTA)
def test_gated_delta_rule_equals_its_twin(**shape: int) -> None:
    tensors = _delta(**shape)
    assert_agree(close("gatedDeltaRule"), tensors, *twins.gatedDeltaRule(**tensors))
    start = {"S0": Draw(shape["seed"] + 1)(*tensors["v"].shape[1:], shape["dk"])}
    assert_agree(close("gatedDeltaRule", given=("S0",)), start | tensors, *twins.gatedDeltaRule(**start, **tensors))
    del tensors["q"]
    assert_agree(close("gdnState"), tensors, twins.gdnState(**tensors))


@given(**DELTA)
def test_delta_step_equals_its_twin(**shape: int) -> None:
    tensors = _delta(**shape)
    start = Draw(shape["seed"] + 1)(shape["t"], shape["hk"] * shape["ratio"], shape["dv"], shape["dk"])
    assert_agree(close("gdnStep"), {"S0": start, **tensors}, *twins.gdnStep(start, **tensors))


@given(**DELTA)
def test_delta_step_is_one_step_of_the_recurrence(**shape: int) -> None:
    tensors = _delta(**shape)
    outputs = evaluate(close("gatedDeltaRule"), tensors)["o"]
    states = evaluate(close("gdnState"), {n: v for n, v in tensors.items() if n != "q"})["S"]
    before = np.concatenate([np.zeros_like(states[:1]), states[:-1]])[: states.shape[0]]
    step = evaluate(close("gdnStep"), {"S0": before, **tensors})
    np.testing.assert_allclose(step["S"], states, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(step["o"], outputs, rtol=1e-13, atol=1e-13)


@given(t=st.integers(0, 6), c=st.integers(1, 4), width=st.integers(1, 4), seed=SEEDS)
def test_causal_convolution_equals_its_twin(t: int, c: int, width: int, seed: int) -> None:
    draw = Draw(seed)
    x, w = draw(t, c), draw(c, width)
    assert_agree(close("causalConvSilu"), {"x": x, "w": w}, twins.causalConvSilu(x, w))


@given(t=st.integers(0, 6), c=st.integers(1, 4), width=st.integers(2, 4), seed=SEEDS)
def test_convolution_after_a_window_equals_its_twin(t: int, c: int, width: int, seed: int) -> None:
    draw = Draw(seed)
    many = {"c": draw(width - 1, c), "x": draw(t, c), "w": draw(c, width)}
    assert_agree(close("causalConvSiluFrom"), many, *twins.causalConvSiluFrom(**many))
    if t:
        each = many | {"c": draw(t, width - 1, c)}
        assert_agree(close("causalConvSiluStep"), each, *twins.causalConvSiluStep(**each))


@given(lead=LEADS, width=st.integers(1, 5), seed=SEEDS)
def test_gates_and_scales_equal_their_twins(lead: tuple[int, ...], width: int, seed: int) -> None:
    draw = Draw(seed)
    gates = {"a": draw(*lead, width), "b": draw(*lead, width), "A_log": draw(width), "dt_bias": draw(width)}
    assert_agree(close("gdnGates", {"H": width}, len(lead)), gates, *twins.gdnGates(**gates))
    formula = close("scaled", {"H": width, "mul": 0.3}, len(lead))
    assert_agree(formula, {"x": gates["a"]}, twins.scaled(gates["a"], 0.3))
