"""Expressions as Python text mean what the formula means."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from specc.ops import Bin, Call, Cmp, Expr, Logic, Neg, Num, Pi, Select, Size, Sort, Var
from specc.targets.triton.host import host_text, product_text

I = Sort.INDEX  # noqa: E741
T = Size("T")


def n(value: int | Fraction, sort: Sort = I) -> Num:
    return Num(Fraction(value), sort)


def b(op: str, left: Expr, right: Expr, sort: Sort = I) -> Bin:
    return Bin(op, left, right, sort)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (b("-", T, b("-", n(3), n(1))), "T - (3 - 1)"),
        (b("·", b("+", T, n(1)), n(2)), "(T + 1) * 2"),
        (b("//", T, b("//", n(7), n(2))), "T // (7 // 2)"),
        (b("%", Neg(T, I), n(4)), "-T % 4"),
        (Select(Cmp("<", T, n(3)), n(1), n(2), I), "1 if T < 3 else 2"),
        (Call("max", (T, n(3)), I), "max(T, 3)"),
        (Logic("and", (Cmp("<", T, n(3)), Logic("not", (Cmp(">", T, n(1)),)))), "T < 3 and not T > 1"),
        (b("^", Num(Fraction(10)), Neg(Var("i"), I), Sort.REAL), "math.pow(10, -i)"),
        (b("/", n(1), Pi(), Sort.REAL), "1 / math.pi"),
        (Num(Fraction(1, 3)), "1 / 3"),
        (Num(Fraction(1, 10)), "0.1"),
        (b("·", Num(Fraction(2, 3)), Num(Fraction(1, 7)), Sort.REAL), "2 / 3 * (1 / 7)"),
    ],
)
def test_parentheses_stand_only_where_they_are_needed(expr: Expr, text: str) -> None:
    assert host_text(expr) == text


def test_sizes_may_have_other_names() -> None:
    assert host_text(b("+", T, n(3)), {"T": 'sizes["T"]'}) == 'sizes["T"] + 3'


def test_a_product_of_no_extents_is_one() -> None:
    assert product_text(()) == "1"
    assert product_text((T, b("+", T, n(1)), n(4))) == "T * (T + 1) * 4"


def test_printed_reals_are_computed_in_double_precision() -> None:
    e = b("^", Num(Fraction(10000)), Neg(b("/", b("·", n(2), Var("i")), n(512), Sort.REAL), Sort.REAL), Sort.REAL)
    values = [eval(host_text(e), {"math": math, "i": i}) for i in range(256)]  # noqa: S307
    assert values == [math.pow(10000, -(2 * i / 512)) for i in range(256)]
