from __future__ import annotations

from pathlib import Path

import pytest

from specc.hygiene import clean, fault
from specc.resources import shipped
from specc.source import Source

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
SHIPPED = [p for root in (shipped("specs"), EXAMPLES) for p in root.rglob("*") if p.suffix in (".spec", ".ops")]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.name)
def test_every_shipped_text_is_clean(path: Path) -> None:
    source = Source.read(path)
    assert clean(source) is source


@pytest.mark.parametrize(
    "text",
    ["αβγ σ π Σ_i x² · √ ≤ ≠ ∈ x̂ ε", "Größe", "вес и форма", "形状", "テンソルの形", "µ ﬁ ℓ 𝐱", "a — “b” …", "x_α"],
)
def test_letters_of_any_language_and_the_signs_of_formulas_may_stand(text: str) -> None:
    assert fault(text) is None


@pytest.mark.parametrize("text", ["mоdel", "model.оо.weight", "Ꭺlpha", "x\u3164", "a\u2800b", "a\u034fb"])
def test_what_passes_for_something_else_may_not(text: str) -> None:
    assert fault(text) is not None


def test_every_fault_has_its_place() -> None:
    with pytest.raises(Exception, match="E111") as error:
        clean(Source("a.spec", "one\ntwo \u200b\n\u202e three \u200b"))
    assert [(d.span.line, d.span.column) for d in error.value.diagnostics] == [(2, 5), (3, 1), (3, 9)]  # type: ignore[attr-defined]
