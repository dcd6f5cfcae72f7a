"""Echoed lines: short, harmless, and with the caret under the character that is meant."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specc.diagnostics import Diagnostic, SpecError, render_all
from specc.echo import HIDDEN, cells, cut, excerpt, visible
from specc.limits import MAX_COLUMNS, MAX_MESSAGE, MAX_SHOWN
from specc.source import Source, Span

LINES = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1, max_size=400)


def under(shown: str, carets: str) -> str:
    """What stands above the carets."""
    start, end, at, found = cells(carets.replace("^", "")), cells(carets), 0, ""
    for char in shown:
        if start <= at < end:
            found += char
        at += cells(char)
    return found


@pytest.mark.parametrize(
    ("line", "column", "width", "marked"),
    [
        ("abc", 2, 1, "b"),
        ("\tabc", 3, 2, "bc"),
        ("\t", 1, 1, "    "),
        ("中文字", 2, 1, "文"),
        ("e\u0301x = y", 7, 1, "y"),
        ("ＡＢ x", 4, 1, "x"),
        ("\x1b[31mred", 6, 3, "red"),
        ("a\u202eb", 3, 1, "b"),
        ("a\u202eb", 2, 1, "\\u202e"),
        ("a\x00b", 2, 1, "\\x00"),
        ("a" * 5_000 + "b" + "c" * 5_000, 5_001, 1, "b"),
        ("a" * 5_000 + "b", 5_001, 1, "b"),
        ("b" + "a" * 5_000, 1, 1, "b"),
    ],
)
def test_the_caret_stands_under_what_is_meant(line: str, column: int, width: int, marked: str) -> None:
    assert under(*excerpt(line, column, width)) == marked


def test_a_caret_behind_the_end_of_a_line_stands_there() -> None:
    assert excerpt("ab", 3, 1) == ("ab", "  ^")


@given(LINES, st.data())
def test_every_character_can_be_pointed_at(line: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(line) - 1))
    shown, carets = excerpt(line, at + 1, 1)
    char = "    " if line[at] == "\t" else visible(line[at])
    if cells(char):
        assert under(shown, carets).startswith(char)


@given(LINES, st.integers(1, 500), st.integers(1, 500))
def test_nothing_that_a_terminal_obeys_is_echoed(line: str, column: int, width: int) -> None:
    shown, carets = excerpt(line, column, width)
    assert not any(unicodedata.category(c) in HIDDEN for c in shown)
    assert len(line) <= MAX_COLUMNS or "…" in shown
    assert set(carets) <= {" ", "^"} and carets.endswith("^")


def test_a_long_line_is_cut_on_both_sides() -> None:
    shown, carets = excerpt("a" * 5_000_000, 2_500_000, 5_000_000)
    assert shown.startswith("… ") and shown.endswith(" …")
    assert cells(shown) <= MAX_COLUMNS + 4
    assert len(carets) <= MAX_COLUMNS + 4


@given(st.text())
def test_visible_text_is_kept(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    assert not text.isprintable() or visible(text) == text


def test_names_of_files_and_messages_are_escaped_and_cut() -> None:
    place = Span(Source("a\x1b[2J\u202e.spec", "x"), 1, 1)
    text = Diagnostic("E101", "b" * 10_000 + "\x1b", place, "c\nd").render()
    assert "\x1b" not in text and "\u202e" not in text
    assert r"a\x1b[2J\u202e.spec:1:1" in text
    assert len(text) < MAX_MESSAGE + 200
    assert r"c\nd" in text


def test_few_mistakes_are_all_printed() -> None:
    some = [Diagnostic("E101", f"m{n}", Span(Source("x", ""), n, 1)) for n in range(1, MAX_SHOWN + 2)]
    assert "more" not in render_all(some[:-1])
    assert render_all(some).endswith("… and 1 more")
    assert f"m{MAX_SHOWN + 1}" not in render_all(some)
    assert len(SpecError(some).diagnostics) == MAX_SHOWN + 1
    assert cut("abc", 3) == "abc"
