"""Generated text as a formatter leaves it: long calls broken one argument a line, long paragraphs filled."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

LIMIT = 110
"""Longest line of a generated file."""


def call(head: str, items: Sequence[str], indent: int = 0, tail: str = "") -> list[str]:
    """`head(items)tail` on one line if it fits, else with one item a line. Lines have no indentation of their own
    beyond that; `indent` is what the template puts before them."""
    line = f"{head}({', '.join(items)}){tail}"
    if len(line) + indent <= LIMIT:
        return [line]
    return [f"{head}(", *(f"    {item}," for item in items), f"){tail}"]


def paragraph(text: str, indent: int = 0, hanging: str = "    ") -> list[str]:
    """A formula or sentence in lines that fit; what follows the first is set in by `hanging`."""
    width = LIMIT - indent
    return textwrap.wrap(
        text, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
    )  # fmt: skip


def break_lines(text: str) -> str:
    """The same text with lines of C++ that are too long broken where a space stands, behind a comma or operator."""
    return "".join(f"{part}\n" for line in text.splitlines() for part in _broken(line))


def _broken(line: str) -> list[str]:
    if len(line) <= LIMIT or line.lstrip().startswith(("//", "/*", "*")):
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    glued = _INSIDE.sub("\0", line.strip())
    parts = textwrap.wrap(glued, LIMIT - len(indent), break_long_words=False, break_on_hyphens=False)
    first, *rest = (part.replace("\0", " ") for part in parts)
    return [indent[4:] + first, *(indent + part for part in rest)]


_INSIDE = re.compile(r"(?<![,;])(?<! [-+*/?:=<>])(?<! (?:&&|[|][|]|>=|<=)) ")
"""Spaces at which no line is broken: those behind neither a comma nor an operator."""
