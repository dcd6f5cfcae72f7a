"""Gated DeltaNet: values by oracle, reference and generated kernels."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from specc.ir import Role
from specc.kernels import Kernel
from specc.lower.lower import Setting, lower_formula
from specc.oracle import evaluate, uncertainty
from specc.targets.torch.target import run_node
from tests import twins
from tests.cases.support import EVERY, Array, Trial, draw, exact
from tests.oracle.formulas import close


def both(op: str, **tensors: Any) -> tuple[Array, Array]:
    """The last result of oracle and reference in float64."""
    formula, arrays = close(op), {n: np.asarray(t, np.float64) for n, t in tensors.items()}
    name = formula.outputs[-1].name
    found = run_node(formula, {}, arrays, "float64")[name]
    assert found.dtype is torch.float64
    return evaluate(formula, arrays)[name], found.numpy()


def own_error(op: str, **tensors: Any) -> Array:
    """What one float64 computation of the last result may lose, in any order; two differ by at most twice that."""
    formula = close(op)
    return uncertainty(formula, {n: np.asarray(t, np.float64) for n, t in tensors.items()})[formula.outputs[-1].name]


def test_halves_give_a_state_of_five_eighths() -> None:
    half, one = np.full((2, 1), 0.5), np.ones((2, 1, 1))
    for states in both("gdnState", k=one, v=one, alpha=half, beta=half):
        assert list(states[:, 0, 0, 0]) == [0.5, 0.625]


def test_queries_are_not_scaled() -> None:
    ones = np.ones((1, 1, 4))
    for o in both("gatedDeltaRule", q=ones, k=ones, v=ones[..., :1], alpha=np.ones((1, 1)), beta=np.ones((1, 1))):
        assert o[0, 0, 0] == 4


def test_the_state_starts_at_zero() -> None:
    """The first state is the same under any decay."""
    k, v, beta = draw(1, 1, 1, 3), draw(2, 1, 1, 2), np.full((1, 1), 0.5)
    expected = 0.5 * v[0, 0, :, None] * k[0, 0, None, :]
    for alpha in (0.0, 1.0):
        operands = {"k": k, "v": v, "alpha": np.full((1, 1), alpha), "beta": beta}
        for states in both("gdnState", **operands):
            assert np.all(np.abs(states[0, 0] - expected) <= 2 * own_error("gdnState", **operands)[0, 0])


@pytest.mark.parametrize("tokens", [0, 1, 2, 7, 8])
def test_short_prompts_are_right(tokens: int) -> None:
    shapes = {"q": (2, 3), "k": (2, 3), "v": (4, 2), "alpha": (4,), "beta": (4,)}
    t = {n: draw(i, tokens, *s) for i, (n, s) in enumerate(shapes.items())}
    t |= {n: 1 / (1 + np.exp(-t[n])) for n in ("alpha", "beta")}
    oracle, reference = both("gatedDeltaRule", **t)
    assert oracle.shape == reference.shape == (tokens, 4, 2)
    assert np.all(np.abs(reference - oracle) <= 2 * own_error("gatedDeltaRule", **t))


@pytest.mark.parametrize("tokens", [1, 2])
def test_prompts_shorter_than_the_convolution_are_padded_with_zeros_on_the_left(tokens: int) -> None:
    x, w = np.array([[2.0], [3.0]])[:tokens], np.array([[100.0, 10.0, 0.5, 0.25]])
    expected = [twins.silu(2 * 0.25), twins.silu(2 * 0.5 + 3 * 0.25)][:tokens]
    for y in both("causalConvSilu", x=x, w=w):
        assert np.all(np.abs(y[:, 0] - expected) <= 2 * own_error("causalConvSilu", x=x, w=w)[:, 0])


KEPT = ("S0", "S", "alpha", "beta")
SHAPES = {"q": (2, 20), "k": (2, 20), "v": (4, 24), "alpha": (4,), "beta": (4,)}


@cache
def core() -> Kernel:
    """The prefill of 4 value heads on 2 key heads, from a given state."""
    return lowered("gatedDeltaRule", ("S0",))


@cache
def step() -> Kernel:
    return lowered("gdnStep")


def lowered(op: str, given: tuple[str, ...] = ()) -> Kernel:
    formula = close(op, {"Hv": 4, "Hk": 2, "Dk": 20, "Dv": 24}, given=given)
    tensors = (*formula.inputs, *formula.outputs)
    roles = {t.name: Role.ACCUMULATOR if t.name in KEPT else Role.ACTIVATION for t in tensors}
    return lower_formula(formula, Setting("core", roles=roles))


def prompt(tokens: int, dtype: str, **given: Any) -> Trial:
    tensors = {n: draw(n_, tokens, *s) for n_, (n, s) in enumerate(SHAPES.items())}
    tensors["k"] /= np.sqrt(np.sum(tensors["k"] ** 2, axis=-1, keepdims=True)) if tokens else 1
    tensors |= {n: 1 / (1 + np.exp(-tensors[n])) for n in ("alpha", "beta")} | given
    start = {"S0": draw(9, 4, 24, 20)}
    stored = {n: exact({n: t}, "float32" if n in KEPT else dtype)[n] for n, t in (start | tensors).items()}
    views = {n: torch.from_numpy(np.ascontiguousarray(stored[n])).to(torch.float32) for n in ("S0", "alpha", "beta")}
    return Trial(core(), stored, dtype, views)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("tokens", [1, 2, 7, 8, 15, 16, 17, 33])
def test_lengths_around_a_chunk_are_right(tokens: int, dtype: str) -> None:
    prompt(tokens, dtype).right()


@pytest.mark.parametrize("decay", [1e-12, 0.0])
def test_decays_near_and_at_zero_are_right(decay: float) -> None:
    prompt(64, "float32", alpha=np.full((64, 4), decay)).right(EVERY)
    mixed = np.ones((64, 4))
    mixed[::5] = decay
    prompt(64, "float32", alpha=mixed).right(EVERY)


def test_a_step_with_a_decay_near_or_at_zero_is_right() -> None:
    decays = np.array([1e-12, 0.0, 1.0])[:, None]
    tensors = {n: draw(n_, 3, *s) for n_, (n, s) in enumerate((SHAPES | {"S0": (4, 24, 20)}).items())}
    stored = exact(tensors | {"alpha": np.broadcast_to(decays, (3, 4)), "beta": np.full((3, 4), 0.5)}, "float32")
    Trial(step(), stored, "float32").right(EVERY)


def test_an_empty_sequence_gives_back_its_state() -> None:
    trial = prompt(0, "float32")
    for target in ("triton", "torch"):
        assert np.array_equal(trial.outputs(target)["S"], trial.tensors["S0"])
