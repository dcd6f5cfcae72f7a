"""Every mistake is told in one form, every code has an example, and the page shows them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specc.codes import CODES
from tests.diagnostics.examples import FILES, Example, all_examples, examples, printed_by
from tests.diagnostics.page import PAGE, page, shown

ROOT = Path(__file__).parents[2]
EXAMPLES = [pytest.param(e, id=f"{name}: {e.title}") for name in FILES for e in examples(name)]


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_mistake_is_printed_as_the_example_says(example: Example) -> None:
    assert printed_by(example) == example.printed


@pytest.mark.parametrize("example", [pytest.param(e, id=code) for code, e in sorted(shown().items())])
def test_the_repaired_form_is_free_of_mistakes(example: Example) -> None:
    assert printed_by(example, good=True) == ""


def test_every_code_has_an_example_and_every_example_a_listed_code() -> None:
    assert set(shown()) == set(CODES)
    assert {code for e in all_examples() for code in e.codes} == set(CODES)


def test_there_are_many_malformed_specs() -> None:
    assert len({e.edited() for e in all_examples() if e.edits}) >= 60


def test_a_message_has_its_form_and_names_nothing_of_this_machine() -> None:
    line = re.compile(r"([\w. /]+:\d+:\d+: )?(error|warning)\[[EW]\d{3}\]: .+| +\d+ \| .*| +\| *\^+|  help: .+")
    for example in all_examples():
        assert [s for s in example.printed.split("\n") if not line.fullmatch(s)] == [], example.title
        assert not re.search(r"/tmp|/home|/root|/usr", example.printed), example.title


def test_places_are_in_order() -> None:
    for example in all_examples():
        found = [(f, int(n), int(c)) for f, n, c in re.findall(r"^(\S+?):(\d+):(\d+): ", example.printed, re.MULTILINE)]
        assert found == sorted(found), example.title


def test_titles_tell_examples_apart() -> None:
    titles = [(name, e.title) for name in FILES for e in examples(name)]
    assert len(titles) == len(set(titles))


def test_every_code_in_the_package_is_listed_and_every_listed_code_is_used() -> None:
    used: set[str] = set()
    for path in sorted((ROOT / "specc").rglob("*.py")):
        if path.name != "codes.py":
            used |= set(re.findall(r'"([EW]\d{3})"', path.read_text(encoding="utf-8")))
    assert used == set(CODES)


def test_the_page_is_made_of_the_examples() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()
