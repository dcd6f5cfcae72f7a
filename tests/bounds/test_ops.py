"""Whole ops: bounds hold for conforming kernels, say something, and reject kernels that are wrong."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specc.bounds import Bound, NotSupported, Tiles, accepts, bound, round_to, store_error, torch, triton, vacuity
from specc.bounds.formats import Array
from specc.instantiate import instantiate
from specc.kernels import Kernel
from specc.library import load_library
from specc.ops import Num, Size, Sort
from tests.bounds.simulate import Simulator
from tests.bounds.support import TOKENS, bound_of, kernel, normal, storage

F = np.float32
SEEDS = st.integers(0, 2**32 - 1)
DTYPES = st.sampled_from(["float32", "bfloat16", "float16"])
GLU = {"I": 6}
HEADS = {"D": 8, "heads": 4, "kv_heads": 2}
ROPE = {"D": 8, "rot": 6, "denom": 6, "active": 2}
ROUND = (("softmax", "", "cache"),)
INSIDE = (("rmsnorm", "n", "activation"),)

KERNELS = {
    "rmsnorm": kernel("rmsnorm", {"H": 37}, {"eps": "1e-6"}, lead=TOKENS),
    "rmsnorm rounded": kernel("rmsnorm", {"H": 37}, {"eps": "1e-6"}, lead=TOKENS, rounds=INSIDE),
    "rmsnormOffset": kernel("rmsnormOffset", {"H": 37}, {"eps": "1e-6"}, lead=TOKENS),
    "rmsnormGated": kernel("rmsnormGated", {"H": 37}, {"eps": "1e-6"}, lead=TOKENS),
    "l2norm": kernel("l2norm", {"D": 19}, {"eps": "1e-6"}, lead=TOKENS),
    "geluMul": kernel("geluMul", GLU, lead=TOKENS),
    "siluMul": kernel("siluMul", GLU, lead=TOKENS),
    "sigmoidGate": kernel("sigmoidGate", {"N": 12}, lead=TOKENS),
    "residual": kernel("residual", {"H": 12}, {"r": "0.22"}, lead=TOKENS, given=("s",), flags={"layer_scalar": True}),
    "linear": kernel("linear", {"K": 70, "N": 9}, lead=TOKENS),
    "gateUp": kernel("gateUp", {"K": 20, "I": 5}, lead=TOKENS),
    "lmHead": kernel("lmHead", {"K": 40, "N": 9}, {"mul": "0.5", "softcap": 30}, lead=TOKENS),
    "embed": kernel("embed", {"V": 11, "H": 12}, {"mul": "73.3212", "eps": "1e-6"}, lead=TOKENS, flags={"norm": True}),
    "causalConvSilu": kernel("causalConvSilu", {"C": 6, "K": 4}),
    "rope": kernel("rope", {**ROPE, "Hn": 2}, {"theta": 10000}),
    "softmax": kernel("softmax", {"L": 21}, lead=TOKENS),
    "causalGQA": kernel("causalGQA", HEADS, {"scale": 1}),
    "causalGQA rounded": kernel("causalGQA", HEADS, {"scale": "0.3"}, rounds=ROUND),
    "slidingGQA": kernel("slidingGQA", {**HEADS, "window": 5}, {"scale": 1}, rounds=ROUND),
    "decodeGQA": kernel("decodeGQA", HEADS, {"scale": 1}),
}  # fmt: skip
SHAPES: dict[str, int] = {"T": 5, "L": 40, "B": 3, "S": 40}


def stored(name: str, rng: np.random.Generator, dtype: str, scale: float) -> dict[str, Any]:
    """Operands of a kernel in `dtype`, and its tables."""
    k = KERNELS[name]
    tensors: dict[str, Any] = {}
    for t in k.formula.inputs:
        shape = tuple(int(d.value) if isinstance(d, Num) else SHAPES[d.name] for d in t.dims)  # type: ignore[attr-defined]
        if t.sort is Sort.INDEX:
            high = {"tokens": 11, "n": 22, "pos": 40, "seq_lens": 41}[t.name]
            tensors[t.name] = rng.integers(0, high, shape)
        else:
            tensors[t.name] = normal(rng, *shape, dtype=dtype, scale=scale)
    if k.op == "rope":
        tensors["pos"] = rng.integers(0, 262144, SHAPES["T"])
        tensors["table"] = np.array([1e4 ** (-2 * i / 6) if i < 2 else 0.0 for i in range(3)])
    return tensors


def simulated(name: str, tensors: dict[str, Any], dtype: str, rng: np.random.Generator, blocks: int = 16) -> Array:
    """The stored result of a conforming kernel."""
    k = KERNELS[name]
    dims = {t.name: t.dims for t in k.formula.inputs}
    sizes = {d.name: n for t in dims for d, n in zip(dims[t], tensors[t].shape, strict=True) if isinstance(d, Size)}
    run = Simulator(tensors, sizes, storage(dtype), rng, tuple(t.name for t in k.tables), blocks)
    (out,) = run.run(k.lowered).values()
    return round_to(np.asarray(out, np.float64), dtype)


@settings(max_examples=12)
@given(SEEDS, DTYPES, st.sampled_from([0.1, 1.0, 4.0]))
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_conforming_kernels_stay_in_their_bound(name: str, seed: int, dtype: str, scale: float) -> None:
    rng = np.random.default_rng(seed)
    tensors = stored(name, rng, dtype, scale)
    found = bound_of(KERNELS[name], tensors, dtype)
    got = simulated(name, tensors, dtype, rng, int(rng.choice([16, 32, 64])))
    assert got.shape == found.value.shape
    assert np.all(accepts(got, found.value, found.error, dtype))
    cpu = bound_of(KERNELS[name], tensors, dtype, torch(storage(dtype)))
    got = simulated(name, tensors, dtype, rng, 0)
    assert np.all(accepts(got, cpu.value, cpu.error, dtype))


WIDE = ("rmsnorm", "geluMul", "residual", "linear", "embed", "lmHead", "rope", "slidingGQA", "decodeGQA")
POINTWISE = ("rmsnorm", "geluMul", "residual", "embed", "rope")


def wide(op: str, dtype: str) -> tuple[Kernel, dict[str, Any]]:
    """An op at the widths of Gemma 4, with normal operands."""
    rng = np.random.default_rng(7)

    def n(*shape: int, scale: float = 1.0) -> Array:
        return normal(rng, *shape, dtype=dtype, scale=scale)

    heads = {"D": 256, "heads": 4, "kv_heads": 2}
    match op:
        case "rmsnorm":
            return kernel(op, {"H": 5376}, {"eps": "1e-6"}, lead=TOKENS), {"x": n(4, 5376), "w": n(5376)}
        case "geluMul":
            return kernel(op, {"I": 21504}, lead=TOKENS), {"gu": n(2, 43008)}
        case "residual":
            k = kernel(op, {"H": 5376}, lead=TOKENS, given=("s",), flags={"layer_scalar": True})
            return k, {"x": n(2, 5376), "h": n(2, 5376), "s": n(1)}
        case "linear":
            return kernel(op, {"K": 21504, "N": 64}, lead=TOKENS), {"x": n(8, 21504), "w": n(64, 21504)}
        case "embed":
            k = kernel(op, {"V": 50, "H": 5376}, {"mul": "73.32"}, lead=TOKENS)
            return k, {"tokens": np.arange(4), "w": n(50, 5376)}
        case "lmHead":
            k = kernel(op, {"K": 5376, "N": 64}, {"softcap": 30}, lead=TOKENS)
            return k, {"x": n(8, 5376), "w": n(64, 5376, scale=0.02)}
        case "rope":
            k = kernel(op, {"D": 256, "rot": 256, "denom": 256, "active": 128}, {"theta": 10000})
            table = 1e4 ** (-2 * np.arange(128) / 256)
            return k, {"x": n(4, 2, 256), "pos": np.array([0, 1, 1000, 262143]), "table": table}
        case "slidingGQA":
            k = kernel(op, {**heads, "window": 1024}, {"scale": 1}, rounds=ROUND)
            keys = {"k": n(1200, 2, 256), "v": n(1200, 2, 256)}
            return k, {"q": n(4, 4, 256), **keys, "pos": np.array([0, 700, 1100, 1199])}
        case "decodeGQA":
            k = kernel(op, heads, {"scale": 1}, rounds=ROUND)
            keys = {"k": n(2, 1200, 2, 256), "v": n(2, 1200, 2, 256)}
            return k, {"q": n(2, 4, 256), **keys, "seq_lens": np.array([1200, 3])}
    raise KeyError(op)


@pytest.mark.parametrize(("dtype", "limit"), [("bfloat16", 0.05), ("float32", 0.01)])
@pytest.mark.parametrize("op", WIDE)
def test_bounds_at_full_width_say_something(op: str, dtype: str, limit: float) -> None:
    k, tensors = wide(op, dtype)
    found = bound_of(k, tensors, dtype)
    assert 0 < vacuity(store_error(found.value, found.error, dtype), found.value) < limit
    assert op not in POINTWISE or vacuity(found.error, found.value) < 1e-5


def rmsnorm(x: Array, w: Array, eps: float = 1e-6) -> Array:
    """float32 kernel with a NumPy sum."""
    x, w = x.astype(F), w.astype(F)
    return x / np.sqrt(np.sum(x * x, -1, keepdims=True) / F(x.shape[-1]) + F(eps)) * w


def test_rmsnorm_at_full_width_holds_for_float32_and_not_for_a_bfloat16_sum() -> None:
    k, tensors = wide("rmsnorm", "bfloat16")
    tensors = {**tensors, "x": np.ones((4, 5376))}
    found = bound_of(k, tensors, "bfloat16")
    good = round_to(rmsnorm(tensors["x"], tensors["w"]).astype(np.float64), "bfloat16")
    assert np.all(accepts(good, found.value, found.error, "bfloat16"))
    stuck = tensors["w"] / np.sqrt(256 / 5376 + 1e-6)
    bad = round_to(np.broadcast_to(stuck, good.shape), "bfloat16")
    assert not np.any(accepts(bad, found.value, found.error, "bfloat16"))


def test_a_padded_lane_in_the_mean_is_seen() -> None:
    k = kernel("rmsnorm", {"H": 3}, {"eps": "1e-6"}, lead=TOKENS)
    x, w = np.array([[1.0, 2.0, -1.0]]), np.ones(3)
    found = bound_of(k, {"x": x, "w": w}, "bfloat16")
    padded = x / np.sqrt(np.sum(x * x) / 4 + 1e-6)
    assert np.all(accepts(round_to(rmsnorm(x, w).astype(float), "bfloat16"), found.value, found.error, "bfloat16"))
    assert not np.any(accepts(round_to(padded, "bfloat16"), found.value, found.error, "bfloat16"))


def test_one_plus_weight_formed_in_bfloat16_is_seen() -> None:
    k = kernel("rmsnormOffset", {"H": 8}, {"eps": "1e-6"}, lead=TOKENS)
    x, w = np.full((1, 8), 2.0), np.full(8, 2.0**-8)
    found = bound_of(k, {"x": x, "w": w}, "float32")
    wrong = rmsnorm(x, round_to(1 + w, "bfloat16")).astype(float)
    assert np.all(accepts(rmsnorm(x, 1 + w).astype(float), found.value, found.error, "float32"))
    assert not np.any(accepts(wrong, found.value, found.error, "float32"))


def gelu_mul(gu: Array, act: Any) -> Array:
    gate, up = np.split(gu.astype(F), 2, axis=-1)
    return np.asarray(act(gate) * up, np.float64)


def tanh_form(x: Array) -> Array:
    return F(0.5) * x * (1 + np.tanh(F(0.7978845608028654) * (x + F(0.044715) * x * x * x)))


def stable_form(x: Array) -> Array:
    with np.errstate(over="ignore"):
        z = F(1.5957691216057308) * (x + F(0.044715) * (x * x * x))
        return x * np.where(z >= 0, F(1), np.exp(-np.abs(z))) / (1 + np.exp(-np.abs(z)))


def test_the_tanh_form_of_gelu_is_outside_the_bound_of_the_stable_form_at_minus_5() -> None:
    k = kernel("geluMul", {"I": 4}, lead=TOKENS)
    gu = np.array([[-5.0, -8.0, 1.0, 2.0, 3.0, 1.0, 1.0, 3.0]])
    found = bound_of(k, {"gu": gu}, "float32")
    assert np.all(accepts(gelu_mul(gu, stable_form), found.value, found.error, "float32"))
    bad = accepts(gelu_mul(gu, tanh_form), found.value, found.error, "float32")
    assert not bad[0, 0] and not bad[0, 1] and bad[0, 2]


def test_gelu_has_finite_bounds_for_the_largest_gates() -> None:
    k = kernel("geluMul", {"I": 4}, lead=TOKENS)
    gu = np.array([[1e30, -1e30, 3e38, 11.0, 1.0, 1.0, 1.0, 1.0]])
    found = bound_of(k, {"gu": gu}, "float32")
    assert np.all(np.isfinite(found.error))
    assert np.all(accepts(gelu_mul(gu, stable_form), found.value, found.error, "float32"))


def test_an_activation_outside_its_place_is_seen() -> None:
    k = kernel("geluMul", {"I": 1}, lead=TOKENS)
    found = bound_of(k, {"gu": np.array([[2.0, 3.0]])}, "bfloat16")
    swapped = gelu_mul(np.array([[3.0, 2.0]]), stable_form)
    assert not np.any(accepts(round_to(swapped, "bfloat16"), found.value, found.error, "bfloat16"))


def test_angles_in_float32_are_seen_at_far_positions_and_float64_angles_accepted() -> None:
    k, tensors = wide("rope", "float32")
    found = bound_of(k, tensors, "float32")
    x, pos, table = tensors["x"], tensors["pos"], tensors["table"]

    def rotated(angle: Array) -> Array:
        c, s = np.cos(angle)[:, None].astype(F), np.sin(angle)[:, None].astype(F)
        a, b = np.split(x.astype(F), 2, axis=-1)
        return np.concatenate([a * c - b * s, a * s + b * c], axis=-1).astype(np.float64)

    good = rotated(pos[:, None] * table)
    bad = rotated((pos[:, None].astype(F) * table.astype(F)).astype(np.float64))
    assert np.all(accepts(good, found.value, found.error, "float32"))
    assert not np.all(accepts(bad[3], found.value[3], found.error[3], "float32"))
    np.testing.assert_array_equal(found.error[0], 0)


def attention_case(**changes: Any) -> tuple[Any, dict[str, Any]]:
    k = kernel("slidingGQA", {"D": 4, "heads": 2, "kv_heads": 1, "window": 4}, {"scale": 1})
    tensors = {
        "q": np.zeros((2, 2, 4)),
        "k": np.zeros((9, 1, 4)),
        "v": np.arange(36.0).reshape(9, 1, 4),
        "pos": np.array([7, 2]),
    }
    return k, {**tensors, **changes}


def test_a_window_that_is_off_by_one_is_seen_on_equal_scores() -> None:
    k, tensors = attention_case()
    found = bound_of(k, tensors, "bfloat16")
    v = tensors["v"][:, 0]
    for low, good in ((4, True), (3, False), (5, False)):
        y = np.broadcast_to(v[low:8].mean(0), (2, 4))
        seen = accepts(round_to(y, "bfloat16"), found.value[0], found.error[0], "bfloat16")
        assert np.all(seen) if good else not np.any(seen)


def test_designed_attention_leaves_the_division_only() -> None:
    k, tensors = attention_case()
    found = bound_of(k, tensors, "float32")
    assert np.all(found.error <= 6 * 2.0**-24 * np.abs(found.value))
    tensors["q"][:, :, 0], tensors["k"][:, 0, 0] = 64.0, np.arange(9) * 8.0
    peak = bound_of(k, tensors, "float32")
    np.testing.assert_array_equal(peak.value[0], np.broadcast_to(tensors["v"][7, 0], (2, 4)))
    assert np.all(peak.error <= 6 * 2.0**-24 * np.abs(peak.value))


def test_a_row_without_visible_keys_is_zero_without_error() -> None:
    k = kernel("decodeGQA", {"D": 4, "heads": 2, "kv_heads": 1}, {"scale": 1})
    rng = np.random.default_rng(0)
    cache = {"k": normal(rng, 2, 6, 1, 4), "v": normal(rng, 2, 6, 1, 4)}
    found = bound_of(k, {"q": normal(rng, 2, 2, 4), **cache, "seq_lens": np.array([0, 3])}, "float32")
    np.testing.assert_array_equal(found.value[0], 0)
    np.testing.assert_array_equal(found.error[0], 0)


def test_nan_in_unused_slots_of_a_cache_changes_nothing() -> None:
    k, tensors = attention_case(q=np.ones((2, 2, 4)))
    before = bound_of(k, tensors, "float32")
    for name in ("k", "v"):
        tensors[name] = tensors[name].copy()
        tensors[name][8] = np.nan
    after = bound_of(k, tensors, "float32")
    np.testing.assert_array_equal(before.value, after.value)
    np.testing.assert_array_equal(before.error, after.error)


def test_nan_in_a_slot_that_is_used_fails_every_comparison() -> None:
    k, tensors = attention_case()
    tensors["k"] = tensors["k"].copy()
    tensors["k"][6] = np.nan
    found = bound_of(k, tensors, "float32")
    assert not np.any(accepts(np.zeros((2, 4)), found.value[0], found.error[0], "float32"))
    assert np.all(np.isfinite(found.error[1]))


def test_a_box_is_the_same_as_that_part_of_the_whole() -> None:
    rng = np.random.default_rng(5)
    k = KERNELS["causalGQA rounded"]
    tensors = stored("causalGQA rounded", rng, "bfloat16", 1.0)
    whole = bound_of(k, tensors, "bfloat16")
    t, h = np.array([4, 0, 2]), np.array([3, 1])
    part = bound_of(k, tensors, "bfloat16", at={"o": {"t": t, "h": h}})
    np.testing.assert_allclose(part.value, whole.value[np.ix_(t, h)], rtol=64 * 2.0**-53)
    np.testing.assert_allclose(part.error, whole.error[np.ix_(t, h)], rtol=64 * 2.0**-53)


def test_a_box_that_is_cut_for_memory_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    tensors = stored("slidingGQA", rng, "float32", 1.0)
    whole = bound_of(KERNELS["slidingGQA"], tensors, "float32")
    monkeypatch.setattr("specc.bounds.box.LARGEST", 500)
    cut = bound_of(KERNELS["slidingGQA"], tensors, "float32")
    np.testing.assert_allclose(cut.value, whole.value, rtol=64 * 2.0**-53)
    np.testing.assert_allclose(cut.error, whole.error, rtol=64 * 2.0**-53)


def test_operands_may_be_strided_and_broadcast() -> None:
    rng = np.random.default_rng(8)
    k = KERNELS["linear"]
    x, w = normal(rng, 5, 140)[:, ::2], np.broadcast_to(normal(rng, 70), (9, 70))
    found = bound_of(k, {"x": x, "w": w}, "float32")
    same = bound_of(k, {"x": x.copy(), "w": w.copy()}, "float32")
    np.testing.assert_array_equal(found.value, same.value)
    np.testing.assert_array_equal(found.error, same.error)


def test_following_the_roundings_of_a_profile_tells_a_kernel_that_leaves_one_out() -> None:
    k = KERNELS["rmsnorm rounded"]
    rng = np.random.default_rng(9)
    x, w = normal(rng, 50, 37, dtype="bfloat16"), normal(rng, 37, dtype="bfloat16")
    tensors = {"x": x, "w": w}
    loose, strict = bound_of(k, tensors, "bfloat16"), bound_of(k, tensors, "bfloat16", follow_rounding=True)
    inner = round_to(rmsnorm(x, np.ones(37)).astype(np.float64), "bfloat16")
    good = round_to((inner.astype(F) * w.astype(F)).astype(np.float64), "bfloat16")
    bad = round_to(rmsnorm(x, w).astype(np.float64), "bfloat16")
    for found in (loose, strict):
        assert np.all(accepts(good, found.value, found.error, "bfloat16"))
    assert np.all(accepts(bad, loose.value, loose.error, "bfloat16"))
    assert not np.all(accepts(bad, strict.value, strict.error, "bfloat16"))


def test_a_rounded_scale_of_the_embedding_is_part_of_the_bound() -> None:
    k = kernel(
        "embed", {"V": 4, "H": 8}, {"mul": "73.32121111929344"}, lead=TOKENS, rounds=(("embed", "mul", "weight"),)
    )
    w = np.ones((4, 8))
    found = bound_of(k, {"tokens": np.array([1]), "w": w}, "bfloat16")
    assert np.all(accepts(np.full((1, 8), 73.5), found.value, found.error, "bfloat16"))
    strict = bound_of(k, {"tokens": np.array([1]), "w": w}, "bfloat16", follow_rounding=True)
    np.testing.assert_array_equal(strict.value, 73.5)
    np.testing.assert_array_equal(strict.error, 0)


def test_float64_computing_has_bounds_of_float64() -> None:
    rng = np.random.default_rng(10)
    k = KERNELS["rmsnorm"]
    tensors = {"x": rng.standard_normal((5, 37)), "w": rng.standard_normal(37)}
    found = bound_of(k, tensors, "float64", torch(storage("float64"), "float64"))
    x, w = tensors["x"], tensors["w"]
    got = x / np.sqrt(np.mean(x.astype(np.longdouble) ** 2, -1, keepdims=True) + 1e-6) * w
    assert np.all(np.abs(got - found.value) <= found.error)
    assert np.all(found.error < 1e-13)


def test_recurrences_are_refused_by_name() -> None:
    formula = instantiate(
        load_library().op("gdnState"), {n: Num(Fraction(2), Sort.INDEX) for n in ("Hk", "Hv", "Dk", "Dv")}
    )
    with pytest.raises(NotSupported, match="gdnState is a recurrence without a bound: `S` is no sum"):
        bound(formula, {}, triton(storage("float32")))


def test_a_matrix_times_a_vector_is_bound_as_a_row_too() -> None:
    text = "op dot(x[T, K], w[K]; K: nat) -> y[T, K]\n  y[t, i] = Σ_k x[t, k] · w[k] + x[t, i]"
    k = kernel("dot", {"K": 600}, text=text)
    rng = np.random.default_rng(11)
    tensors = {"x": normal(rng, 2, 600), "w": normal(rng, 600)}
    usual = triton(storage("float32"))
    free = replace(usual, depth=replace(usual.depth, contraction=Tiles(16, 1e-9)))
    assert np.all(bound_of(k, tensors, "float32", free).error > 3e-4)


def test_subnormal_operands_may_be_read_as_zero_on_a_gpu() -> None:
    text = "op grow(x[T, K]; K: nat) -> y[T, K]\n  y[t, k] = 1099511627776 · x[t, k]"
    k = kernel("grow", {"K": 2}, text=text)
    found = bound_of(k, {"x": np.array([[2.0**-130, 1.0]])}, "float32")
    assert np.all(accepts(np.zeros(1), found.value[0, :1], found.error[0, :1], "float32"))
    assert found.error[0, 1] == 0


def test_no_output_positions_give_an_empty_bound() -> None:
    found: Bound = bound_of(KERNELS["linear"], {"x": np.zeros((0, 70)), "w": np.zeros((9, 70))}, "float32")
    assert found.value.shape == (0, 9)
