"""A `computed as` form equals the definition beside it: proved by SymPy, and seen at many digits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from specc.library import load_library
from specc.ops import (
    Apply,
    Bin,
    Call,
    Cmp,
    Expr,
    Formula,
    FormulaEquation,
    FormulaTensor,
    Load,
    Named,
    Neg,
    Num,
    Pi,
    ScalarDef,
    Select,
    Size,
    Var,
)
from specc.oracle import precise
from tests.oracle.formulas import library_of

TWO_FORMS = [fn for fn in load_library().defs if fn.computed is not None]
ARITHMETIC: dict[str, Any] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "·": lambda a, b: a * b, "/": lambda a, b: a / b,
    "^": lambda a, b: a**b,
}  # fmt: skip
FUNCTIONS: dict[str, Any] = {
    "exp": sp.exp, "expm1": lambda x: sp.exp(x) - 1, "log": sp.log, "log1p": lambda x: sp.log(1 + x),
    "sqrt": sp.sqrt, "tanh": sp.tanh, "sin": sp.sin, "cos": sp.cos,
    "abs": sp.Abs, "max": sp.Max, "min": sp.Min,
}  # fmt: skip
COMPARE: dict[str, Any] = {"<": sp.Lt, "<=": sp.Le, ">": sp.Gt, ">=": sp.Ge, "==": sp.Eq, "!=": sp.Ne}


def symbolic(e: Expr, values: dict[str, Any]) -> Any:
    """The formula in SymPy; conditions are decided by what is assumed of `values`."""
    match e:
        case Num(value):
            return sp.Rational(value.numerator, value.denominator)
        case Pi():
            return sp.pi
        case Var(name):
            return values[name]
        case Named(_, inner):
            return symbolic(inner, values)
        case Neg(arg):
            return -symbolic(arg, values)
        case Bin(op, left, right):
            return ARITHMETIC[op](symbolic(left, values), symbolic(right, values))
        case Call(fn, args):
            return FUNCTIONS[fn](*(symbolic(a, values) for a in args))
        case Apply(fn, args):
            return symbolic(fn.body, {p.name: symbolic(a, values) for p, a in zip(fn.params, args, strict=True)})
        case Cmp(op, left, right):
            return COMPARE[op](symbolic(left, values), symbolic(right, values))
        case Select(cond, then, other):
            chosen = then if symbolic(cond, values) == sp.true else other
            assert symbolic(cond, values) in (sp.true, sp.false)
            return symbolic(chosen, values)
    raise AssertionError(f"{type(e).__name__} in a scalar function")


POSITIVE = sp.Symbol("p", positive=True)
SIDES = {"x > 0": POSITIVE, "x = 0": sp.Integer(0), "x < 0": -POSITIVE}


def is_zero(difference: Any) -> bool:
    """Whether SymPy proves it, for an expression or as an equality of exponentials."""
    powers = sp.simplify(difference.rewrite(sp.exp))
    return bool(powers == 0 or sp.simplify(sp.exp(sp.expand_log(powers, force=True)) - 1) == 0)


def proved_equal(fn: ScalarDef, side: Any) -> bool:
    assert fn.computed is not None
    values = {p.name: side if p == fn.params[-1] else sp.Symbol(p.name, positive=True) for p in fn.params}
    return is_zero(symbolic(fn.body, values) - symbolic(fn.computed, values))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("fn", TWO_FORMS, ids=lambda fn: fn.name)
def test_computed_form_is_proved_equal_to_its_definition(fn: ScalarDef, side: str) -> None:
    assert proved_equal(fn, SIDES[side])


def form(fn: ScalarDef, body: Expr) -> Formula:
    """`y[t] = body(x[t])`."""
    x, y = (FormulaTensor(n, (Size("T"),)) for n in "xy")
    call = Apply(replace(fn, body=body), (Load("x", (Var("t"),)),), fn.sort)
    return Formula("f", (x,), (FormulaEquation(y, ("t",), call),))


def at_many_digits(fn: ScalarDef, body: Expr, x: list[float], digits: int) -> list[Any]:
    return precise(form(fn, body), {"x": np.array(x)}, at_points={"y": [(i,) for i in range(len(x))]}, digits=digits)[
        "y"
    ]


@pytest.mark.parametrize("fn", TWO_FORMS, ids=lambda fn: fn.name)
@given(x=st.lists(st.floats(-20, 20), min_size=1, max_size=20))
def test_computed_form_equals_its_definition_at_many_digits(fn: ScalarDef, x: list[float]) -> None:
    """The tails at ±20 are as small as 1e-270: 400 digits leave more than 100 of them."""
    assert fn.computed is not None and len(fn.params) == 1
    pairs = zip(at_many_digits(fn, fn.body, x, 400), at_many_digits(fn, fn.computed, x, 400), strict=True)
    assert all(abs(a - b) <= abs(a) * 10**-100 for a, b in pairs)


@pytest.mark.parametrize("fn", TWO_FORMS, ids=lambda fn: fn.name)
def test_computed_form_equals_its_definition_far_out(fn: ScalarDef) -> None:
    x = [s * m for s in (1.0, -1.0) for m in (0.0, 5e-324, 1e-30, 30.0, 88.7, 700.0, 1e4, 1e30)]
    assert fn.computed is not None
    for a, b, at in zip(at_many_digits(fn, fn.body, x, 60), at_many_digits(fn, fn.computed, x, 60), x, strict=True):
        assert abs(a - b) <= 1e-50 * (1 + abs(at))


WRONG = {
    "sigmoid": "def f(x) = 1 / (1 + exp(-x))\n  computed as exp(x) / (1 + exp(-x))",
    "softplus": "def f(x) = log(1 + exp(x))\n  computed as max(x, 0) + log1p(exp(abs(x)))",
    "gelu": "def s(x) = 1 / (1 + exp(-x))\ndef f(x) = 1/2 · x · (1 + tanh(x))\n  computed as x · s(x)",
    "one branch": "def f(x) = x\n  computed as if x >= 0 then x else 2 · x",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_computed_form_is_not_proved_equal(name: str) -> None:
    definition, computed = WRONG[name].split("\n  computed as ")
    library = library_of(f"{definition}\ndef g(x) = {computed}")
    fn = replace(library.scalar("f"), computed=library.scalar("g").body)
    assert not all(proved_equal(fn, side) for side in SIDES.values())
    assert fn.computed is not None
    (a,), (b,) = at_many_digits(fn, fn.body, [-1.5], 60), at_many_digits(fn, fn.computed, [-1.5], 60)
    assert abs(a - b) > 1e-3
