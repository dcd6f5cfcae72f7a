"""What the evaluator promises for any formula: laziness, ranges, blocks, chosen places, and what it reads."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specc.oracle import evaluate
from tests import twins
from tests.oracle.formulas import HEADS, SEEDS, Draw, close, formula_of

ATTENTION = {"D": 4, "heads": 4, "kv_heads": 2, "scale": 1}


def value(text: str, **tensors: Any) -> Any:
    """The result `y` of the one op of a text, which has no constants."""
    return evaluate(formula_of(text), {n: np.asarray(t) for n, t in tensors.items()})["y"]


def test_a_guarded_read_is_not_made_where_it_is_not_chosen() -> None:
    text = "op f(x[T]) -> y[T]\n  y[t] = if t >= 2 then x[t - 2] else 0"
    np.testing.assert_array_equal(value(text, x=[1.0, 2, 3, 4]), [0, 0, 1, 2])


def test_a_guard_over_two_indices_hides_reads_out_of_range() -> None:
    text = "op f(x[T]) -> y[T]\n  y[t] = Σ_{j < 3} (if t - j >= 0 then x[t - j] else 0)"
    np.testing.assert_array_equal(value(text, x=[1.0, 2, 4, 8]), [1, 3, 7, 14])


def test_a_condition_is_decided_from_left_to_right() -> None:
    text = "op f(x[T]) -> y[T]\n  y[t] = if t >= 1 and x[t - 1] > 0 then 1 else 0"
    np.testing.assert_array_equal(value(text, x=[3.0, -1, 2]), [0, 1, 0])
    text = "op f(x[T]) -> y[T]\n  y[t] = if t < 1 or x[t - 1] > 0 then 1 else 0"
    np.testing.assert_array_equal(value(text, x=[3.0, -1, 2]), [1, 1, 0])


def test_the_predicate_of_a_sum_guards_its_reads() -> None:
    text = "op f(x[T]) -> y[T]\n  y[t] = Σ_{j < 9 | t - 2 < j <= t} x[j]"
    np.testing.assert_array_equal(value(text, x=[1.0, 2, 4, 8]), [1, 3, 6, 12])


@pytest.mark.parametrize("index", ["t + 1", "t - 1"])
def test_an_unguarded_read_out_of_range_names_tensor_and_place(index: str) -> None:
    text = f"op f(x[T]) -> y[T]\n  y[t] = x[{index}]"
    with pytest.raises(IndexError, match=r"`x` is read at (4|-1) along axis 0, which has length 4"):
        value(text, x=np.zeros(4))


def test_division_and_remainder_of_indices_are_floor() -> None:
    text = "op f(x[T]) -> y[T]\n  y[t] = 10 · ((t - 3) // 2) + (t - 3) % 2 + 0 · x[t]"
    np.testing.assert_array_equal(value(text, x=np.zeros(6)), [10 * ((t - 3) // 2) + (t - 3) % 2 for t in range(6)])


def test_an_index_divided_by_zero_is_an_error_only_where_it_is_chosen() -> None:
    guarded = "op f(x[T]) -> y[T]\n  y[t] = if t > 0 then x[4 // t - 1] else 7"
    np.testing.assert_array_equal(value(guarded, x=[1.0, 2, 3, 4]), [7, 4, 2, 1])
    with pytest.raises(ZeroDivisionError, match="//"):
        value("op f(x[T]) -> y[T]\n  y[t] = x[1 // t]", x=[1.0, 2.0])
    with pytest.raises(ValueError, match="T // S has no value: S is 0"):
        value("op f(x[T], z[S]) -> y[T // S]\n  y[t] = x[t] + z[0]", x=[1.0, 2.0], z=[])


def test_ranges_may_depend_on_an_index_or_on_data() -> None:
    text = "op f(x[T]) -> y[T]\n  y[t] = Σ_{j < t} x[j]"
    np.testing.assert_array_equal(value(text, x=[1.0, 2, 4]), [0, 1, 3])
    text = "op f(x[L], n[T]: index) -> y[T]\n  y[t] = Σ_{j < n[t]} x[j]"
    np.testing.assert_array_equal(value(text, x=[1.0, 2, 4], n=[3, 0, 1]), [7, 0, 1])


def test_empty_sum_product_and_maximum() -> None:
    x = np.zeros(0)
    for big, right in (("Σ", 0.0), ("Π", 1.0), ("Max", -np.inf)):
        assert value(f"op f(x[L], z[T]) -> y[T]\n  y[t] = z[t] + {big}_j x[j]", x=x, z=[0.0])[0] == right


def test_maximum_and_product_over_a_predicate() -> None:
    x = np.array([[3.0, -1, 2], [5, 7, -2]])
    text = "op f(x[T, L]) -> y[T]\n  y[t] = Max_{j < 3 | j > t} x[t, j]"
    np.testing.assert_array_equal(value(text, x=x), [2, -2])
    text = "op f(a[T]) -> y[T, T]\n  y[r, s] = Π_{j < 3 | s < j <= r} a[j]"
    a = np.array([0.5, 0.0, 2.0])
    np.testing.assert_array_equal(value(text, a=a), [[1, 1, 1], [0, 1, 1], [0, 2, 1]])


def test_an_inner_index_may_have_the_name_of_an_outer_one() -> None:
    text = "op f(x[L]) -> y[L]\n  let s[i] = Σ_j x[j] · x[i]\n  y[j] = s[j] + Σ_j s[j]"
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(value(text, x=x), x.sum() * x + x.sum() ** 2)


def test_a_function_that_sums_over_the_index_name_of_its_caller() -> None:
    text = "def f(x) = Σ_{j < 3} j · x\nop g(x[L]) -> y[L]\n  y[j] = f(x[j]) + Σ_j f(x[j])"
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(value(text, x=x), 3 * x + 3 * x.sum())


def test_a_diagonal_is_read_element_by_element() -> None:
    x = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(value("op f(x[T, T]) -> y[T]\n  y[t] = x[t, t]", x=x), np.diag(x))


def test_sum_of_three_factors() -> None:
    a, b, c = Draw(1)(4, 3), Draw(2)(5, 3), Draw(3)(6, 3)
    text = "op f(a[I, K], b[J, K], c[L, K]) -> y[I, J, L]\n  y[i, j, l] = Σ_k a[i, k] · b[j, k] · c[l, k]"
    np.testing.assert_allclose(value(text, a=a, b=b, c=c), np.einsum("ik,jk,lk->ijl", a, b, c), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_an_operand_that_a_predicate_hides_does_not_reach_the_sum(poison: float) -> None:
    """Value 2 is hidden from the first row only, so it may poison the second row only."""
    text = "op f(p[T, L], v[L]) -> y[T]\n  y[t] = Σ_{l < 3 | l <= t + 1} p[t, l] · v[l]"
    out = value(text, p=np.ones((2, 3)), v=[1.0, 2.0, poison])
    assert out[0] == 3
    assert not np.isfinite(out[1])


@given(at=st.integers(0, 7), what=st.sampled_from(["q", "k", "v"]))
def test_nan_reaches_exactly_the_results_that_depend_on_it(at: int, what: str) -> None:
    draw, n = Draw(3), 8
    tensors = {"q": draw(n, 4, 4), "k": draw(n, 2, 4), "v": draw(n, 2, 4), "pos": np.arange(n)}
    tensors[what][at, 0] = np.nan
    bad = np.isnan(evaluate(close("slidingGQA", ATTENTION | {"window": 3}), tensors)["o"]).any(axis=-1)
    sees = np.arange(n) == at if what == "q" else (np.arange(n) >= at) & (np.arange(n) < at + 3)
    heads = np.array([True, what != "q", False, False])
    np.testing.assert_array_equal(bad, sees[:, None] & heads[None, :])


def test_recurrence_reads_before_time_0_give_the_initial_state() -> None:
    text = "op f(x[T]) -> y[T]\n  rec R[t < T, a < 2] from 5 + a = R[t-1, a] + x[t]"
    text += "\n  y[t] = R[t, 1] - R[t-1, 0]"
    np.testing.assert_array_equal(value(text, x=[1.0, 2, 4]), [2, 3, 5])


def test_a_recurrence_may_exchange_its_places() -> None:
    """Each step reads another place of the state, so none can be left out when few are asked for."""
    text = "op f(x[T]) -> y[T, 3]\n  rec R[t < T, a < 3] from a = R[t-1, (a + 1) % 3] + x[t]"
    text += "\n  y[t, a] = R[t, a]"
    formula, x = formula_of(text), np.array([0.0, 10.0, 0.0])
    whole = evaluate(formula, {"x": x})["y"]
    np.testing.assert_array_equal(whole, [[1, 2, 0], [12, 10, 11], [10, 11, 12]])
    some = evaluate(formula, {"x": x}, at={"y": {"a": [2], "t": [1]}})["y"]
    np.testing.assert_array_equal(some, [[11]])


@given(heads=HEADS, seed=SEEDS, data=st.data())
def test_chosen_places_are_those_of_the_whole(heads: tuple[int, int], seed: int, data: st.DataObject) -> None:
    draw, (hq, hk), t, length = Draw(seed), heads, 4, 9
    tensors = {
        "q": draw(t, hq, 3),
        "k": draw(length, hk, 3),
        "v": draw(length, hk, 3),
        "pos": np.arange(5, 9),
    }
    formula = close("slidingGQA", {"D": 3, "heads": hq, "kv_heads": hk, "scale": 1, "window": 3})
    subset = {v: data.draw(st.lists(st.integers(0, n - 1), max_size=5)) for v, n in (("t", t), ("h", hq), ("d", 3))}
    whole = evaluate(formula, tensors)["o"]
    some = evaluate(formula, tensors, at={"o": subset})["o"]
    index = [np.asarray(subset[v], int) for v in "thd"]
    np.testing.assert_allclose(some, whole[np.ix_(*index)], rtol=1e-13, atol=1e-13)


def test_a_softmax_can_be_read_at_chosen_places() -> None:
    s, n = Draw(4)(2, 7), np.array([5, 0])
    formula = close("softmax", lead=1)
    some = evaluate(formula, {"s": s, "n": n}, at={"p": {"l": [6, 1, 1], "r0": slice(None, None, -1)}})["p"]
    np.testing.assert_allclose(some, twins.softmax(s, n)[::-1][:, [6, 1, 1]], rtol=1e-14)


OPERANDS: dict[str, Any] = {
    "linear": ({"K": 33, "N": 17}, 2, lambda d: {"x": d(3, 5, 33), "w": d(17, 33)}),
    "gateUp": ({"K": 12, "I": 9}, 1, lambda d: {"x": d(5, 12), "wg": d(9, 12), "wu": d(9, 12)}),
    "rmsnorm": ({"H": 40, "eps": 1e-6}, 2, lambda d: {"x": d(7, 3, 40), "w": d(40)}),
    "causalGQA": (ATTENTION, 0, lambda d: {"q": d(6, 4, 4), "k": d(9, 2, 4), "v": d(9, 2, 4),
                                           "pos": np.arange(3, 9)}),
    "decodeGQA": (ATTENTION, 0, lambda d: {"q": d(3, 4, 4), "k": d(3, 9, 2, 4), "v": d(3, 9, 2, 4),
                                           "seq_lens": np.array([9, 0, 4])}),
    "gatedDeltaRule": ({}, 0, lambda d: {"q": d(4, 2, 3), "k": d(4, 2, 3), "v": d(4, 4, 5),
                                         "alpha": d.unit(4, 4), "beta": d.unit(4, 4)}),
}  # fmt: skip


@pytest.mark.parametrize("limit", [8 * 40, 8 * 200, 8 * 700])
@pytest.mark.parametrize("op", OPERANDS)
def test_blocks_do_not_change_values(op: str, limit: int) -> None:
    constants, lead, operands = OPERANDS[op]
    formula, tensors = close(op, constants, lead), operands(Draw(5))
    whole, parts = evaluate(formula, tensors), evaluate(formula, tensors, limit_bytes=limit)
    for name in whole:
        np.testing.assert_allclose(parts[name], whole[name], rtol=1e-13, atol=1e-13)


def test_one_element_that_passes_the_limit_is_refused() -> None:
    with pytest.raises(MemoryError, match=r"one element of `y` needs 8000 bytes at once, the limit is 4000"):
        evaluate(
            close("linear", {"K": 1000, "N": 2}, 1),
            {"x": np.ones((1, 1000)), "w": np.ones((2, 1000))},
            limit_bytes=4000,
        )


def test_only_rows_that_are_asked_for_are_touched() -> None:
    """A table of 262,144 rows and 2 GiB that has one real row."""
    table = np.broadcast_to(Draw(6)(1, 2048).astype(np.float32), (262144, 2048))
    x = Draw(7)(4, 2048)
    formula = close("linear", {"K": 2048, "N": 262144}, 1)
    tracemalloc.start()
    found = evaluate(formula, {"x": x, "w": table}, at={"y": {"n": [0, 99999, 262143]}})["y"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(found, twins.linear(x, table[:3].astype(float)), rtol=1e-12, atol=1e-12)
    assert peak < 2**20


def test_intermediates_stay_below_the_limit() -> None:
    formula, x, w = close("linear", {"K": 64, "N": 20000}, 1), Draw(8)(32, 64), Draw(9)(20000, 64)
    tracemalloc.start()
    result = evaluate(formula, {"x": x, "w": w}, limit_bytes=1 << 20)["y"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < result.nbytes + 4 * (1 << 20)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: np.asfortranarray(x), lambda x: np.repeat(x, 2, axis=1)[:, ::2], lambda x: x[::-1][::-1],
        lambda x: np.concatenate([x, x], axis=1)[:, : x.shape[1]], lambda x: x.astype(np.float32),
    ],
)  # fmt: skip
def test_strides_do_not_matter(view: Any) -> None:
    x, w = Draw(10)(6, 16).astype(np.float32).astype(np.float64), Draw(11)(16)
    formula = close("rmsnorm", {"H": 16, "eps": 1e-6}, 1)
    np.testing.assert_allclose(evaluate(formula, {"x": view(x), "w": w})["y"], twins.rmsnorm(x, w, 1e-6), rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint16, np.int64])
def test_operands_of_any_number_type_are_widened(dtype: Any) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype)
    found = evaluate(close("l2norm", {"D": 4, "eps": 1}, 1), {"x": x})["y"]
    np.testing.assert_allclose(found, twins.l2norm(x.astype(np.float64), 1), rtol=1e-14)


def test_operands_stay_unchanged() -> None:
    constants, lead, operands = OPERANDS["causalGQA"]
    tensors = operands(Draw(12))
    before = {n: t.copy() for n, t in tensors.items()}
    for t in tensors.values():
        t.setflags(write=False)
    evaluate(close("causalGQA", constants, lead), tensors)
    for name, t in tensors.items():
        np.testing.assert_array_equal(t, before[name])


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"x": np.zeros((2, 3))}, r"linear needs operand `w`\[4, 3\]"),
        ({"x": np.zeros((2, 3)), "w": np.zeros((4, 3)), "b": np.zeros(4)}, "no operand `b`; it has w, x"),
        ({"x": np.zeros(3), "w": np.zeros((4, 3))}, r"`x` has shape \[3\], expected \[R0, 3\]"),
        ({"x": np.zeros((2, 5)), "w": np.zeros((4, 3))}, r"axis 1 of `x` has length 5, expected 3"),
        ({"x": np.zeros((2, 3), np.longdouble), "w": np.zeros((4, 3))}, "`x` holds float128, expected real"),
        ({"x": np.zeros((2, 3), complex), "w": np.zeros((4, 3))}, "`x` holds complex128, expected real"),
    ],
)  # fmt: skip
def test_operands_that_do_not_fit_are_refused(tensors: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(close("linear", {"K": 3, "N": 4}, 1), tensors)


def test_sizes_that_contradict_each_other_are_refused() -> None:
    tensors = {
        "q": np.zeros((2, 4, 4)),
        "k": np.zeros((9, 2, 4)),
        "v": np.zeros((8, 2, 4)),
        "pos": np.zeros(2, int),
    }
    with pytest.raises(ValueError, match="L is 8 in `v` but 9 in `k`"):
        evaluate(close("causalGQA", ATTENTION), tensors)
    tensors["v"] = np.zeros((9, 2, 4))
    with pytest.raises(ValueError, match="T is 2 in `q` but 3 in the given sizes"):
        evaluate(close("causalGQA", ATTENTION), tensors, sizes={"T": 3})
    tensors["pos"] = np.zeros(2)
    with pytest.raises(ValueError, match="`pos` holds float64, expected integers"):
        evaluate(close("causalGQA", ATTENTION), tensors)


def test_a_size_that_no_operand_has_is_given_or_missed() -> None:
    formula = formula_of("op f(x[T]; M: nat) -> y[M]\n  y[m] = m · x[0]")
    np.testing.assert_array_equal(evaluate(formula, {"x": np.array([2.0])}, sizes={"M": 3})["y"], [0, 2, 4])
    with pytest.raises(ValueError, match="size M has no value"):
        evaluate(formula, {"x": np.array([2.0])})


@pytest.mark.parametrize(
    ("at", "error", "message"),
    [
        ({"z": {}}, ValueError, "linear has no result `z`"),
        ({"y": {"m": [0]}}, ValueError, "`y` has no index m; it has r0, n"),
        ({"y": {"n": [4]}}, IndexError, "position 4 of n in `y` is outside 0 to 3"),
        ({"y": {"n": [0.5]}}, ValueError, "positions of n in `y` are a list of integers or a slice"),
    ],
)
def test_places_that_do_not_exist_are_refused(at: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        evaluate(close("linear", {"K": 3, "N": 4}, 1), {"x": np.zeros((2, 3)), "w": np.zeros((4, 3))}, at=at)


@pytest.mark.parametrize("op", ["linear", "rmsnorm", "rope", "causalGQA", "gatedDeltaRule", "causalConvSilu"])
def test_no_tokens_give_an_empty_result(op: str) -> None:
    d = Draw(13)
    cases: dict[str, Any] = {
        "linear": ({"K": 3, "N": 4}, 1, {"x": d(0, 3), "w": d(4, 3)}, (0, 4)),
        "rmsnorm": ({"H": 3, "eps": 1}, 1, {"x": d(0, 3), "w": d(3)}, (0, 3)),
        "rope": ({"D": 4, "rot": 4, "denom": 4, "active": 2, "theta": 100}, 0,
                 {"x": d(0, 2, 4), "pos": np.zeros(0, int)}, (0, 2, 4)),
        "causalGQA": (ATTENTION, 0, {"q": d(0, 4, 4), "k": d(0, 2, 4), "v": d(0, 2, 4),
                                     "pos": np.zeros(0, int)}, (0, 4, 4)),
        "gatedDeltaRule": ({}, 0, {"q": d(0, 1, 2), "k": d(0, 1, 2), "v": d(0, 1, 3), "alpha": d(0, 1),
                                   "beta": d(0, 1)}, (0, 1, 3)),
        "causalConvSilu": ({}, 0, {"x": d(0, 3), "w": d(3, 4)}, (0, 3)),
    }  # fmt: skip
    constants, lead, tensors, shape = cases[op]
    result = [*evaluate(close(op, constants, lead), tensors).values()][-1]
    assert result.shape == shape


def _quickest(f: Callable[[], Any]) -> float:
    """Processor time of the better of two runs."""
    times = []
    for _ in range(2):
        start = time.process_time()
        f()
        times.append(time.process_time() - start)
    return min(times)


def test_large_chosen_boxes_cost_about_what_their_matrix_products_cost() -> None:
    """Gemma's widths: 64 x 128 outputs of a projection; 16 queries, 8 heads, 4096 keys of width 256."""
    rng = np.random.default_rng(14)
    x, w = rng.random((64, 21504), np.float32), rng.random((256, 21504), np.float32)
    q, k = rng.random((16, 8, 256), np.float32), rng.random((4096, 4, 256), np.float32)
    linear = close("linear", {"K": 21504, "N": 256}, 1)
    attention = close("causalGQA", {"D": 256, "heads": 8, "kv_heads": 4, "scale": 0.1})
    keys: dict[str, Any] = {"q": q, "k": k, "v": k, "pos": np.arange(4080, 4096)}

    def by_hand() -> None:
        x.astype(np.float64) @ w[::2].astype(np.float64).T
        for h in range(8):
            cached = k[:, h // 2].astype(np.float64)
            np.exp(q[:, h].astype(np.float64) @ cached.T) @ cached

    found = _quickest(lambda: (evaluate(linear, {"x": x, "w": w}, at={"y": {"n": slice(0, 256, 2)}}),
                               evaluate(attention, keys)))  # fmt: skip
    assert found < 5 * _quickest(by_hand)
