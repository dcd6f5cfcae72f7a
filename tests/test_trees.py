"""Substitution never lets a reduction capture a variable."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from specc.ops import (
    Bin,
    Expr,
    Formula,
    FormulaEquation,
    FormulaTensor,
    Load,
    Num,
    Reduce,
    Softmax,
    Sort,
    Var,
    free_vars,
    substitute,
)
from specc.oracle import evaluate

X = np.random.default_rng(3).standard_normal((4, 4))
I_, J, K = Var("i"), Var("j"), Var("k")


def index(n: int) -> Num:
    return Num(Fraction(n), Sort.INDEX)


def x(a: Expr, b: Expr) -> Load:
    return Load("x", (a, b))


def total(var: str, body: Expr, extent: Expr | None = None, where: Expr | None = None) -> Reduce:
    return Reduce("Σ", var, extent or index(4), where, body)


def run(e: Expr, *axes: str) -> np.ndarray:
    tensor = FormulaTensor("x", (index(4), index(4)))
    result = FormulaTensor("y", tuple(index(4) for _ in axes))
    return evaluate(Formula("f", (tensor,), (FormulaEquation(result, axes, e),)), {"x": X})["y"]


def test_a_sum_does_not_capture_the_new_value() -> None:
    sums = substitute(total("j", x(I_, J)), {"i": J})
    assert free_vars(sums) == ("j",)
    np.testing.assert_allclose(run(sums, "j"), X.sum(1))


def test_a_sum_over_the_replaced_variable_stays() -> None:
    e = Bin("·", total("j", x(I_, J)), x(J, J), Sort.REAL)
    np.testing.assert_allclose(run(substitute(e, {"j": I_}), "i"), X.sum(1) * np.diag(X))


def test_variables_are_exchanged_all_at_once() -> None:
    np.testing.assert_array_equal(run(substitute(x(I_, J), {"i": J, "j": I_}), "i", "j"), X.T)


def test_an_extent_stands_outside_of_its_sum() -> None:
    e = substitute(total("j", x(J, J), extent=J), {"j": I_})
    np.testing.assert_allclose(run(e, "i"), [np.diag(X)[:n].sum() for n in range(4)])


def test_a_sum_inside_a_sum_is_renamed_apart() -> None:
    e = substitute(total("j", total("k", Bin("·", x(I_, J), x(I_, K), Sort.REAL))), {"i": Bin("+", J, K, Sort.INDEX)})
    assert set(free_vars(e)) == {"j", "k"}
    expected = X.sum(1)[np.minimum(np.add.outer(range(4), range(4)), 3)] ** 2
    shown = run(substitute(e, {"k": index(0)}), "j")
    np.testing.assert_allclose(shown, expected[:, 0])


def test_a_softmax_is_read_at_its_new_variable() -> None:
    weights = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    e = substitute(Softmax("j", index(4), x(I_, J), None), {"j": K})
    np.testing.assert_allclose(run(e, "i", "k"), weights)


@pytest.mark.parametrize("values", [{"j": I_}, {"i": J}, {"i": J, "k": I_}])
def test_a_softmax_read_at_a_variable_of_its_score_is_refused(values: dict[str, Expr]) -> None:
    with pytest.raises(ValueError, match="where its score depends on it as well"):
        substitute(Softmax("j", index(4), x(I_, J), None), values)


def test_a_softmax_whose_variables_are_exchanged_means_the_same() -> None:
    weights = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    e = substitute(Softmax("j", index(4), x(I_, J), None), {"i": J, "j": I_})
    np.testing.assert_allclose(run(e, "j", "i"), weights)


def test_a_softmax_is_read_at_a_variable_only() -> None:
    with pytest.raises(ValueError, match="only be read at an index variable"):
        substitute(Softmax("j", index(4), x(I_, J), None), {"j": index(0)})
