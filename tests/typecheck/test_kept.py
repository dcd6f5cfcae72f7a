"""Wires and states that a profile keeps in the accumulator's type."""

from __future__ import annotations

import pytest

from specc.diagnostics import SpecError
from specc.dump import dump_model
from specc.library import load_library
from specc.parse_spec import parse_spec
from specc.resources import shipped
from specc.source import Source
from specc.typecheck.model import check_model


def checked(old: str, new: str) -> str:
    text = (shipped("specs") / "qwen3_8_27b.spec").read_text()
    assert old in text
    return dump_model(check_model(parse_spec(Source("q.spec", text.replace(old, new))), load_library()))


def test_kept_tensors_are_listed() -> None:
    assert "store memory as accumulator" in checked("  memory float32\n", "  memory float32\n")
    assert "store memory" not in checked("  memory float32\n", "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("  memory bfloat16\n", "error[E270]: `memory` is stored as its role says, or in the accumulator's type"),
        ("  memory float32\n  memory float32\n", "error[E204]: the type of `memory` is given twice"),
        ("  memori float32\n", "error[E270]: unknown role `memori`"),
        ("  tokens float32\n", "error[E270]: unknown role `tokens`"),
    ],
)
def test_a_mistake_in_such_a_line_is_named(line: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        checked("  memory float32\n", line)
    assert message in str(caught.value)
