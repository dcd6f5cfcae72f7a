"""Closing an op over constants: numbers folded as Python folds them, conditionals decided, leading axes put in."""

from __future__ import annotations

import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specc.instantiate import FALSE, TRUE, close_expr, compare, fold, instantiate
from specc.library import load_library
from specc.ops import (
    Bin,
    Cmp,
    Expr,
    Given,
    Lead,
    Load,
    Logic,
    Named,
    Neg,
    Num,
    Select,
    Size,
    Sort,
    Var,
    walk,
)
from specc.oracle import evaluate
from tests.lower.cases import library_of

ARITHMETIC = {
    "+": operator.add, "-": operator.sub, "·": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip


def whole(n: int) -> Num:
    return Num(Fraction(n), Sort.INDEX)


@given(st.integers(-50, 50), st.integers(-50, 50), st.sampled_from(sorted(ARITHMETIC)))
def test_index_arithmetic_is_that_of_integers_and_floors(a: int, b: int, op: str) -> None:
    e = Bin(op, whole(a), whole(b), Sort.INDEX)
    if b == 0 and op in ("//", "%"):
        assert fold(e) == e
    else:
        assert fold(e) == whole(ARITHMETIC[op](a, b))


@given(st.fractions(), st.fractions(), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
def test_comparisons_of_numbers_are_decided(a: Fraction, b: Fraction, op: str) -> None:
    python = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[op]
    assert compare(op, a, b) is python
    assert fold(Cmp(op, Num(a), Num(b))) == (TRUE if python else FALSE)


OPEN = Cmp("<", Var("t"), whole(3))


@pytest.mark.parametrize(
    ("e", "result"),
    [
        (Logic("and", (TRUE, OPEN)), OPEN),
        (Logic("and", (FALSE, OPEN)), FALSE),
        (Logic("or", (FALSE, OPEN)), OPEN),
        (Logic("or", (TRUE, OPEN)), TRUE),
        (Logic("and", (TRUE, TRUE)), TRUE),
        (Logic("and", (OPEN, TRUE, OPEN)), Logic("and", (OPEN, OPEN))),
        (Logic("not", (TRUE,)), FALSE),
        (Logic("not", (OPEN,)), Logic("not", (OPEN,))),
        (Neg(whole(3), Sort.INDEX), whole(-3)),
        (Bin("^", whole(2), whole(10), Sort.INDEX), whole(1024)),
        (Bin("^", whole(2), whole(100), Sort.INDEX), Bin("^", whole(2), whole(100), Sort.INDEX)),
    ],
)
def test_one_node_is_folded(e: Expr, result: Expr) -> None:
    assert fold(e) == result


def test_a_real_constant_keeps_its_name_and_an_integer_becomes_a_number() -> None:
    e = Bin("/", Size("eps", Sort.REAL), Size("H"), Sort.REAL)
    closed = close_expr(e, {"eps": Num(Fraction(1, 2)), "H": whole(8)})
    assert closed == Bin("/", Named("eps", Num(Fraction(1, 2)), Sort.REAL), whole(8), Sort.REAL)
    assert close_expr(Size("T"), {}) == Size("T")


def test_only_the_side_that_is_chosen_remains() -> None:
    e = Select(Given("s"), Load("s", (whole(0),)), Load("x", (Var("t"),)), Sort.REAL)
    assert close_expr(e, {}) == Load("x", (Var("t"),))
    assert close_expr(e, {}, given=("s",)) == Load("s", (whole(0),))
    flag = Select(Size("norm", Sort.BOOL), whole(1), whole(2), Sort.INDEX)
    assert close_expr(flag, {"norm": True}) == whole(1)
    assert close_expr(flag, {"norm": False}) == whole(2)


def test_a_label_has_no_value() -> None:
    with pytest.raises(ValueError, match="label 'silu' has no value"):
        close_expr(Size("act"), {"act": "silu"})


@pytest.mark.parametrize(("given_", "r"), [({}, Fraction(1)), ({"r": Num(Fraction(1, 2))}, Fraction(1, 2))])
def test_a_default_holds_until_it_is_overridden(given_: dict[str, Num], r: Fraction) -> None:
    formula = instantiate(load_library().op("residual"), {"H": whole(4), **given_})
    named = {n for n in walk(formula.equations[0].expr) if isinstance(n, Named)}
    assert named == {Named("r", Num(r), Sort.REAL)}


def test_an_optional_operand_is_there_only_when_it_is_given() -> None:
    op = load_library().op("residual")
    values = {"H": whole(4), "layer_scalar": True}
    assert [t.name for t in instantiate(op, values, given=("s",)).inputs] == ["x", "h", "s"]
    assert [t.name for t in instantiate(op, {"H": whole(4)}).inputs] == ["x", "h"]


def test_leading_axes_stand_first_everywhere() -> None:
    f = instantiate(load_library().op("linear"), {"K": whole(3), "N": whole(2)}, [("b", Size("B")), ("t", Size("T"))])
    assert f.lead == ("b", "t")
    assert f.inputs[0].dims == (Size("B"), Size("T"), whole(3))
    assert f.inputs[1].dims == (whole(2), whole(3))
    assert f.outputs[0].dims == (Size("B"), Size("T"), whole(2))
    assert f.equations[0].indices == ("b", "t", "n")
    nodes = list(walk(f.equations[0].expr))
    assert not [n for n in nodes if isinstance(n, Lead)]
    assert Load("x", (Var("b"), Var("t"), Var("k"))) in nodes


def test_a_leading_axis_is_not_captured_by_a_sum() -> None:
    op = library_of("op f(x[.., H]) -> y[.., H]\n  y[.., i] = x[.., i] / Σ_{t < H | t ≤ i} x[.., t]").op("f")
    f = instantiate(op, {"H": whole(4)}, [("t", Size("T"))])
    x = np.random.default_rng(0).standard_normal((3, 4))
    np.testing.assert_allclose(evaluate(f, {"x": x})["y"], x / x.cumsum(1))


def test_a_leading_index_that_is_a_result_index_too_is_refused() -> None:
    op = load_library().op("rmsnormUnit")
    with pytest.raises(ValueError, match="a leading index of `y` is one of its own: i, i"):
        instantiate(op, {"H": whole(4), "eps": whole(1)}, [("i", Size("T"))])
