"""Elementwise rules hold for float32 arithmetic, and know when an operation is exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as pytorch
from hypothesis import assume, given
from hypothesis import strategies as st

from specc.bounds import round_to, torch, triton
from specc.bounds.arithmetic import Arithmetic, NotSupported
from specc.bounds.elementary import FUNCTIONS, call
from specc.bounds.formats import Array
from specc.bounds.values import Held, Truth, Val
from tests.bounds.support import storage

GPU = Arithmetic(triton(storage("float32")))
CPU = Arithmetic(torch(storage("float32")))
SINGLE = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100)
SMALL = st.floats(width=32, min_value=-50, max_value=50)
ERRORS = st.floats(0, 1e-3)
OPERATIONS: dict[str, tuple[Callable[..., Val], Callable[..., Any]]] = {
    "add": (CPU.add, np.add),
    "sub": (CPU.sub, np.subtract),
    "mul": (CPU.mul, np.multiply),
    "div": (CPU.div, np.divide),
}


def val(x: Any, error: Any = 0.0, held: Held = Held.ACCUMULATOR) -> Val:
    x = np.atleast_1d(np.asarray(x, np.float64))
    return Val(("i",), x, np.broadcast_to(np.asarray(error, np.float64), x.shape), held)


def covers(found: Val, got: Array) -> None:
    """`got` is within the error of the value."""
    with np.errstate(invalid="ignore"):
        good = (np.abs(got - found.value) <= found.error) | (got == found.value)
    assert np.all(good), (got, found.value, found.error)


@given(SINGLE, SINGLE, st.sampled_from(sorted(OPERATIONS)))
def test_one_operation_on_stored_numbers_stays_in_its_bound(x: float, y: float, name: str) -> None:
    rule, kernel = OPERATIONS[name]
    assume(name != "div" or y != 0)
    with np.errstate(over="ignore"):
        covers(rule(val(x), val(y)), kernel(np.float32([x]), np.float32([y])).astype(np.float64))


@given(SMALL, SMALL, ERRORS, ERRORS, st.floats(-1, 1), st.floats(-1, 1), st.sampled_from(sorted(OPERATIONS)))
def test_errors_of_the_operands_are_carried(
    x: float, y: float, ex: float, ey: float, dx: float, dy: float, name: str
) -> None:
    rule, kernel = OPERATIONS[name]
    assume(name != "div" or abs(y) > 2 * ey + 1e-6)
    a = np.clip(np.float32([x + dx * ex]), x - ex, x + ex).astype(np.float32)
    b = np.clip(np.float32([y + dy * ey]), y - ey, y + ey).astype(np.float32)
    assume(abs(float(a[0]) - x) <= ex and abs(float(b[0]) - y) <= ey)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        covers(rule(val(x, ex), val(y, ey)), kernel(a, b).astype(np.float64))


@given(st.integers(-(2**11), 2**11), st.integers(-(2**11), 2**11), st.integers(-20, 20))
def test_integers_and_powers_of_two_are_exact(m: int, n: int, e: int) -> None:
    x, y = val(m * 2.0**e), val(n * 2.0**e)
    assert GPU.add(x, y).certain and GPU.sub(x, y).certain and GPU.mul(x, y).certain
    noisy = val(0.3, 1e-6)
    product = GPU.mul(noisy, val(2.0**e))
    np.testing.assert_array_equal(product.error, noisy.error * 2.0**e)


def test_an_inexact_sum_is_not_taken_for_exact_when_float64_loses_the_rest() -> None:
    assert not CPU.add(val(1.0), val(2.0**-60)).certain


@given(SMALL, ERRORS, st.floats(-1, 1), st.sampled_from(sorted(FUNCTIONS)))
def test_functions_stay_in_their_bound(x: float, e: float, d: float, fn: str) -> None:
    if fn in ("log", "sqrt"):
        x = abs(x) + 2e-3
    if fn == "log1p":
        x = abs(x)
    moved = np.float32([x + d * e])
    assume(abs(float(moved[0]) - x) <= e)
    covers(call(CPU, fn, val(x, e)), getattr(np, fn)(moved).astype(np.float64))
    covers(call(GPU, fn, val(x, e)), getattr(np, fn)(moved).astype(np.float64))


@pytest.mark.parametrize("fn", sorted(FUNCTIONS))
def test_the_functions_of_the_libraries_at_hand_are_as_accurate_as_their_documents_say(fn: str) -> None:
    rng = np.random.default_rng(0)
    size = np.exp(rng.uniform(-20, np.log(80), 40000))
    x = np.float32(size if fn in ("log", "log1p", "sqrt") else size * rng.choice([-1, 1], size.shape))
    if fn in ("sin", "cos"):
        x = np.float32(np.remainder(x, np.pi))
    covers(call(GPU, fn, val(x)), getattr(np, fn)(x).astype(np.float64))
    covers(call(CPU, fn, val(x)), getattr(pytorch, fn)(pytorch.from_numpy(x)).numpy().astype(np.float64))


def ex2_of_rounded_argument(x: Array) -> Array:
    """tl.exp on a GPU: one product with a rounded log2 e, then 2^x to 2 ulp."""
    y = np.exp2((x.astype(np.float32) * np.float32(1.4426950408889634)).astype(np.float64))
    return y * (1 + 2 * 2.0**-23)


@given(st.lists(st.floats(width=32, min_value=-80, max_value=80), min_size=1, max_size=30))
def test_the_exponential_of_a_gpu_may_lose_more_for_large_arguments(xs: list[float]) -> None:
    x = np.array(xs)
    covers(call(GPU, "exp", val(x)), np.where(x == 0, 1.0, ex2_of_rounded_argument(x)))


def test_exact_points_of_functions_have_no_error() -> None:
    for fn, x in (("exp", 0.0), ("log", 1.0), ("cos", 0.0), ("sin", 0.0), ("tanh", 0.0)):
        assert call(GPU, fn, val(x)).certain, fn


@given(st.integers(0, 262143), st.integers(0, 127))
def test_a_float64_angle_is_reduced_before_it_is_rounded(pos: int, i: int) -> None:
    angle = pos * 1e4 ** (-2 * i / 256)
    found = call(GPU, "sin", Val(("i",), np.array([angle]), np.array([2.0**-51 * angle]), Held.WIDE))
    assert np.all(found.error < 2e-6)
    turns = angle / (2 * np.pi)
    fraction = np.float32(turns - np.floor(turns + 0.5))
    covers(found, np.sin(np.array([2 * np.pi * float(fraction)])))


@pytest.mark.parametrize("x", [3.0, 1e20, 1e30, -1e30])
def test_stable_forms_survive_overflow_on_the_way(x: float) -> None:
    cube = GPU.power(val(x), 3)
    shrunk = call(GPU, "exp", GPU.neg(GPU.abs(cube)))
    assert np.all(np.isfinite(shrunk.value)) and np.all(np.isfinite(shrunk.error))
    quotient = GPU.div(val(1.0), GPU.add(val(1.0), shrunk))
    covers(quotient, np.array([1 / (1 + np.exp(-min(abs(x) ** 3, 700)))]))


def test_infinity_minus_infinity_is_a_nan_that_no_comparison_passes() -> None:
    beyond = GPU.mul(val(1e30), val(1e30))
    assert np.isinf(beyond.value[0]) and beyond.certain
    lost = GPU.sub(beyond, beyond)
    assert np.isnan(lost.value[0])


def test_a_result_near_the_end_of_the_range_may_overflow() -> None:
    largest = GPU.numerics.format.largest
    found = GPU.add(val(largest, largest * 1e-7), val(0.0))
    assert np.isinf(found.error[0])


def test_subnormal_results_may_be_flushed() -> None:
    found = GPU.mul(val(2.0**-100), val(1.5 * 2.0**-40))
    covers(found, np.array([0.0]))
    assert not np.any(CPU.mul(val(2.0**-60), val(2.0**-60)).error)


def test_an_undecided_condition_takes_in_both_branches() -> None:
    cond = Truth(("i",), np.array([True, True]), np.array([True, False]))
    found = GPU.select(cond, val([1.0, 1.0]), val([5.0, 5.0], 0.5))
    np.testing.assert_array_equal(found.value, [1, 1])
    np.testing.assert_array_equal(found.error, [0, 4.5])


@given(SMALL, ERRORS, st.sampled_from(["bfloat16", "float16"]))
def test_a_rounding_to_storage_covers_every_way_to_round(x: float, e: float, dtype: str) -> None:
    held = round_to(np.linspace(x - e, x + e, 9), dtype)
    for follow in (False, True):
        found = GPU.round_storage(val(x, e), dtype, follow)
        covers(Val((), np.repeat(found.value, 9), np.repeat(np.broadcast_to(found.error, (1,)), 9)), held)
    exact = GPU.round_storage(val(x, 0.0), dtype, True)
    assert exact.value == round_to(np.array([x]), dtype) and exact.certain


def test_a_function_without_a_stated_accuracy_is_refused() -> None:
    with pytest.raises(NotSupported, match="no rule for erf"):
        call(GPU, "erf", val(1.0))
