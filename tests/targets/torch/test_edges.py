"""Inputs on which real kernels have failed, and storage types shorter than the oracle's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from specc.ir import Role
from specc.ops import Formula
from specc.oracle import evaluate
from specc.targets.torch.target import run_node
from tests.oracle.formulas import formula_of as closed
from tests.targets.torch.agreement import agree
from tests.targets.torch.cases import CONSTANTS, formula_of, operands

WINDOW = 3
DECODE = ("decodeGQA", "slidingDecodeGQA")
PREFILL = ("causalGQA", "slidingGQA")


def run(formula: Formula, dtype: str = "float64", **tensors: Any) -> Any:
    (result,) = run_node(formula, {}, tensors, dtype).values()
    return result


@pytest.mark.parametrize("op", DECODE)
@pytest.mark.parametrize("heads, kv_heads", [(3, 3), (6, 3), (15, 3), (16, 1), (14, 2)])
def test_decode_at_every_length_with_poisoned_slots(op: str, heads: int, kv_heads: int) -> None:
    lengths = [0, 1, WINDOW, WINDOW + 1, 8, 9]
    formula = formula_of(op, heads=heads, kv_heads=kv_heads)
    tensors = operands(formula, indices={"seq_lens": lengths}, B=len(lengths), S=9)
    clean = agree(formula, tensors)["o"]
    for row, n in enumerate(lengths):
        first = max(0, n - WINDOW) if op.startswith("sliding") else 0
        for name in ("k", "v"):
            tensors[name][row, :first] = np.nan
            tensors[name][row, n:] = np.inf if name == "v" else np.nan
    poisoned = run_node(formula, {}, tensors, "float64")["o"]
    assert torch.equal(poisoned, clean)
    assert not clean[0].any()


@pytest.mark.parametrize("op", DECODE)
def test_a_mask_does_not_broadcast_along_the_heads_when_there_are_as_many_sequences(op: str) -> None:
    formula = formula_of(op, heads=3, kv_heads=3)
    agree(formula, operands(formula, indices={"seq_lens": [1, 5, 9]}, B=3, S=9))


@pytest.mark.parametrize("op", PREFILL)
def test_a_nan_reaches_the_queries_that_see_it_and_no_other(op: str) -> None:
    formula = formula_of(op)
    tensors = operands(formula, indices={"pos": range(2, 9)}, T=7, L=9)
    clean = agree(formula, tensors)["o"]
    for name in ("k", "v"):
        for value in (np.nan, np.inf):
            spoilt = {**tensors, name: tensors[name].copy()}
            spoilt[name][4] = value
            found = run_node(formula, {}, spoilt, "float64")["o"]
            last = 4 + WINDOW - 1 if op.startswith("sliding") else 8
            for row, position in enumerate(range(2, 9)):
                sees = 4 <= position <= last
                assert found[row].isfinite().all() == (not sees)
                assert sees or torch.equal(found[row], clean[row])


def test_an_infinite_value_keeps_its_sign() -> None:
    formula = formula_of("causalGQA", D=2, heads=1, kv_heads=1)
    tensors = operands(formula, indices={"pos": [3]}, T=1, L=4)
    tensors["v"][1] = [[np.inf, -np.inf]]
    tensors["v"][2] = [[np.inf, np.inf]]
    assert run_node(formula, {}, tensors, "float64")["o"].flatten().tolist()[0] == math.inf
    assert run_node(formula, {}, tensors, "float64")["o"].flatten()[1].isnan()


@pytest.mark.parametrize("op", [*DECODE, *PREFILL])
def test_large_scores_do_not_overflow(op: str) -> None:
    formula = formula_of(op, scale=1)
    tensors = operands(formula, indices={"pos": range(5), "seq_lens": [9, 4, 1]})
    tensors["q"] *= 1e4
    agree(formula, tensors)


def test_rope_at_position_0_changes_nothing_and_far_out_is_right() -> None:
    formula = formula_of("rope", D=256, rot=256, denom=256, active=128, theta=10000)
    x = operands(formula, T=3)["x"]
    pos = np.array([0, 1, 262143])
    expected = evaluate(formula, {"x": x, "pos": pos})["y"]
    error = np.abs(run(formula, x=x, pos=pos).numpy() - expected).max(axis=(1, 2))
    angle = 2.0**-53 * pos  # one rounding of a frequency, times the position
    assert (error <= 4 * np.abs(x).max() * (angle + 2.0**-52)).all()
    assert torch.equal(run(formula, x=x, pos=np.zeros(3, np.int64)), torch.from_numpy(x))


@pytest.mark.parametrize("dtype, limit", [("float32", 2.0**-22), ("bfloat16", 2.0**-7)])
def test_angles_are_not_rounded_before_the_cosine(dtype: str, limit: float) -> None:
    formula = formula_of("rope", D=256, rot=256, denom=256, active=128, theta=10000)
    x = np.ones((1, 3, 256))
    pos = np.array([262143])
    expected = torch.from_numpy(evaluate(formula, {"x": x, "pos": pos})["y"])
    assert (run(formula, dtype, x=x, pos=pos).double() - expected).abs().max() < limit


def test_proportional_rope_turns_the_active_pairs_alone() -> None:
    formula = formula_of("rope", D=16, rot=16, denom=16, active=2, theta=1000000)
    x = operands(formula, T=1)["x"]
    moved = run(formula, x=x, pos=np.array([7]))[0, 0].numpy() != x[0, 0]
    assert [i for i in range(16) if moved[i]] == [0, 1, 8, 9]


def test_known_values() -> None:
    one = formula_of("l2norm", lead=(), D=128)
    assert run(one, x=np.full(128, 1e-4))[5].item() == pytest.approx(0.066226617)
    offset = formula_of("rmsnormOffset", lead=(), H=3)
    x = np.array([1.0, 2.0, -2.0])
    assert run(offset, x=x, w=np.zeros(3)).numpy() == pytest.approx(x / math.sqrt(3), rel=1e-6)
    gelu = formula_of("geluMul", lead=(), I=1)
    assert run(gelu, gu=np.array([-8.0, 1.0])).item() == pytest.approx(-3.1e-21, rel=0.02)
    assert run(gelu, "float32", gu=np.array([-5.0, 1.0])).item() == pytest.approx(-2.29e-7, rel=0.01)
    assert run(gelu, "float32", gu=np.array([100.0, 1.0])).item() == 100
    silu = formula_of("siluMul", lead=(), I=1)
    assert run(silu, "float32", gu=np.array([-1000.0, 1.0])).item() == 0
    head = formula_of("lmHead", lead=(), K=1, N=1, mul="0.5", softcap=30)
    assert run(head, x=np.array([60.0]), w=np.ones((1, 1))).item() == pytest.approx(30 * math.tanh(1))
    assert run(head, "float32", x=np.array([-2e4]), w=np.ones((1, 1))).item() == -30
    residual = formula_of("residual", lead=(), given=("s",), H=1, r=1, layer_scalar=True)
    assert run(residual, x=np.array([2.0]), h=np.array([4.0]), s=np.array([0.5])).item() == 3
    state = formula_of("gdnState")
    halves = np.full((2, 1), 0.5)
    assert run(state, k=np.ones((2, 1, 1)), v=np.ones((2, 1, 1)), alpha=halves, beta=halves)[1].item() == 0.625


@pytest.mark.parametrize("tokens", [1, 2, 3, 4, 5])
def test_the_convolution_starts_from_zeros(tokens: int) -> None:
    formula = formula_of("causalConvSilu")
    agree(formula, operands(formula, T=tokens, K=4))


@pytest.mark.parametrize("op", sorted(CONSTANTS))
def test_views_with_strides_and_odd_offsets_give_the_same_and_stay_as_they_are(op: str) -> None:
    formula = formula_of(op)
    tensors = operands(formula)
    plain = run_node(formula, {}, tensors, "float64")
    views = {}
    for name, t in tensors.items():
        room = torch.zeros([n + 3 for n in t.shape], dtype=torch.from_numpy(t).dtype)
        view = room[tuple(slice(1, n + 1) for n in t.shape)]
        view.copy_(torch.from_numpy(t))
        views[name] = view
    before = {name: v.clone() for name, v in views.items()}
    for name, result in run_node(formula, {}, views, "float64").items():
        assert torch.allclose(result, plain[name], rtol=1e-14, atol=1e-15)
    assert all(torch.equal(views[name], before[name]) for name in views)


STEP = {"float32": 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11}


@pytest.mark.parametrize("op", sorted(CONSTANTS))
@pytest.mark.parametrize("dtype", sorted(STEP))
def test_shorter_storage_rounds_operands_and_results_and_nothing_between(op: str, dtype: str) -> None:
    formula = formula_of(op)
    tensors = {
        name: t if t.dtype.kind == "i" else torch.from_numpy(t).to(getattr(torch, dtype)).double().numpy()
        for name, t in operands(formula).items()
    }
    found = run_node(formula, {}, tensors, dtype)
    for name, expected in evaluate(formula, tensors).items():
        assert found[name].dtype is getattr(torch, dtype)
        allowed = STEP[dtype] * np.abs(expected) + 2e-6 * np.abs(expected).max()
        assert (np.abs(found[name].double().numpy() - expected) <= allowed).all()


def test_a_profile_rounds_a_let_a_constant_and_the_weights_of_softmax() -> None:
    norm = formula_of("rmsnorm")
    tensors = operands(norm)
    rounds = (("rmsnorm", "n", Role.ACTIVATION), ("embed", "mul", Role.WEIGHT), ("softmax", "", Role.CACHE))
    x, w = (torch.from_numpy(tensors[n]).bfloat16().float() for n in "xw")
    n = x / torch.sqrt((x**2).sum(-1, keepdim=True) / 7 + 1e-6)
    assert torch.equal(run_node(norm, {}, tensors, "bfloat16", rounds)["y"], (n.bfloat16().float() * w).bfloat16())
    embed = formula_of("embed", lead=())
    table = np.ones((11, 6))
    bits = run_node(embed, {}, {"tokens": np.array(3), "w": table}, "bfloat16", rounds)["y"]
    assert bits[0].item() == torch.tensor(2.449).bfloat16().item()
    core = formula_of("causalGQA")
    parts = operands(core, indices={"pos": range(5)})
    assert not torch.equal(
        run_node(core, {}, parts, "bfloat16", rounds)["o"], run_node(core, {}, parts, "bfloat16")["o"]
    )
    for formula, given in ((norm, tensors), (core, parts)):
        (exact,) = run_node(formula, {}, given, "float64").values()
        (rounded,) = run_node(formula, {}, given, "float64", rounds).values()
        assert torch.equal(exact, rounded)


def test_operands_that_do_not_fit_are_refused() -> None:
    formula = formula_of("linear", lead=())
    with pytest.raises(ValueError, match="`w`"):
        run(formula, x=np.ones(7))
    with pytest.raises(ValueError, match="`w` has 1 axes"):
        run(formula, x=np.ones(7), w=np.ones(7))
    with pytest.raises(ValueError, match=r"`w` is \[5, 6\]"):
        run(formula, x=np.ones(7), w=np.ones((5, 6)))
    core = formula_of("causalGQA")
    tensors = operands(core, indices={"pos": range(5)})
    with pytest.raises(ValueError, match="`v`"):
        run_node(core, {}, {**tensors, "v": tensors["v"][:-1]}, "float64")


@pytest.mark.parametrize(
    "op",
    [
        "y[T]\n  y[t] = x[t] + z[t % S]",
        "y[T // S]\n  y[t] = x[t] + z[0]",
        "y[T]\n  y[t] = if t < 2 then 1 else z[t % S]",
    ],
)
def test_a_size_of_zero_that_the_formula_divides_by_is_refused(op: str) -> None:
    formula = closed(f"op f(x[T], z[S]) -> {op}")
    with pytest.raises(ValueError, match="S is 0, and the formula divides by it"):
        run(formula, x=torch.ones(3), z=torch.ones(0))


def test_a_size_may_be_zero_where_the_formula_then_divides_by_nothing() -> None:
    formula = closed("op f(x[T], z[S]) -> y[T]\n  y[t] = x[t] + (if S > 0 then z[t % S] else 0)")
    assert torch.equal(run(formula, x=torch.ones(3), z=torch.ones(0)), torch.ones(3, dtype=torch.float64))
