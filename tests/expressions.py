"""Random typed expressions over the operands x[T, H], w[H] and n[T]: index, and their values."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from specc.ops import (
    Bin,
    Call,
    Cmp,
    Expr,
    Formula,
    FormulaEquation,
    FormulaTensor,
    Load,
    Logic,
    Named,
    Neg,
    Num,
    Pi,
    Reduce,
    Select,
    Size,
    Sort,
    Var,
)
from specc.oracle import evaluate

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


def divided(a: Expr, b: Expr) -> Expr:
    return Bin("/", a, b, Sort.REAL)


def divided_by_one_or_more(a: Expr, b: Expr) -> Expr:
    return divided(a, one_or_more(b))


def one_or_more(a: Expr) -> Expr:
    return Bin("+", Num(Fraction(1)), magnitude(a), Sort.REAL)


def magnitude(a: Expr) -> Expr:
    return Call("abs", (a,))


def expressions(
    quotient: Callable[[Expr, Expr], Expr], radicand: Callable[[Expr], Expr], leaves: list[Expr] = REAL_LEAVES
) -> Any:
    return st.recursive(
        st.sampled_from(leaves),
        lambda e: st.one_of(
            st.builds(lambda op, a, b: Bin(op, a, b, Sort.REAL), st.sampled_from("+-·"), e, e),
            st.builds(quotient, e, e),
            st.builds(lambda a, n: Bin("^", a, whole(n), Sort.REAL), e, st.integers(0, 3)),
            st.builds(lambda a: Neg(a, Sort.REAL), e),
            st.builds(lambda a: Named("v", a, Sort.REAL), e),
            st.builds(lambda a: Call("sqrt", (radicand(a),)), e),
            st.builds(lambda a, b: Call("max", (a, b)), e, e),
            st.builds(lambda c, a, b: Select(c, a, b, Sort.REAL), conditions, e, e),
            reductions(e),
        ),
        max_leaves=8,
    )


reals = expressions(divided, magnitude)
tame = expressions(divided_by_one_or_more, one_or_more)
"""No division by, and no root of, what may be nearly 0, so that another order of operations changes little."""


def _moved(op: str, e: Expr, n: int) -> Expr:
    return Bin(op, e, whole(n), Sort.INDEX)


T, INNER = Var("t"), Var("i")
READS: list[Expr] = [
    *REAL_LEAVES,
    Load("w", (N,)),
    Load("x", (T, N)),
    Load("w", (whole(1),)),
    Load("x", (T, _moved("%", _moved("+", INNER, 1), 4))),
    Load("w", (_moved("//", INNER, 2),)),
    Reduce("Σ", "j", Size("H"), None, Bin("^", Load("x", (T, Var("j"))), whole(2), Sort.REAL)),
    Reduce("Max", "k", Size("H"), None, Load("x", (T, Var("k")))),
    Select(Cmp(">=", T, whole(1)), Load("x", (_moved("-", T, 1), INNER)), W, Sort.REAL),
    Select(Cmp("<", INNER, whole(3)), Load("x", (T, _moved("+", INNER, 1))), Num(Fraction(0)), Sort.REAL),
    Select(Cmp("==", INNER, whole(2)), X, Load("w", (whole(3),)), Sort.REAL),
]
"""Reads of neighbours, by data, and of constants."""
reading = expressions(divided_by_one_or_more, one_or_more, READS)


def formula(e: Expr) -> Formula:
    """y[t, i] = e, with H = 4."""
    tensors = [FormulaTensor("x", (Size("T"), whole(4))), FormulaTensor("w", (whole(4),))]
    tensors.append(FormulaTensor("n", (Size("T"),), Sort.INDEX))
    result = FormulaEquation(FormulaTensor("y", (Size("T"), whole(4))), ("t", "i"), e)
    return Formula("f", tuple(tensors), (result,))


def value(e: Expr) -> Any:
    return evaluate(formula(e), DATA, {"H": 4})["y"]
