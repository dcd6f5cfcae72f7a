"""A formula as text reads back as the same formula."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specc.formula_text import dims_text, expr_text, formula_text, number_text
from specc.library import load_library
from specc.ops import (
    Bin,
    Call,
    Cmp,
    Expr,
    Formula,
    FormulaEquation,
    FormulaTensor,
    Library,
    Load,
    Logic,
    Named,
    Neg,
    Num,
    Pi,
    Reduce,
    Rounded,
    Select,
    Size,
    Softmax,
    Sort,
    Var,
)
from specc.oracle import evaluate
from specc.parse import parse_ops
from specc.source import Source
from specc.typecheck.ops import check_library
from tests.lower.cases import closed

HEAD = "op f(x[T, H], w[H], n[T]: index) -> y[T, H]\n  y[t, i] = "
DATA = {
    "x": np.random.default_rng(1).standard_normal((3, 4)),
    "w": np.random.default_rng(2).uniform(0.5, 2, 4),
    "n": np.array([0, 3, 2]),
}
X, W, N = (Load("x", (Var("t"), Var("i"))), Load("w", (Var("i"),)), Load("n", (Var("t"),), Sort.INDEX))


def whole(n: int) -> Num:
    return Num(Fraction(n), Sort.INDEX)


REAL_LEAVES: list[Expr] = [
    X,
    W,
    Pi(),
    Num(Fraction(-3)),
    Num(Fraction(1, 3)),
    Num(Fraction("0.044715")),
    Num(Fraction(2)),
]
INDEX_LEAVES: list[Expr] = [Var("t"), Var("i"), N, whole(3), whole(-2)]
DIVISORS = st.integers(2, 4)
indices = st.recursive(
    st.sampled_from(INDEX_LEAVES),
    lambda e: st.one_of(
        st.builds(lambda op, a, b: Bin(op, a, b, Sort.INDEX), st.sampled_from("+-·"), e, e),
        st.builds(
            lambda op, a, n: Bin(op, a, whole(n), Sort.INDEX), st.sampled_from(["//", "%"]), e, st.integers(2, 4)
        ),
        st.builds(lambda a: Neg(a, Sort.INDEX), e),
    ),
    max_leaves=4,
)
conditions = st.recursive(
    st.builds(Cmp, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), indices, indices),
    lambda e: st.one_of(
        st.builds(lambda op, a, b: Logic(op, (a, b)), st.sampled_from(["and", "or"]), e, e),
        st.builds(lambda a: Logic("not", (a,)), e),
    ),
    max_leaves=3,
)


def reductions(body: Any) -> Any:
    def build(op: str, e: Expr, where: Expr | None) -> Expr:
        return Reduce(op, "j", Size("H"), where, Bin("+", Load("x", (Var("t"), Var("j"))), e, Sort.REAL))

    inner = st.builds(lambda a: Cmp("<=", Var("j"), a), indices)
    return st.builds(build, st.sampled_from(["Σ", "Π"]), body, st.none() | inner)


reals = st.recursive(
    st.sampled_from(REAL_LEAVES),
    lambda e: st.one_of(
        st.builds(lambda op, a, b: Bin(op, a, b, Sort.REAL), st.sampled_from("+-·/"), e, e),
        st.builds(lambda a, n: Bin("^", a, whole(n), Sort.REAL), e, st.integers(0, 3)),
        st.builds(lambda a: Neg(a, Sort.REAL), e),
        st.builds(lambda a: Named("v", a, Sort.REAL), e),
        st.builds(lambda a: Call("sqrt", (Call("abs", (a,)),)), e),
        st.builds(lambda a, b: Call("max", (a, b)), e, e),
        st.builds(lambda c, a, b: Select(c, a, b, Sort.REAL), conditions, e, e),
        reductions(e),
    ),
    max_leaves=8,
)


def library(text: str) -> Library:
    return check_library([parse_ops(Source("t.ops", HEAD + text.replace(" = ", " == ")))])


def value(e: Expr) -> Any:
    tensors = [FormulaTensor("x", (Size("T"), whole(4))), FormulaTensor("w", (whole(4),))]
    tensors.append(FormulaTensor("n", (Size("T"),), Sort.INDEX))
    result = FormulaEquation(FormulaTensor("y", (Size("T"), whole(4))), ("t", "i"), e)
    return evaluate(Formula("f", tuple(tensors), (result,)), DATA, {"H": 4})["y"]


@given(reals)
def test_text_reads_back_as_the_same_value(e: Expr) -> None:
    read_back = evaluate(closed(library(expr_text(e)), "f", 0, (), {"H": 4}), DATA)["y"]
    np.testing.assert_allclose(read_back, value(e), rtol=1e-9, atol=1e-9, err_msg=expr_text(e))


@given(reals)
def test_text_is_a_fixed_point(e: Expr) -> None:
    text = expr_text(e)
    again = expr_text(library(text).ops[0].equations[0].expr)
    assert again.replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(5376), "5376"),
        (Fraction("1e-6"), "1e-06"),
        (Fraction("0.044715"), "0.044715"),
        (Fraction(1, 3), "1/3"),
        (Fraction(-1, 3), "-1/3"),
        (Fraction(5376**0.5), "73.32121111929344"),
        (Fraction(10) ** 400 / 3, f"{10**400}/3"),
        (Fraction(0.1), "0.1"),
        (Fraction(3, 8), "0.375"),
    ],
)
def test_a_number_is_as_short_as_it_can_be(number: Fraction, text: str) -> None:
    assert number_text(number) == text


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (Bin("^", Num(Fraction(-3)), whole(2), Sort.REAL), "(-3)²"),
        (Bin("^", Neg(X, Sort.REAL), whole(2), Sort.REAL), "(-x[t, i])²"),
        (Bin("-", X, Num(Fraction(-3)), Sort.REAL), "x[t, i] - -3"),
        (Bin("^", Num(Fraction(2)), Neg(X, Sort.REAL), Sort.REAL), "2^(-x[t, i])"),
        (Reduce("Σ", "j", whole(3), None, Bin("·", X, Var("j"), Sort.REAL)), "Σ_{j < 3} x[t, i] · j"),
        (Bin("·", Reduce("Σ", "i", whole(4), None, X), W, Sort.REAL), "(Σ_i x[t, i]) · w[i]"),
        (Bin("·", W, Reduce("Σ", "i", whole(4), None, X), Sort.REAL), "w[i] · Σ_i x[t, i]"),
        (Call("sqrt", (Pi(),)), "√π"),
        (Call("sqrt", (X,)), "√(x[t, i])"),
        (Rounded(X, "weight"), "round_weight(x[t, i])"),
        (Softmax("i", whole(4), X, Cmp("<=", Var("i"), N)), "softmax_i(x[t, i] | i ≤ n[t])"),
        (Logic("and", (Cmp("<", whole(0), Var("i")), Cmp("<=", Var("i"), N))), "0 < i ≤ n[t]"),
        (Logic("and", (Cmp("<", whole(0), Var("i")), Cmp("<=", Var("t"), N))), "0 < i and t ≤ n[t]"),
        (Logic("true", ()), "true"),
    ],
)
def test_an_expression_is_written_as_a_person_would(e: Expr, text: str) -> None:
    assert expr_text(e) == text


def test_a_formula_has_a_line_for_each_result_and_recurrence() -> None:
    step = closed(load_library(), "gatedDeltaRule", 0, (), {"Hv": 4, "Hk": 2, "Dk": 3, "Dv": 3})
    lines = formula_text(step)
    assert len(lines) == 2
    assert lines[0].startswith("R[t < T, h < 4, a < 3, b < 3] from 0 = alpha[t, h] · (R[t - 1, h, a, b] - ")
    assert lines[1] == "o[t, h, a] = Σ_b R[t, h, a, b] · q[t, h // 2, b]"


def test_dims_are_written_in_brackets() -> None:
    assert dims_text((Size("T"), whole(32), Bin("·", whole(2), Size("T"), Sort.INDEX))) == "[T, 32, 2 · T]"
