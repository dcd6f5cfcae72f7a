"""The oracle's bound of its own error holds, is not idle, and leads to more digits where it must."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specc.ops import Formula
from specc.oracle import evaluate, evaluate_within, precise, uncertainty
from tests.oracle.formulas import SEEDS, Array, Draw, close, formula_of


def assert_bounded(formula: Formula, tensors: dict[str, Array], tightness: float = 1e-8) -> None:
    """At three places: |float64 - true| <= bound, and the bound is small beside the value's own scale."""
    found, bound = evaluate(formula, tensors), uncertainty(formula, tensors)
    for name, value in found.items():
        spots = np.random.default_rng(0).integers(0, max(value.size, 1), min(value.size, 3))
        points = [tuple(int(i) for i in np.unravel_index(k, value.shape)) for k in spots]
        for point, right in zip(points, precise(formula, tensors, at_points={name: points})[name], strict=True):
            error = abs(right - mpmath.mpf(float(value[point])))
            assert error <= bound[name][point] <= tightness * max(1, np.abs(value).max()), (name, point)


OPERANDS: dict[str, Any] = {
    "rmsnorm": ({"H": 33, "eps": 1e-6}, 1, lambda d: {"x": d(2, 33), "w": d(33)}),
    "l2norm": ({"D": 33, "eps": 1e-6}, 1, lambda d: {"x": d(2, 33)}),
    "rmsnormGated": ({"H": 5, "eps": 1e-6}, 1, lambda d: {"x": d(2, 5), "z": d(2, 5), "w": d(5)}),
    "linear": ({"K": 65, "N": 3}, 1, lambda d: {"x": d(2, 65), "w": d(3, 65)}),
    "gateUp": ({"K": 7, "I": 3}, 1, lambda d: {"x": d(2, 7), "wg": d(3, 7), "wu": d(3, 7)}),
    "siluMul": ({"I": 5}, 1, lambda d: {"gu": d(2, 10)}),
    "geluMul": ({"I": 5}, 1, lambda d: {"gu": d(2, 10)}),
    "lmHead": ({"K": 9, "N": 3, "mul": 0.3, "softcap": 30}, 1, lambda d: {"x": d(2, 9), "w": d(3, 9)}),
    "slidingGQA": ({"D": 5, "heads": 4, "kv_heads": 2, "scale": 0.3, "window": 4}, 0,
                   lambda d: {"q": d(3, 4, 5), "k": d(7, 2, 5), "v": d(7, 2, 5),
                              "pos": np.array([-1, 5, 6])}),
    "rope": ({"D": 8, "rot": 6, "denom": 8, "active": 2, "theta": 1e6}, 0,
             lambda d: {"x": d(3, 2, 8), "pos": d.integers(0, 262143, 3)}),
    "gatedDeltaRule": ({}, 0, lambda d: {"q": d(3, 1, 3), "k": d(3, 1, 3), "v": d(3, 2, 2),
                                         "alpha": d.unit(3, 2), "beta": d.unit(3, 2)}),
    "causalConvSilu": ({}, 0, lambda d: {"x": d(5, 2), "w": d(2, 4)}),
}  # fmt: skip


@pytest.mark.parametrize("op", OPERANDS)
@settings(max_examples=15)
@given(seed=SEEDS, magnitude=st.sampled_from([1e-4, 1.0, 3.0]))
def test_the_bound_holds(op: str, seed: int, magnitude: float) -> None:
    constants, lead, operands = OPERANDS[op]
    assert_bounded(close(op, constants, lead), operands(Draw(seed, magnitude)))


FUNCTIONS = ["exp", "expm1", "log", "log1p", "sqrt", "tanh", "sin", "cos", "abs"]


@pytest.mark.parametrize("fn", FUNCTIONS)
@settings(max_examples=40)
@given(
    x=st.lists(st.floats(1e-6, 30), min_size=1, max_size=4), sign=st.sampled_from([1, -1]),
    spread=st.sampled_from(["0.1", "(1/3)"]),
)  # fmt: skip
def test_the_bound_holds_for_elementary_functions_of_inexact_arguments(
    fn: str, x: list[float], sign: int, spread: str
) -> None:
    values = np.array(x) * (1 if fn in ("log", "log1p", "sqrt") else sign)
    formula = formula_of(f"op f(x[T]) -> y[T]\n  y[t] = {fn}(x[t] · {spread} + x[t])")
    assert_bounded(formula, {"x": values}, tightness=1e-12)


@given(x=st.lists(st.floats(-3, 3), min_size=1, max_size=5))
@settings(max_examples=40)
def test_the_bound_holds_for_products_maxima_powers_and_quotients(x: list[float]) -> None:
    values = np.array(x)
    for body in (
        "Π_j (x[j] · 0.1 + 2)",
        "Max_j (x[j] · 0.1)",
        "2.5 ^ (x[t] / 3)",
        "x[t]^7 · 0.1",
        "max(x[t] · 0.1, 0)",
    ):
        formula = formula_of(f"op f(x[T]) -> y[T]\n  y[t] = 0 · x[t] + {body}")
        assert_bounded(formula, {"x": values}, tightness=1e-11)


def test_cancellation_makes_the_bound_large() -> None:
    formula = formula_of("op f(x[T]) -> y[T]\n  y[t] = (x[t] + 1) - x[t]")
    x = {"x": np.array([1e15 + 0.3, 1.0, 1e17])}
    assert list(evaluate(formula, x)["y"]) != [1, 1, 1]
    assert (np.abs(evaluate(formula, x)["y"] - 1) <= uncertainty(formula, x)["y"]).all()


def test_a_divisor_that_is_mostly_error_makes_the_bound_larger_than_its_share() -> None:
    formula = formula_of("op f(x[T]) -> y[T]\n  y[t] = 1 / ((x[t] + 10000000000000000) - 10000000000000000)")
    x = {"x": np.array([1.1, 0.9])}
    found, bound = evaluate(formula, x)["y"], uncertainty(formula, x)["y"]
    assert found[0] == 0.5
    assert 1 / 1.1 - 0.5 <= bound[0] < 1
    assert bound[1] == np.inf


def test_a_decision_that_rounding_may_turn_is_not_certain() -> None:
    formula = formula_of("op f(x[T]) -> y[T]\n  y[t] = if x[t] · 0.1 > 0.3 then 1 else 0")
    bound = uncertainty(formula, {"x": np.array([1.0, 3.0, 5.0])})["y"]
    np.testing.assert_array_equal(bound, [0, np.inf, 0])
    found = evaluate_within(formula, {"x": np.array([1.0, 3.0, 5.0])}, {"y": 1e-9})
    np.testing.assert_array_equal(found.values["y"], [0, 0, 1])
    assert (found.recomputed, found.unsettled) == (1, {"y": 0})


def test_a_nan_that_was_read_is_certain_and_one_that_arose_is_not() -> None:
    formula = formula_of("op f(x[T, K], w[K]) -> y[T]\n  y[t] = Σ_k x[t, k] · w[k]")
    x = np.array([[np.nan, 1.0], [1e308, 1e308], [1.0, 2.0]])
    bound = uncertainty(formula, {"x": x, "w": np.array([10.0, -10.0])})["y"]
    assert bound[0] == 0
    assert not bound[1] < np.inf
    assert 0 < bound[2] < 1e-13


def test_elements_where_float64_is_not_enough_are_computed_again() -> None:
    formula = close("geluMul", {"I": 4}, 1)
    gu = np.array([[-8.0, 2.0, -5.0, -12.0, 1.0, 1.0, 1.0, 1.0]])
    found = evaluate_within(formula, {"gu": gu}, {"y": np.array([[1e-24, 1e-3, 1e-9, 1e-40]])})
    right = precise(formula, {"gu": gu}, at_points={"y": [(0, i) for i in range(4)]}, digits=200)["y"]
    assert found.recomputed == 2
    assert found.unsettled == {"y": 0}
    for i, tolerance in enumerate([1e-24, 1e-3, 1e-9, 1e-40]):
        assert abs(right[i] - found.values["y"][0, i]) <= found.uncertainty["y"][0, i] <= 0.01 * tolerance


def test_no_more_elements_are_computed_again_than_allowed() -> None:
    formula, gu = close("geluMul", {"I": 3}, 1), np.array([[-8.0, -9.0, -7.0, 1.0, 1.0, 1.0]])
    found = evaluate_within(formula, {"gu": gu}, {"y": 1e-30}, max_precise=2)
    assert (found.recomputed, found.unsettled) == (2, {"y": 1})
    nothing = evaluate_within(formula, {"gu": gu}, {"y": 1.0}, max_precise=2)
    assert (nothing.recomputed, nothing.unsettled) == (0, {"y": 0})


def test_chosen_places_are_computed_again_at_their_own_positions() -> None:
    formula, gu = close("geluMul", {"I": 3}, 1), np.array([[1.0, -8.0, 2.0, 1.0, 1.0, 1.0]])
    found = evaluate_within(formula, {"gu": gu}, {"y": 1e-30}, at={"y": {"i": [2, 1]}})
    assert found.values["y"][0, 1] == pytest.approx(-3.1077829375011112e-21, rel=1e-15)
    assert found.values["y"][0, 0] == pytest.approx(1.9545976940877752, rel=1e-15)


def test_a_value_that_no_digits_settle_is_reported() -> None:
    """The value is 0, of which every number of digits gives another remainder."""
    text = "op f(x[T]) -> y[T]\n  y[t] = Σ_{j < 40} (sin(x[t] + j)² + cos(x[t] + j)² - 1)"
    formula = formula_of(text)
    found = evaluate_within(formula, {"x": np.array([2.0])}, {"y": 0.0})
    assert found.unsettled == {"y": 1}
    assert evaluate_within(formula, {"x": np.array([2.0])}, {"y": 1e-30}).unsettled == {"y": 0}


def test_points_need_one_index_per_axis() -> None:
    formula, x = close("l2norm", {"D": 2, "eps": 1}, 1), {"x": np.ones((1, 2))}
    with pytest.raises(ValueError, match="`y` has 2 axes, a point has 1 indices"):
        precise(formula, x, at_points={"y": [(0,)]})
    with pytest.raises(ValueError, match="l2norm has no result `z`"):
        precise(formula, x, at_points={"z": [(0, 0)]})
