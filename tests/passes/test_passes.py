"""Every pass keeps what a formula means."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specc.instantiate import TRUE
from specc.ops import (
    Apply,
    Bin,
    Call,
    Cmp,
    Expr,
    Load,
    Named,
    Neg,
    Num,
    Pi,
    Reduce,
    Rounded,
    ScalarDef,
    Select,
    Size,
    Softmax,
    Sort,
    Var,
    free_vars,
    walk,
)
from specc.oracle import evaluate
from specc.passes import PASSES, run_passes
from specc.passes.constants import fold_constants_in
from specc.passes.expand import expand
from specc.passes.hoist import hoist
from specc.passes.powers import powers
from specc.passes.rename import rename
from specc.passes.rewrite import bottom_up
from specc.passes.simplify import identities
from specc.passes.unroll import unroll, unroll_all
from specc.wellformed import IllFormed, Level, check
from tests.expressions import DATA, N, W, X, formula, tame, value, whole
from tests.lower.cases import Case, assert_same, bare, formula_of, operands
from tests.lower.shipped import SHIPPED
from tests.lower.user_ops import USER

SIZES = {"T": 3, "L": 7, "B": 2, "S": 5, "R0": 2, "R1": 3}
A, B = Load("x", (Var("t"), Var("j"))), Load("w", (Var("j"),))


P = Var("p", Sort.REAL)
RELU = ScalarDef("relu", (P,), Call("max", (P, Num(Fraction(0)))), None, Sort.REAL)


def number(text: str) -> Num:
    return Num(Fraction(text))


def times(*factors: Expr) -> Expr:
    out = factors[0]
    for f in factors[1:]:
        out = Bin("·", out, f, Sort.REAL)
    return out


def total(body: Expr, where: Expr | None = None, extent: Expr | None = None) -> Reduce:
    return Reduce("Σ", "j", extent or whole(4), where, body)


def moved(op: str, e: Expr, by: int) -> Bin:
    return Bin(op, e, whole(by), Sort.INDEX)


def only(f: object) -> Expr:
    return f.equations[0].expr  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("case", [*SHIPPED, *USER], ids=lambda c: c.name)
def test_each_pass_keeps_the_value_of_ops(case: Case) -> None:
    f = case.formula()
    tensors = operands(f, SIZES, 0, case)
    right = evaluate(f, tensors, SIZES)
    for name, level, rewrite in PASSES:
        check(f, level)
        f = rewrite(f, (("softmax", "", "cache"), (f.op, "n", "activation")))
        try:
            assert_same(evaluate(bare(f), tensors, SIZES), right)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


@given(tame)
def test_each_pass_keeps_the_value_of_expressions(e: Expr) -> None:
    f, right = formula(e), value(e)
    for name, _, rewrite in PASSES:
        f = rewrite(f, ())
        found = evaluate(f, DATA, {"H": 4})["y"]
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-9 * np.abs(right).max(), err_msg=name)


@given(tame)
def test_all_short_sums_can_be_written_out(e: Expr) -> None:
    f = unroll_all(bound(e))
    assert not [n for n in walk(only(f)) if isinstance(n, Reduce)]
    np.testing.assert_allclose(evaluate(f, DATA, {"H": 4})["y"], value(e), rtol=1e-9, atol=1e-9)


def bound(e: Expr) -> object:
    """The formula with H put in."""
    return formula(bottom_up(e, lambda n: whole(4) if n == Size("H") else n))


@given(st.fractions(), st.fractions(), st.sampled_from("+-·/"))
def test_rational_arithmetic_is_exact(a: Fraction, b: Fraction, op: str) -> None:
    exact = {"+": a + b, "-": a - b, "·": a * b, "/": a / b if b else None}[op]
    folded = fold_constants_in(Bin(op, Num(a), Num(b), Sort.REAL))
    assert folded == (Bin("/", Num(a), Num(b), Sort.REAL) if exact is None else Num(exact))


@pytest.mark.parametrize(
    ("e", "expected"),
    [
        (Call("sqrt", (number("5376"),)), math.sqrt(5376)),
        (Bin("/", number("2"), Pi(), Sort.REAL), 2 / math.pi),
        (Bin("^", number("10000"), number("-1/3"), Sort.REAL), 10000 ** (-1 / 3)),
        (Bin("^", number("1/2"), number("-60"), Sort.REAL), 2.0**60),
        (Neg(Call("exp", (number("1"),)), Sort.REAL), -math.e),
        (Call("tanh", (Num(Fraction(1), Sort.INDEX),)), math.tanh(1)),
    ],
)
def test_a_constant_is_within_an_ulp_of_its_value(e: Expr, expected: float) -> None:
    (folded,) = [fold_constants_in(e)]
    assert isinstance(folded, Num)
    assert abs(float(folded.value) - expected) <= math.ulp(expected)


@pytest.mark.parametrize(
    "e",
    [
        Bin("^", Num(Fraction(10)), number("400.5"), Sort.REAL),
        Bin("^", Num(Fraction(10) ** 400), number("1/2"), Sort.REAL),
        Bin("^", Num(Fraction(1, 10**400)), number("-1/2"), Sort.REAL),
        Bin("^", number("-2"), number("1/2"), Sort.REAL),
        Bin("^", number("0"), number("-1"), Sort.REAL),
        Call("exp", (number("1000"),)),
        Call("sqrt", (number("-1"),)),
        Call("log", (number("0"),)),
    ],
)
def test_a_constant_without_a_float64_value_is_left_alone(e: Expr) -> None:
    assert fold_constants_in(e) == e


def test_a_rounded_constant_stays_rounded_but_for_exact_ones() -> None:
    mul = Rounded(Call("sqrt", (number("5376"),)), "weight")
    assert isinstance(fold_constants_in(mul), Rounded)
    assert identities(Rounded(number("1"), "weight")) == number("1")
    assert identities(Rounded(number("1.1"), "weight")) == Rounded(number("1.1"), "weight")


@pytest.mark.parametrize(
    ("e", "simple"),
    [
        (times(number("1"), X), X),
        (times(number("0"), X), Num(Fraction(0))),
        (times(number("-1"), X), Neg(X, Sort.REAL)),
        (Bin("/", X, number("1"), Sort.REAL), X),
        (Bin("-", X, number("0"), Sort.REAL), X),
        (Bin("//", Var("t"), whole(1), Sort.INDEX), Var("t")),
        (Bin("%", Var("t"), whole(1), Sort.INDEX), whole(0)),
        (moved("-", moved("+", Var("t"), 3), 5), moved("-", Var("t"), 2)),
        (moved("+", moved("-", Var("t"), 3), 3), Var("t")),
        (Neg(Neg(X, Sort.REAL), Sort.REAL), X),
        (Select(TRUE, X, W, Sort.REAL), X),
        (Bin("//", whole(-7), whole(2), Sort.INDEX), whole(-4)),
        (Bin("%", whole(-7), whole(2), Sort.INDEX), whole(1)),
    ],
)  # fmt: skip
def test_identities(e: Expr, simple: Expr) -> None:
    assert identities(e) == simple


def test_what_a_sum_does_not_change_leaves_it() -> None:
    e = only(hoist(formula(total(Bin("/", times(number("3"), X, A, B), W, Sort.REAL)))))
    assert e == Bin("/", times(number("3"), X, total(times(A, B))), W, Sort.REAL)


def test_a_sign_leaves_a_sum() -> None:
    e = only(hoist(formula(total(times(Neg(A, Sort.REAL), B)))))
    assert e == Neg(total(times(A, B)), Sort.REAL)


def test_a_sum_of_what_it_does_not_change_is_a_product() -> None:
    assert only(hoist(formula(total(X)))) == times(X, number("4"))


@pytest.mark.parametrize(("where", "extent"), [(Cmp("<", Var("j"), N), whole(4)), (None, Size("T"))])
def test_only_numbers_leave_a_sum_that_may_be_empty(where: Expr | None, extent: Expr) -> None:
    sum_ = total(times(number("2"), X, W), where, extent)
    e = only(hoist(formula(sum_)))
    assert e == times(number("2"), total(times(X, W), where, extent))


def test_an_empty_sum_times_nan_stays_zero() -> None:
    f = run_passes(formula(total(times(Load("w", (whole(0),)), A), Cmp("<", Var("j"), N), whole(4))))
    data = {**DATA, "w": np.full(4, np.nan)}
    found = evaluate(f, data)["y"]
    assert (found[0] == 0).all() and np.isnan(found[1]).all()


def test_a_division_by_zero_stays_inside_its_sum() -> None:
    e = total(Bin("/", A, number("0"), Sort.REAL))
    assert only(hoist(formula(e))) == e


def test_a_stencil_is_written_out_and_a_plain_sum_is_not() -> None:
    shifted = Load("x", (Bin("-", Var("t"), Var("j"), Sort.INDEX), Var("i")))
    stencil = total(times(shifted, B), Cmp(">=", Bin("-", Var("t"), Var("j"), Sort.INDEX), whole(0)), whole(3))
    f = formula(stencil)
    assert not [n for n in walk(only(unroll(f))) if isinstance(n, Reduce)]
    np.testing.assert_allclose(evaluate(unroll(f), DATA)["y"], evaluate(f, DATA)["y"])
    assert only(unroll(formula(total(times(A, B))))) == total(times(A, B))


def test_a_long_stencil_and_an_empty_maximum_are_left_alone() -> None:
    shifted = Load("x", (Var("t"), Bin("+", Var("i"), Var("j"), Sort.INDEX)))
    assert only(unroll(formula(total(shifted, extent=whole(17))))) == total(shifted, extent=whole(17))
    top = Reduce("Max", "j", whole(2), Cmp("<", Var("j"), N), shifted)
    assert only(unroll_all(formula(top))) == top


def test_a_sum_over_softmax_weights_is_never_written_out() -> None:
    weight = Softmax("j", whole(4), A, None)
    assert only(unroll_all(formula(total(times(weight, B))))) == total(times(weight, B))


def test_no_sum_runs_over_an_index_in_use() -> None:
    f = rename(
        formula_of("op f(q[T, D], k[L, D], v[L, D]) -> o[T, D]\n  o[t, d] = Σ_l (Σ_d q[t, d]·k[l, d])·v[l, d]", D=3)
    )
    sums = [n for n in walk(only(f)) if isinstance(n, Reduce)]
    assert [s.var for s in sums] == ["l", "d_2"]


def test_results_of_one_shape_share_their_indices() -> None:
    f = formula_of("op f(x[T, H]) -> a[T, H], b[T, H]\n  a[t, i] = x[t, i]\n  b[r, t] = x[r, t]·Σ_i x[r, i]", H=4)
    out = rename(f)
    assert [q.indices for q in out.equations] == [("t", "i"), ("t", "i")]
    x = {"x": np.random.default_rng(0).standard_normal((2, 4))}
    assert_same(evaluate(out, x), evaluate(f, x))


@pytest.mark.parametrize("n", ["-64", "-3", "-1/2", "0", "1/2", "1", "2", "5/2", "8", "9", "17", "64"])
def test_powers_are_products_and_roots(n: str) -> None:
    e = Bin("^", Call("abs", (X,)), Num(Fraction(n)), Sort.REAL)
    out = powers(formula(e))
    exponents = [p.right for p in walk(only(out)) if isinstance(p, Bin) and p.op == "^"]
    assert all(isinstance(p, Num) and 2 <= p.value <= 8 for p in exponents)
    np.testing.assert_allclose(evaluate(out, DATA)["y"], np.abs(DATA["x"]) ** float(Fraction(n)), rtol=1e-12)


def test_powers_inside_a_scalar_function_are_rewritten_too() -> None:
    p = Var("p", Sort.REAL)
    inverse = ScalarDef("inverse", (p,), Bin("^", p, Num(Fraction(-1)), Sort.REAL), None, Sort.REAL)
    out = only(powers(formula(Apply(inverse, (X,), Sort.REAL))))
    assert isinstance(out, Apply)
    assert out.fn.computed == Bin("/", Num(Fraction(1)), p, Sort.REAL)
    assert out.fn.body == inverse.body


def test_lets_that_the_profile_names_are_rounded() -> None:
    e = times(Named("n", X, Sort.REAL), Named("m", W, Sort.REAL))
    out = only(expand(formula(e), (("f", "n", "activation"), ("other", "m", "weight"))))
    assert out == times(Rounded(X, "activation"), W)


def test_every_softmax_weight_is_rounded_where_the_profile_says_so() -> None:
    weight = Softmax("j", whole(4), A, None)
    out = only(expand(formula(total(times(weight, B))), (("softmax", "", "cache"),)))
    assert out == total(times(Rounded(weight, "cache"), B))


@pytest.mark.parametrize(
    ("e", "level", "message"),
    [
        (Named("n", X, Sort.REAL), Level.EXPANDED, "Named is left"),
        (Rounded(X, "weight"), Level.CLOSED, "a rounding stands before expansion"),
        (Load("x", (Var("t"),)), Level.CLOSED, "x is read with 1 indices"),
        (Load("z", (Var("t"),)), Level.CLOSED, "z is read and is no operand"),
        (Load("n", (Var("t"),)), Level.CLOSED, "n holds index and is read as real"),
        (Bin("·", Var("q"), total(Load("x", (Var("p"), Var("j")))), Sort.REAL), Level.CLOSED, "p, q bound nowhere"),
        (Apply(RELU, (X,), Sort.REAL), Level.LOWERED, "relu is left after lowering"),
    ],
)
def test_what_a_pass_breaks_is_seen(e: Expr, level: Level, message: str) -> None:
    with pytest.raises(IllFormed, match=message):
        check(formula(e), level)


def test_free_variables_stay_the_same() -> None:
    for case in (*SHIPPED, *USER):
        out = run_passes(case.formula())
        for q in out.equations:
            assert set(free_vars(q.expr)) <= set(q.indices), case.name
