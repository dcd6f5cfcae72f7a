"""Gated DeltaNet: values by oracle and reference; no schedule takes recurrences yet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from specc.oracle import evaluate, uncertainty
from specc.targets.torch.target import run_node
from tests import twins
from tests.cases.support import Array, draw
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
