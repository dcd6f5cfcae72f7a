"""What depends on nothing has a value or is refused; what is evaluated in some cases only is left alone."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from specc.instantiate import close_expr
from specc.library import load_library
from specc.ops import Apply, Expr, Num, Sort
from specc.parse import parse_ops
from specc.source import Source
from specc.typecheck.known import Undefined, holds, value_of
from specc.typecheck.ops import check_library
from specc.typecheck.values import number


def formula(text: str) -> Expr:
    """The body of an op, closed over H = 8."""
    op = check_library([parse_ops(Source("a.ops", f"op f(x[T]; H: nat) -> y[T] y[t] = {text}"))]).op("f")
    return close_expr(op.equations[0].expr, {"H": number(8)})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1/3 + 1/6", Fraction(1, 2)),
        ("(1/10)^2 · 10", Fraction(1, 10)),
        ("max(√2, 1) - √2", 0.0),
        ("exp(-100000)", 0.0),
        ("H % 3 + H // 3", Fraction(4)),
        ("2^(1/2)", math.sqrt(2)),
        ("if H > 7 then 1 else 1 / (H - 8)", Fraction(1)),
        ("x[t] / (H - 7)", None),
        ("if t < H - 8 then x[t] / (H - 8) else x[t]", None),
        ("Σ_{j < H - 8} x[j] / (H - 8)", None),
        ("Σ_{j < H | j > 0 and H > 8} x[j] / (H - 8)", None),
        ("if t > 3 or 1 / (H - 8) > 1 then 1 else x[t]", None),
    ],
)
def test_a_part_has_its_value_and_what_may_not_be_evaluated_is_left_alone(text: str, value: object) -> None:
    assert value_of(formula(text)) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x[t] / (H - 8)", "division by zero"),
        ("x[t] + H % (H - 8)", "division by zero"),
        ("x[t] · (H - 8)^(-1)", "division by zero"),
        ("Σ_{j < H} x[j] · log(H - 8)", "logarithm of a number that is not positive"),
        ("√(7 - H)", "square root of a negative number"),
        ("(7 - H)^(1/2)", "power of a negative number"),
        ("exp(H^3)^2 · exp(H^3)^2", "number out of range"),
        ("if 1 / (H - 8) > 1 and t > 3 then 1 else x[t]", "division by zero"),
        ("x[H // (H - 8)]", "division by zero"),
    ],
)
def test_a_part_without_a_value_is_refused(text: str, why: str) -> None:
    with pytest.raises(Undefined, match=why):
        value_of(formula(text))


def test_a_call_is_evaluated_in_its_second_form() -> None:
    softplus = load_library().scalar("softplus")
    assert value_of(Apply(softplus, (Num(Fraction(1000)),), Sort.REAL)) == 1000


def test_a_call_may_be_a_condition() -> None:
    even = check_library([parse_ops(Source("a.ops", "def even(n: nat) = n % 2 == 0"))]).scalar("even")
    assert [holds(Apply(even, (number(n),), Sort.BOOL)) for n in (4, 5)] == [True, False]
