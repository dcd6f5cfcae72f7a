"""What is known of index expressions, against all values they take."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from specc.lower.ranges import bounds_of, cut_points, decide, static_ranges
from specc.lower.visible import covered, visible_range
from specc.ops import Bin, Call, Cmp, Expr, Logic, Neg, Num, Select, Size, Sort, Var, walk
from tests.lower.slots import value

RANGES = {"a": (0, 5), "b": (-3, 2), "c": (4, 4)}
GRID = {n: np.arange(lo, hi + 1) for n, (lo, hi) in RANGES.items()}
ENV = dict(zip(GRID, np.meshgrid(*GRID.values(), indexing="ij"), strict=True))
OPS = ["<", "<=", ">", ">=", "==", "!="]


def whole(n: int) -> Num:
    return Num(Fraction(n), Sort.INDEX)


DIVISORS = st.integers(1, 5).map(whole)
MOVING = Bin("+", Var("a"), whole(1), Sort.INDEX)
SMALL = st.integers(-4, 4)
indices = st.recursive(
    st.sampled_from([Var("a"), Var("b"), Var("c")]) | st.integers(-6, 6).map(whole),
    lambda e: st.one_of(
        st.builds(lambda op, x, y: Bin(op, x, y, Sort.INDEX), st.sampled_from("+-·"), e, e),
        st.builds(lambda op, x, n: Bin(op, x, n, Sort.INDEX), st.sampled_from(["//", "%"]), e, DIVISORS),
        st.builds(lambda fn, x, y: Call(fn, (x, y), Sort.INDEX), st.sampled_from(["max", "min"]), e, e),
        st.builds(lambda x: Neg(x, Sort.INDEX), e),
        st.builds(lambda x: Call("abs", (x,), Sort.INDEX), e),
        st.builds(lambda n, m: Bin("^", Var(n), whole(m), Sort.INDEX), st.sampled_from("abc"), st.integers(2, 3)),
        st.builds(lambda op, x: Bin(op, x, MOVING, Sort.INDEX), st.sampled_from(["//", "%"]), e),
        st.builds(lambda c, x, y: Select(c, x, y, Sort.INDEX), st.builds(Cmp, st.sampled_from(OPS), e, e), e, e),
    ),
    max_leaves=6,
)  # fmt: skip
conditions = st.recursive(
    st.builds(Cmp, st.sampled_from(OPS), indices, indices),
    lambda e: st.one_of(
        st.builds(lambda op, x, y: Logic(op, (x, y)), st.sampled_from(["and", "or"]), e, e),
        st.builds(lambda x: Logic("not", (x,)), e),
    ),
    max_leaves=4,
)
selects = st.builds(lambda c, x, y: Select(c, x, y, Sort.INDEX), conditions, indices, indices)


def everywhere(e: Expr) -> np.ndarray:
    return np.broadcast_to(value(e, ENV, {}), ENV["a"].shape)


@given(indices)
def test_bounds_hold_every_value(e: Expr) -> None:
    found = bounds_of(e, RANGES)
    values = everywhere(e)
    assert found is not None
    assert found[0] <= values.min() and values.max() <= found[1]


@pytest.mark.parametrize("e", [Var("z"), Size("T"), Num(Fraction(1, 2))])
def test_nothing_is_known_of_what_has_no_range(e: Expr) -> None:
    assert bounds_of(Bin("+", Var("a"), e, Sort.INDEX), RANGES) is None


@given(selects)
def test_deciding_changes_no_value(e: Expr) -> None:
    np.testing.assert_array_equal(everywhere(decide(e, RANGES)), everywhere(e))


@given(st.builds(Cmp, st.sampled_from(OPS), st.sampled_from([Var("a"), Var("b")]), st.integers(-8, 8).map(whole)))
def test_a_comparison_with_one_value_is_always_decided(e: Expr) -> None:
    truth = everywhere(e)
    assert isinstance(decide(e, RANGES), Logic) == bool(truth.all() or not truth.any())


shifted = st.builds(
    lambda op, k: Bin(op, Var("i"), whole(k), Sort.INDEX), st.sampled_from("+-"), st.integers(0, 5)
) | st.just(Var("i"))
cuts = st.builds(
    lambda op, e, n, turn: Cmp(op, n, e) if turn else Cmp(op, e, n),
    st.sampled_from(OPS), shifted, st.integers(-3, 14).map(whole) | st.just(Num(Fraction(5, 2))), st.booleans(),
)  # fmt: skip


@given(cuts, st.integers(1, 12))
def test_between_two_cuts_a_condition_does_not_change(e: Expr, length: int) -> None:
    truth = np.broadcast_to(value(e, {"i": np.arange(length)}, {}), length)
    points = cut_points(e, "i", length)
    assert all(0 < c < length for c in points)
    for low, high in pairwise([0, *points, length]):
        assert len(set(truth[low:high].tolist())) == 1


def test_run_time_extents_are_only_known_to_be_large() -> None:
    ranges = static_ranges({"t": Size("T"), "h": whole(4)})
    assert ranges["h"] == (0, 3)
    assert decide(Cmp(">=", Var("t"), whole(0)), ranges) == Logic("true", ())
    assert isinstance(decide(Cmp("<", Var("t"), whole(1000)), ranges), Cmp)


KEYS = st.recursive(
    st.one_of(
        st.builds(
            lambda op, k, sign, s, r, turn: _turn(op, _key(k, sign), _row(s, r), turn),
            st.sampled_from(OPS), st.integers(-3, 3), st.booleans(), st.integers(-4, 4), st.booleans(), st.booleans(),
        ),
        st.builds(lambda n: Cmp("==", Bin("%", Var("l"), whole(n), Sort.INDEX), whole(0)), st.integers(1, 3)),
    ),
    lambda e: st.one_of(
        st.builds(lambda op, x, y: Logic(op, (x, y)), st.sampled_from(["and", "and", "or"]), e, e),
        st.builds(lambda x: Logic("not", (x,)), e),
    ),
    max_leaves=4,
)  # fmt: skip


def _key(k: int, sign: bool) -> Expr:
    """±l + k, or p - l with the row value on the key's side."""
    return Bin("+", Var("l") if sign else Neg(Var("l"), Sort.INDEX), whole(k), Sort.INDEX)


def _row(s: int, plain: bool) -> Expr:
    return whole(s) if plain else Bin("+", Var("p", Sort.INDEX), whole(s), Sort.INDEX)


def _turn(op: str, a: Expr, b: Expr, turn: bool) -> Expr:
    return Cmp(op, b, a) if turn else Cmp(op, a, b)


@given(KEYS)
def test_every_visible_key_lies_in_the_range(visible: Expr) -> None:
    low, high = visible_range(visible, "l")
    for p in range(-2, 12):
        env = {"l": np.arange(0, 10), "p": np.asarray(p)}
        seen = np.broadcast_to(value(visible, env, {}), 10)
        inside = np.ones(10, bool)
        if low is not None:
            inside &= env["l"] >= value(low, env, {})
        if high is not None:
            inside &= env["l"] < value(high, env, {})
        assert not (seen & ~inside).any()


@given(
    st.sampled_from(["<", "<=", ">", ">=", "=="]), st.integers(-3, 3), st.booleans(), st.integers(-4, 4), st.booleans()
)
def test_the_range_of_one_comparison_is_tight(op: str, k: int, sign: bool, s: int, turn: bool) -> None:
    visible = _turn(op, _key(k, sign), _row(s, False), turn)
    low, high = visible_range(visible, "l")
    for p in range(-2, 12):
        env = {"l": np.arange(-30, 40), "p": np.asarray(p)}
        seen = np.broadcast_to(value(visible, env, {}), 70)
        inside = np.ones(70, bool)
        if low is not None:
            inside &= env["l"] >= value(low, env, {})
        if high is not None:
            inside &= env["l"] < value(high, env, {})
        np.testing.assert_array_equal(seen, inside)


@pytest.mark.parametrize(
    ("visible", "low", "high"),
    [
        (None, False, False),
        (Cmp("<=", Var("l"), Var("p")), False, True),
        (Cmp("!=", Var("l"), Var("p")), False, False),
        (Logic("or", (Cmp("<", Var("l"), whole(1)), Cmp(">", Var("l"), Var("p")))), False, False),
        (Logic("not", (Cmp(">", Var("l"), Var("p")),)), False, True),
        (Cmp("<", Bin("-", Var("p"), Var("l"), Sort.INDEX), whole(4)), True, False),
        (Cmp("<", Var("l"), Bin("·", whole(2), Var("l"), Sort.INDEX)), False, False),
    ],
)
def test_a_bound_is_given_where_one_can_be_told(visible: Expr | None, low: bool, high: bool) -> None:
    found = visible_range(visible, "l")
    assert [f is not None for f in found] == [low, high]
    assert all(n != Var("l") for f in found if f is not None for n in walk(f))


PLACES = st.builds(
    lambda op, a, b: Bin(op, a, b, Sort.INDEX),
    st.sampled_from("+-"), st.sampled_from([Var("t"), Var("i"), Size("T")]), SMALL.map(whole) | st.just(Var("i")),
) | st.sampled_from([Var("t"), Var("i"), whole(2)])  # fmt: skip
ENDS = st.builds(lambda n: Bin("+", Size("T"), whole(n), Sort.INDEX), SMALL) | st.just(Size("T")) | SMALL.map(whole)
GIVEN = st.recursive(
    st.builds(Cmp, st.sampled_from(OPS), PLACES, PLACES | SMALL.map(whole)),
    lambda e: st.builds(lambda op, x, y: Logic(op, (x, y)), st.sampled_from(["and", "or"]), e, e),
    max_leaves=3,
)
AXES = {"t": Size("T"), "i": whole(3)}


@given(PLACES, ENDS, st.none() | GIVEN)
@example(Bin("-", Var("t"), whole(2), Sort.INDEX), Size("T"), Cmp(">=", Var("t"), whole(2)))
@example(
    Bin("+", Var("t"), whole(1), Sort.INDEX), Size("T"), Cmp("<", Bin("+", Var("t"), whole(1), Sort.INDEX), Size("T"))
)
def test_an_index_that_is_covered_is_in_range(index: Expr, dim: Expr, given_: Expr | None) -> None:
    seen = covered(index, dim, AXES, given_)
    event(f"covered: {seen}")
    for size in range(5):
        t, i = np.meshgrid(np.arange(size), np.arange(3), indexing="ij")
        held = np.asarray(True) if given_ is None else value(given_, {"t": t, "i": i}, {"T": size})
        place, end = (np.broadcast_to(value(e, {"t": t, "i": i}, {"T": size}), t.shape) for e in (index, dim))
        assert not seen or ((place >= 0) & (place < end) | ~held).all()


def moved(op: str, by: int) -> Bin:
    return Bin(op, Var("t"), whole(by), Sort.INDEX)


@pytest.mark.parametrize(
    ("index", "dim", "given_", "seen"),
    [
        (Var("t"), Size("T"), None, True),
        (Var("t"), Size("S"), None, False),
        (moved("-", 1), Size("T"), None, False),
        (moved("-", 1), Size("T"), Cmp(">=", Var("t"), whole(1)), True),
        (moved("-", 2), Size("T"), Cmp(">=", Var("t"), whole(1)), False),
        (moved("-", 2), Size("T"), Cmp(">=", moved("-", 2), whole(0)), True),
        (moved("+", 1), Size("T"), Cmp("<", moved("+", 1), Size("T")), True),
        (moved("+", 1), Size("T"), Cmp("<=", moved("+", 1), Size("T")), False),
        (moved("+", 1), Bin("+", Size("T"), whole(1), Sort.INDEX), None, True),
        (Var("t"), whole(8), Cmp("<", Var("t"), whole(8)), True),
        (Bin("+", Var("i"), whole(2), Sort.INDEX), whole(5), None, True),
        (Bin("+", Var("i"), whole(2), Sort.INDEX), whole(4), None, False),
        (Bin("%", Var("t"), whole(4), Sort.INDEX), whole(4), None, True),
    ],
)
def test_what_covers_an_index(index: Expr, dim: Expr, given_: Expr | None, seen: bool) -> None:
    assert covered(index, dim, AXES, given_) is seen
