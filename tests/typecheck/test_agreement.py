"""A second form that has other values than the definition is not used, and that is said."""

from __future__ import annotations

import pytest

from specc.library import load_library
from specc.ops import Library
from specc.parse import parse_ops
from specc.source import Source
from specc.typecheck.agreement import agrees
from specc.typecheck.ops import check_library

GELU = """
def sigmoid(x) = 1 / (1 + exp(-x))
def geluTanh(x) = 1/2 · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))
  computed as x · sigmoid(2 · √(2/π) · (x + 0.044715 · x³))
"""


def library(old: str = "", new: str = "") -> Library:
    return check_library([parse_ops(Source("my.ops", GELU.replace(old, new, 1)))])


def test_every_shipped_second_form_agrees() -> None:
    shipped = load_library()
    assert shipped.warnings == ()
    assert [d.name for d in shipped.defs if d.computed is not None] == ["geluTanh", "sigmoid", "softplus"]
    assert all(agrees(d) for d in shipped.defs)


@pytest.mark.parametrize(
    ("old", "new"), [("1 + tanh", "1 - tanh"), ("0.044715", "0.0447"), ("x³", "x²"), ("1/2 · x", "x"), ("2/π", "π/2")]
)
def test_an_edited_definition_drops_the_second_form_with_a_warning(old: str, new: str) -> None:
    edited = library(old, new)
    assert edited.scalar("geluTanh").computed is None
    (warning,) = edited.warnings
    assert warning.code == "W301" and warning.span is not None and warning.span.line == 4
    assert "warning[W301]" in warning.render()


def test_a_second_form_without_any_value_is_not_believed() -> None:
    text = "def f(x) = x\n  computed as log(-1 - x · x)\n"
    assert check_library([parse_ops(Source("my.ops", text))]).scalar("f").computed is None
