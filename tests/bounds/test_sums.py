"""Sums: any conforming order stays in the bound, designed terms leave no error, wrong arithmetic is seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specc.bounds import AnyOrder, Tiles, accepts, round_to, triton
from specc.bounds.arithmetic import Arithmetic
from specc.bounds.exact import granularity, significant_bits, sum_is_exact
from specc.bounds.formats import Array
from specc.bounds.numerics import AMPERE, HOPPER, Instruction, Summation
from specc.bounds.sums import contraction, row_sum
from specc.bounds.values import Val
from tests.bounds.support import cut, normal, storage

GPU = Arithmetic(triton(storage("bfloat16")))
SEEDS = st.integers(0, 2**32 - 1)
F = np.float32


def row(x: Array, how: Summation = GPU.numerics.depth.row) -> Val:
    return row_sum(GPU, Val(("i",), x), "i", how)


def product(a: Array, b: Array, *orders: Summation, ea: float = 0.0, eb: float = 0.0) -> Val:
    """Σ_k a[m, k]·b[k, n] with its bound."""
    found = orders or (GPU.numerics.depth.contraction,)
    left = Val(("m", "k"), a, np.full(a.shape, ea)) if ea else Val(("m", "k"), a)
    right = Val(("k", "n"), b, np.full(b.shape, eb)) if eb else Val(("k", "n"), b)
    return contraction(GPU, left, right, "k", found)


def one_by_one(terms: Array) -> Array:
    """float32 sum along the last axis, one term after another."""
    out = np.zeros(terms.shape[:-1], F)
    for i in range(terms.shape[-1]):
        out = out + terms[..., i].astype(F)
    return out


def truncated(x: Array, bits: int, exponent: Array) -> Array:
    """`x` cut to multiples of 2^(exponent - bits)."""
    unit = np.ldexp(1.0, (exponent - bits).astype(int))
    return np.trunc(x / unit) * unit


def matrix_instruction(a: Array, b: Array, how: Instruction) -> Array:
    """Σ_k a·b as a tensor core does it: aligned to the largest addend, cut, added, cut to float32."""
    acc = np.zeros((a.shape[0], b.shape[1]))
    for start in range(0, a.shape[1], how.products):
        part = slice(start, start + how.products)
        terms = a[:, None, part] * b.T[None, :, part]
        addends = np.concatenate([acc[..., None], terms], axis=-1)
        _, exponent = np.frexp(np.abs(addends).max(-1))
        total = truncated(addends, 23 + how.extra_bits, exponent[..., None] - 1).sum(-1)
        _, own = np.frexp(total)
        acc = np.where(total == 0, 0.0, truncated(total, 23, own - 1))
    return acc


@given(SEEDS, st.integers(1, 400))
def test_a_row_sum_holds_for_a_tree_and_for_pairs(seed: int, n: int) -> None:
    x = normal(np.random.default_rng(seed), n) ** 3
    x = round_to(x, "float32")
    found = row(x)
    pairwise = float(np.sum(np.ascontiguousarray(x.astype(F))))
    assert abs(pairwise - found.value) <= found.error
    lanes = np.zeros(32, F)
    for i in range(0, n, 32):
        lanes[: len(x[i : i + 32])] += x[i : i + 32].astype(F)
    while len(lanes) > 1:
        lanes = lanes[0::2] + lanes[1::2]
    assert abs(float(lanes[0]) - found.value) <= found.error


@given(SEEDS, st.integers(1, 300))
def test_a_row_sum_in_any_order_holds_for_one_after_another(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    x = normal(rng, n)
    found = row(x, AnyOrder())
    assert abs(float(one_by_one(rng.permutation(x))) - found.value) <= found.error


@given(SEEDS, st.integers(1, 700), st.sampled_from([16, 32, 64, 128, 256]))
def test_a_contraction_holds_for_tiles_that_divide_the_stated_one(seed: int, k: int, tile: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = normal(rng, 3, k), normal(rng, k, 2)
    found = product(a, b)
    acc = np.zeros((3, 2), F)
    for start in range(0, k, tile):
        order = start + rng.permutation(min(tile, k - start))
        acc = acc + one_by_one((a[:, None, order] * b.T[None, :, order]).astype(F))
    assert np.all(np.abs(acc - found.value) <= found.error)
    chained = np.zeros((3, 2), F)
    for i in range(k):
        chained = (chained + (a[:, i, None] * b[None, i])).astype(F)
    assert np.all(np.abs(chained - found.value) <= found.error)


@given(SEEDS, st.integers(1, 300), st.sampled_from([AMPERE, HOPPER]), st.floats(0, 12))
def test_a_contraction_holds_for_matrix_instructions_that_cut(
    seed: int, k: int, how: Instruction, spread: float
) -> None:
    rng = np.random.default_rng(seed)
    sizes = np.exp2(rng.uniform(-spread, spread, k))
    a = round_to(normal(rng, 3, k) * sizes, "bfloat16")
    b = round_to(np.abs(normal(rng, k, 2)), "bfloat16")
    found = product(a, b)
    assert np.all(np.abs(matrix_instruction(a, b, how) - found.value) <= found.error)


@given(SEEDS, st.floats(0, 1e-2), st.floats(0, 1e-2))
def test_errors_of_the_operands_reach_the_sum(seed: int, ea: float, eb: float) -> None:
    rng = np.random.default_rng(seed)
    a, b = normal(rng, 3, 40), normal(rng, 40, 2)
    found = product(a, b, ea=ea, eb=eb)
    moved = (a + ea * rng.choice([-1, 1], a.shape)) @ (b + eb * rng.choice([-1, 1], b.shape))
    assert np.all(np.abs(moved - found.value) <= found.error)


@given(SEEDS, st.floats(1e-9, 1e-2))
def test_errors_of_the_terms_reach_a_row_sum(seed: int, e: float) -> None:
    x = normal(np.random.default_rng(seed), 30)
    found = row_sum(GPU, Val(("i",), x, np.full(30, e)), "i", GPU.numerics.depth.row)
    assert 30 * e <= found.error <= 31 * e + 1e-4


def test_a_large_running_sum_makes_later_terms_lose_all_bits() -> None:
    a = np.array([[2.0**20] + [0.0] * 15 + [0.06] * 3000])
    a = round_to(a, "float32")
    found = product(a, np.ones((3016, 1)), Tiles(16))
    acc = one_by_one(a)
    assert acc[0] == 2.0**20
    assert 170 < abs(float(acc[0]) - found.value[0, 0]) <= found.error[0, 0] < 2000


def test_a_split_may_have_a_large_running_sum_where_the_whole_has_none() -> None:
    large, small = np.array([2.0**20] + [0.0] * 15), np.full(3000, float(np.float32(0.06)))
    a = np.concatenate([-large, large, small])[None]
    found = product(a, np.ones((a.shape[1], 1)), Tiles(16, restarts=True))
    splits = one_by_one(-large[None])[0] + one_by_one(np.concatenate([large, small])[None])[0]
    assert splits == 0
    assert 170 < found.value[0, 0] <= found.error[0, 0]


def test_a_product_that_does_not_fit_is_rounded_even_when_nothing_is_added() -> None:
    x = 1 + 2.0**-23
    found = product(np.array([[x]]), np.array([[x]]), AnyOrder())
    assert abs(float(F(x) * F(x)) - found.value[0, 0]) <= found.error[0, 0] > 0


def test_a_matrix_times_a_vector_may_be_summed_either_way() -> None:
    rng = np.random.default_rng(2)
    a, b = normal(rng, 4, 600), normal(rng, 600, 1)
    both = product(a, b, Tiles(16), AnyOrder())
    for how in (Tiles(16), AnyOrder()):
        assert np.all(product(a, b, how).error <= both.error)


@given(SEEDS, st.integers(1, 500), st.integers(-30, 30))
def test_small_integers_leave_no_error(seed: int, k: int, e: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-16, 17, (3, k)) * 2.0**e, rng.integers(-16, 17, (k, 2)).astype(float)
    found = product(a, b)
    np.testing.assert_array_equal(found.value, a @ b)
    assert found.certain
    assert row(a[0]).certain


@given(SEEDS)
def test_exactness_is_claimed_only_where_every_order_gives_the_same_sum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = int(rng.integers(1, 13))
    a = np.ldexp(rng.integers(-(2**bits), 2**bits, 50).astype(float), rng.integers(-6, 7))
    found = row(round_to(a, "float32"))
    if found.error == 0:
        assert {float(one_by_one(rng.permutation(a))) for _ in range(20)} == {float(found.value)}


def test_one_term_too_many_ends_exactness() -> None:
    x = np.ones(2**12) * 2.0**12
    assert row(x, AnyOrder()).certain
    assert not row(np.append(x, 1.0), AnyOrder()).certain


def test_a_one_hot_operand_picks_a_value_exactly() -> None:
    rng = np.random.default_rng(0)
    b = normal(rng, 300, 4)
    a = np.zeros((2, 300))
    a[0, 17] = a[1, 299] = 1.0
    found = product(a, b)
    np.testing.assert_array_equal(found.value, b[[17, 299]])
    assert found.certain


def test_unused_slots_that_hold_nan_do_not_end_exactness_elsewhere() -> None:
    a, b = np.ones((1, 8)), np.ones((8, 2))
    b[:, 1] = np.nan
    found = product(a, b)
    assert found.error[0, 0] == 0 and np.isnan(found.value[0, 1])


def test_granularity_and_bits_of_designed_numbers() -> None:
    assert significant_bits(np.array([3.0, 2.0, -6.0])) == 2
    assert significant_bits(np.array([1.0, 0.0, 4.0])) == 1
    assert significant_bits(np.array([1 + 2.0**-7])) == 8
    np.testing.assert_array_equal(granularity(np.array([[3.0, 0.5], [0, 0], [12, 8]]), 1)[[0, 2], 0], [-2, 2])
    assert granularity(np.array([[0.0, 0.0]]), 1)[0, 0] > 1000
    assert sum_is_exact(np.array([2.0**24]), np.array([0.0]), 24)[0]
    assert not sum_is_exact(np.array([2.0**24 + 1]), np.array([0.0]), 24)[0]


@given(SEEDS)
def test_granularity_divides_every_element(seed: int) -> None:
    x = normal(np.random.default_rng(seed), 4, 20, dtype="bfloat16")
    units = np.exp2(granularity(x, 1))
    np.testing.assert_array_equal(np.rint(x / units), x / units)


@pytest.mark.parametrize("k", [64, 512, 5376])
def test_tf32_products_are_seen_on_long_mantissas(k: int) -> None:
    rng = np.random.default_rng(k)
    a, b = np.zeros((4, k)), np.zeros((k, 8))
    for r in range(4):
        a[r, rng.choice(k, 3, replace=False)] = 1.0
    b[:] = (2**11 + 2 * rng.integers(0, 2**10, b.shape) + 1) * 2.0**-11
    found = product(a, b)
    assert found.certain
    assert np.all(accepts(a @ b, found.value, found.error, "float32"))
    assert not np.all(accepts(cut(a, 11) @ cut(b, 11), found.value, found.error, "float32"))


def test_a_bfloat16_accumulator_is_seen() -> None:
    a, b = np.ones((1, 5376)), np.ones((5376, 1))
    found = product(a, b)
    acc = 0.0
    for _ in range(5376):
        acc = float(round_to(np.array([acc + 1.0]), "bfloat16")[0])
    assert acc == 256
    assert not accepts(np.array([[acc]]), found.value, found.error, "bfloat16")


@given(SEEDS, st.integers(2, 400))
def test_a_dropped_term_is_seen_on_small_integers(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.integers(1, 4, (2, k)).astype(float) * rng.choice([-1, 1], (2, k))
    b = rng.choice([-1.0, 1.0], (k, 2))
    found = product(a, b)
    lost = a.copy()
    lost[:, rng.integers(k)] = 0
    assert not np.any(accepts(round_to(lost @ b, "float32"), found.value, found.error, "float32"))


def test_the_running_sum_makes_the_bound_of_a_long_contraction_tight() -> None:
    rng = np.random.default_rng(3)
    a, b = normal(rng, 8, 21504, dtype="bfloat16"), normal(rng, 21504, 8, dtype="bfloat16")
    tiled, free = product(a, b), product(a, b, AnyOrder())
    assert np.median(tiled.error) < np.median(free.error) / 20
    assert np.median(tiled.error) < 0.005 * np.sqrt(21504)


@given(SEEDS, st.integers(2, 6))
def test_sums_that_start_again_hold_for_splits_in_any_number(seed: int, splits: int) -> None:
    rng = np.random.default_rng(seed)
    a = np.concatenate([normal(rng, 300, scale=100), normal(rng, 300)])[None]
    a[0, 299] -= a[0, :300].sum()
    a = round_to(a, "float32")
    found = product(a, np.ones((600, 1)), Tiles(64, restarts=True))
    parts = [one_by_one(p)[0] for p in np.array_split(a, splits, axis=1)]
    assert abs(float(one_by_one(np.array(parts)[None])[0]) - found.value[0, 0]) <= found.error[0, 0]


def test_tiles_of_a_row_hold_too() -> None:
    x = normal(np.random.default_rng(1), 3000)
    found = row(x, Tiles(64))
    acc = F(0)
    for start in range(0, 3000, 64):
        acc = acc + one_by_one(x[start : start + 64])
    assert abs(float(acc) - found.value) <= found.error < 2e-2


def test_float32_operands_never_go_through_matrix_instructions() -> None:
    wide, narrow = (triton(storage(d)).depth.contraction for d in ("float32", "float16"))
    assert wide == Tiles(512, 1.0)
    assert narrow == Tiles(512, AMPERE.per_term)


def test_depth_covers_the_trees_that_are_in_use() -> None:
    how = AnyOrder(lanes=32)
    assert [how.depth(n) for n in (0, 1, 2, 8)] == [0, 0, 1, 7]
    for n in (128, 5376, 262144):
        assert how.depth(n) >= max(n / 32, 18)
        assert how.depth(n) < n
    assert AnyOrder().depth(100) == 99
