"""Weights of an online softmax: their bound holds score errors, rescalings, underflow and rounding to storage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specc.bounds import round_to, torch, triton
from specc.bounds.arithmetic import Arithmetic
from specc.bounds.formats import Array
from specc.bounds.softmax import Weights, round_probabilities, weighted_sum, weights
from specc.bounds.values import EXACT, Truth, Val
from tests.bounds.support import normal, storage

GPU = Arithmetic(triton(storage("bfloat16")))
SEEDS = st.integers(0, 2**32 - 1)
F = np.float32


def weigh(score: Array, error: float = 0.0, seen: Array | None = None) -> Weights:
    n = len(score)
    visible = np.ones(n, bool) if seen is None else np.asarray(seen, bool)
    held = Val(("l",), score, np.full(n, error) if error else EXACT)
    return weights(GPU, held, Truth(("l",), visible, np.ones((), bool)), "l", n, 16)


def online(score: Array, block: int) -> Array:
    """Weights as float32 leaves them: exp(score - running maximum), times every later rescaling."""
    s, out, top = score.astype(F), np.zeros(len(score), F), F(-np.inf)
    for start in range(0, len(s), block):
        new = np.maximum(top, s[start : start + block].max())
        if start:
            out[:start] = out[:start] * np.exp(top - new)
        out[start : start + block] = np.exp(s[start : start + block] - new)
        top = new
    return out.astype(np.float64)


@given(SEEDS, st.sampled_from([16, 32, 64]), st.sampled_from([0.1, 3.0, 40.0]))
def test_rescaled_weights_stay_in_their_bound(seed: int, block: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    score = np.sort(normal(rng, 200, scale=scale))
    found = weigh(score).held
    assert np.all(np.abs(online(score, block) - found.value) <= found.error)


@given(SEEDS, st.floats(1e-6, 0.5))
def test_an_error_of_the_scores_moves_quotients_of_weights_within_their_bound(seed: int, e: float) -> None:
    rng = np.random.default_rng(seed)
    score = normal(rng, 30)
    moved = np.exp(score + e * rng.choice([-1, 1], 30))
    found = weigh(score, e).held
    off = np.sum(found.error) / np.sum(found.value)
    share, want = moved / moved.sum(), found.value / found.value.sum()
    assert np.all(np.abs(share - want) <= (found.error / found.value.sum() + want * off) * 1.7)
    assert np.all(found.error >= found.value * np.expm1(e))


def test_equal_scores_have_exact_weights_and_hidden_keys_none() -> None:
    found = weigh(np.zeros(40), seen=np.arange(40) < 7).held
    np.testing.assert_array_equal(found.value, np.arange(40) < 7)
    assert found.certain


def test_weights_divided_before_they_are_used_are_rounded_once_more() -> None:
    cpu = Arithmetic(torch(storage("float32")))
    held = Val(("l",), np.zeros(3))
    found = weights(cpu, held, Truth((), np.ones((), bool), np.ones((), bool)), "l", 3, 16).held
    assert np.all(found.error >= abs(3 * float(F(1) / F(3)) - 1))


def test_weights_that_underflow_everywhere_are_zero_and_those_near_it_may_be_flushed() -> None:
    found = weigh(np.array([0.0, -87.5, -200.0])).held
    assert found.value[2] == 0 and found.error[2] == 0
    assert found.error[1] >= found.value[1] > 0


def test_the_maximum_coming_last_costs_a_rescaling_and_coming_first_none() -> None:
    first, last = weigh(np.array([0.0, -1.0])).held, weigh(np.array([-1.0, 0.0])).held
    assert first.error[1] < last.error[0]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rounded_weights_cover_any_scale_they_are_rounded_at(dtype: str) -> None:
    rng = np.random.default_rng(0)
    score = normal(rng, 400, scale=4)
    found = round_probabilities(weigh(score).held, dtype)
    for shift in rng.uniform(0, 5, 10):
        rounded = round_to(np.exp(np.minimum(score - score.max() + shift, 0)), dtype) * np.exp(-shift)
        kept = score - score.max() + shift <= 0
        assert np.all(np.abs(rounded - found.value)[kept] <= found.error[kept])
    assert round_probabilities(weigh(np.zeros(3)).held, dtype).error[()].max() == 0


def test_a_value_takes_part_only_in_rows_that_see_it() -> None:
    seen = np.array([[True, False, False, True], [True, True, False, True], [True, True, False, False]])
    found = Weights(Val(("t", "l"), seen.astype(float)), seen)
    value = Val(("l", "d"), np.array([[1.0, 2.0], [np.inf, 1.0], [np.nan, np.nan], [3.0, -np.inf]]))
    out = weighted_sum(GPU, found.held, found, value, "l")
    np.testing.assert_array_equal(out.value, [[4, -np.inf], [np.inf, -np.inf], [np.inf, 3]])
    assert out.certain
    value.value[3, 0] = np.nan
    np.testing.assert_array_equal(
        weighted_sum(GPU, found.held, found, value, "l").value[:, 0], [np.nan, np.nan, np.inf]
    )


def test_an_infinite_value_whose_weight_may_be_nothing_is_no_number() -> None:
    found = weigh(np.array([0.0, -200.0]))
    out = weighted_sum(GPU, found.held, found, Val(("l",), np.array([1.0, np.inf])), "l")
    assert np.isnan(out.value)
