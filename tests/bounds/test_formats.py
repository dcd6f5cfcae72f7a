"""Rounding to storage formats, and which stored values a bound accepts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from specc.bounds import FORMATS, accepts, round_to, store_error, store_interval, usage, vacuity

TORCH = {"float32": torch.float32, "float16": torch.float16}
ANY = st.floats(width=64, allow_nan=False)


@given(st.lists(ANY, min_size=1, max_size=20), st.sampled_from(sorted(TORCH)))
def test_rounding_agrees_with_conversions_that_round_once(xs: list[float], dtype: str) -> None:
    x = np.array(xs)
    want = {"float32": np.float32, "float16": np.float16}[dtype]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(round_to(x, dtype), x.astype(want).astype(np.float64))


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20))
def test_rounding_to_bfloat16_agrees_with_the_official_conversion_from_float32(xs: list[float]) -> None:
    want = torch.tensor(xs, dtype=torch.float32).to(torch.bfloat16).to(torch.float64).numpy()
    np.testing.assert_array_equal(round_to(np.array(xs), "bfloat16"), want)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_ties_go_to_even_and_everything_else_to_the_nearer(dtype: str) -> None:
    step = 2 * FORMATS[dtype].unit
    x = np.array([1 + step / 2, 1 + 3 * step / 2, 1 + step / 2 + 2.0**-52, -1 - step / 2])
    np.testing.assert_array_equal(round_to(x, dtype), [1, 1 + 2 * step, 1 + step, -1])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_the_ends_of_the_range_round_to_subnormals_zero_and_infinity(dtype: str) -> None:
    f = FORMATS[dtype]
    ulp = f.largest * f.unit
    x = np.array([f.smallest, f.smallest / 2, f.smallest * 0.51, f.largest, f.largest + 0.49 * ulp, f.largest + ulp])
    np.testing.assert_array_equal(round_to(x, dtype), [f.smallest, 0, f.smallest, f.largest, f.largest, np.inf])


@given(ANY, st.sampled_from(sorted(FORMATS)))
def test_rounding_twice_changes_nothing(x: float, dtype: str) -> None:
    once = round_to(np.array([x]), dtype)
    np.testing.assert_array_equal(round_to(once, dtype), once)


def test_a_store_without_error_accepts_the_nearest_value_only() -> None:
    value = np.array([1 + 2.0**-9])
    assert accepts(np.array([1.0]), value, np.zeros(1), "bfloat16")
    assert not accepts(np.array([1 + 2.0**-7]), value, np.zeros(1), "bfloat16")


def test_an_error_widens_the_interval_to_what_can_be_rounded_to() -> None:
    value, error = np.array([1 + 2.0**-8 - 2.0**-20]), np.array([2.0**-19])
    low, high = store_interval(value, error, "bfloat16")
    np.testing.assert_array_equal([low[0], high[0]], [1, 1 + 2.0**-7])


def test_the_ends_of_an_interval_are_taken_outward() -> None:
    tie, hair = np.array([1 + 2.0**-8]), np.array([2.0**-60])
    assert accepts(np.array([1.0]), tie, np.zeros(1), "bfloat16")
    assert not accepts(np.array([1 + 2.0**-7]), tie, np.zeros(1), "bfloat16")
    assert accepts(np.array([1 + 2.0**-7]), tie, hair, "bfloat16")
    assert accepts(np.array([1 + 2.0**-7]), np.array([1 + 3 * 2.0**-8]), hair, "bfloat16")


def test_a_nan_bound_accepts_nothing_and_a_nan_result_only_where_the_formula_has_it() -> None:
    nan = np.array([np.nan])
    one, zero = np.ones(1), np.zeros(1)
    assert not accepts(one, one, nan, "float32")
    assert not accepts(one, nan, zero, "float32")
    assert not accepts(nan, one, zero, "float32")
    assert not accepts(nan, one, np.full(1, np.inf), "float32")
    assert accepts(nan, nan, zero, "float32")


def test_an_infinite_result_is_accepted_only_where_the_bound_reaches_beyond_the_format() -> None:
    inf, big = np.array([np.inf]), np.array([60000.0])
    assert not accepts(inf, big, np.array([1.0]), "float16")
    assert accepts(inf, big, np.array([8000.0]), "float16")


def test_an_infinite_bound_accepts_every_number_and_is_no_evidence() -> None:
    inf, one = np.array([np.inf]), np.ones(1)
    for value in (one, inf, -inf):
        assert accepts(-inf, value, inf, "bfloat16") and accepts(one, value, inf, "bfloat16")
        assert not accepts(np.array([np.nan]), value, inf, "bfloat16")
        assert store_error(value, inf, "bfloat16") == vacuity(inf, value) == np.inf
        assert usage(value, value, inf, "bfloat16") == 0


def test_the_bound_after_the_store_holds_the_rounding_of_the_store() -> None:
    value = np.array([1 + 2.0**-9, 2.0])
    np.testing.assert_array_equal(store_error(value, np.zeros(2), "bfloat16"), [2.0**-9, 0])


def test_vacuity_and_usage_are_ratios_to_the_signal_and_to_the_bound() -> None:
    value = np.full(4, 2.0)
    assert vacuity(np.full(4, 0.1), value) == pytest.approx(0.05)
    assert vacuity(np.zeros(3), np.zeros(3)) == 0
    assert vacuity(np.ones(3), np.zeros(3)) == np.inf
    assert usage(value, value, np.zeros(4), "float32") == 0
    assert usage(value + 1e-3, value, np.full(4, 2e-3), "float32") == pytest.approx(0.5, rel=1e-3)
