"""Generated text as a formatter leaves it: long calls broken one argument a line, long paragraphs filled."""

from __future__ import annotations

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
