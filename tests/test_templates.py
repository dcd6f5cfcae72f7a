"""Templates hold shape: no op is named and no mathematics typed in them, but for the softmax of attention."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specc.formula_text import snake
from specc.library import load_library
from specc.ops import ELEMENTARY
from specc.resources import shipped

TEMPLATES = sorted(shipped("templates").rglob("*.j2"))
FUNCTIONS = {*ELEMENTARY, "exp2", "log2", "rsqrt", "sqrt_rn", "erf", "erfc", "pow", "sigmoid", "silu", "gelu", "relu"}
SHAPE = {"abs", "max", "min"}
"""Elementary functions that integer arithmetic and reductions use as well."""
OWN = {
    "attention_loop.py.j2": {"exp"},
    "attention_decode.py.j2": {"exp"},
    "attention_prefill.py.j2": {"exp"},
    "attention.j2": {"exp"},
    "attention_decode.cu.j2": {"exp"},
    "attention_prefill.cu.j2": {"exp"},
    "weights.py.j2": {"sqrt"},
}
"""The online softmax of the attention schedules; the scale of random weights."""
SOFTMAX = {"runtime.py.j2"}
"""Where the torch target keeps the softmax primitive."""


def words(path: Path) -> set[str]:
    return set(re.findall(r"[A-Za-z_][A-Za-z_0-9]*", path.read_text(encoding="utf-8")))


def ids(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("path", TEMPLATES, ids=ids)
def test_no_op_or_scalar_function_is_named_in_a_template(path: Path) -> None:
    library = load_library()
    names = {n for item in (*library.ops, *library.defs) for n in (item.name, snake(item.name))}
    assert words(path) & names - ({"softmax"} if path.name in SOFTMAX else set()) == set()


@pytest.mark.parametrize("path", TEMPLATES, ids=ids)
def test_no_mathematical_function_is_called_in_a_template(path: Path) -> None:
    called = set(re.findall(r"\b([a-z_0-9]+)\(", path.read_text(encoding="utf-8")))
    assert called & (FUNCTIONS - SHAPE) <= OWN.get(path.name, set())


def test_the_templates_are_all_here() -> None:
    assert len(TEMPLATES) >= 10 and set(OWN) <= {p.name for p in TEMPLATES}
