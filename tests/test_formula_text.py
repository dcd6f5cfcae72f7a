"""A formula as text reads back as the same formula."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from specc.formula_text import dims_text, expr_text, formula_text, number_text
from specc.library import load_library
from specc.ops import (
    Bin,
    Call,
    Cmp,
    Expr,
    Library,
    Logic,
    Neg,
    Num,
    Pi,
    Reduce,
    Rounded,
    Size,
    Softmax,
    Sort,
    Var,
)
from specc.oracle import evaluate
from specc.parse import parse_ops
from specc.source import Source
from specc.typecheck.ops import check_library
from tests.expressions import DATA, N, W, X, reals, value, whole
from tests.lower.cases import closed

HEAD = "op f(x[T, H], w[H], n[T]: index) -> y[T, H]\n  y[t, i] = "


def library(text: str) -> Library:
    return check_library([parse_ops(Source("t.ops", HEAD + text.replace(" = ", " == ")))])


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
        (Fraction("0.123456789012345678901"), "0.123456789012345678901"),
        (Fraction("-0.000123456789012345678901"), "-0.000123456789012345678901"),
        (Fraction("12345678901234567890.25"), "49382715604938271561/4"),
        (1 + Fraction(1, 2**200), f"{2**200 + 1}/{2**200}"),
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
    assert len(lines) == 3
    assert lines[0].startswith("R[t < T, h < 4, a < 3, b < 3] from 0 = alpha[t, h] · (R[t - 1, h, a, b] - ")
    assert lines[1] == "S[h, a, b] = R[T - 1, h, a, b]"
    assert lines[2] == "o[t, h, a] = Σ_b R[t, h, a, b] · q[t, h // 2, b]"


def test_dims_are_written_in_brackets() -> None:
    assert dims_text((Size("T"), whole(32), Bin("·", whole(2), Size("T"), Sort.INDEX))) == "[T, 32, 2 · T]"
