"""The page of limits says what holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specc import limits
from specc.codes import CODES

PAGE = (Path(__file__).parents[2] / "docs" / "limits.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| .* \| (\d+) \| `(MAX_\w+)` \| (E\d+) \|$", PAGE, re.MULTILINE)
KNOWN = {name: value for name, value in vars(limits).items() if name.startswith("MAX_")}


@pytest.mark.parametrize(("value", "name", "code"), ROWS, ids=[r[1] for r in ROWS])
def test_a_limit_has_the_value_of_its_row(value: str, name: str, code: str) -> None:
    assert KNOWN[name] == int(value)
    assert code in CODES


def test_every_limit_is_on_the_page_once() -> None:
    assert sorted(re.findall(r"`(MAX_\w+)`", PAGE)) == sorted(KNOWN)


@pytest.mark.parametrize(("value", "name"), re.findall(r"(\d+)[^.;|()]*?\(`(MAX_\w+)`\)", PAGE))
def test_a_limit_of_messages_has_the_value_of_its_sentence(value: str, name: str) -> None:
    assert KNOWN[name] == int(value)
