"""Showing a line of a source on a terminal: control characters escaped, long lines cut, the caret in its place."""

from __future__ import annotations

import unicodedata

from specc.limits import MAX_COLUMNS

HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Categories that a terminal obeys, or does not show: controls, marks of direction, surrogates, separators of lines."""


def visible(text: str) -> str:
    """`text` with what a terminal would obey written as an escape; line ends and tabs too."""
    return text if text.isascii() and text.isprintable() else "".join(_shown(c) for c in text)


def _shown(char: str) -> str:
    return char.encode("unicode_escape").decode() if unicodedata.category(char) in HIDDEN else char


def cells(shown: str) -> int:
    """How many cells of a terminal `shown` takes."""
    return sum(_width(c) for c in shown)


def _width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def cut(text: str, most: int) -> str:
    """`text`, or its beginning and its end."""
    half = (most - 3) // 2
    return text if len(text) <= most else f"{text[:half]} … {text[-half:]}"


def excerpt(line: str, column: int, width: int) -> tuple[str, str]:
    """What is shown of `line`, and under it blanks and carets for the `width` characters at `column` (from 1). Tabs
    are shown as four blanks."""
    at = min(column - 1, len(line))
    low, high = _window(line, at)
    parts = [" " * 4 if c == "\t" else _shown(c) for c in line[low:high]]
    head, tail = "… " if low > 0 else "", " …" if high < len(line) else ""
    before = cells(head + "".join(parts[: at - low]))
    marked = cells("".join(parts[at - low : at - low + max(1, width)]))
    return head + "".join(parts) + tail, " " * before + "^" * max(1, marked)


def _window(line: str, at: int) -> tuple[int, int]:
    """The characters around `at` that are shown: all of a line that is short."""
    if len(line) <= MAX_COLUMNS:
        return 0, len(line)
    low = max(0, min(at - MAX_COLUMNS // 2, len(line) - MAX_COLUMNS))
    return low, low + MAX_COLUMNS
