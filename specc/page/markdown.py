"""Texts and tables in Markdown, and the same as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Cells are Markdown."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


ESCAPED = r"\\`*_\[<|~&"
"""Characters with a meaning of their own anywhere in a text."""
OPENING = re.compile(r"( *)(?:([#>+=-])|(\d+)([.)]))")
"""What makes a heading, a quotation or a list of a line that begins with it."""


def escape(text: str) -> str:
    """`text` so that Markdown shows it as it stands, in a cell of a table or inside a line."""
    return re.sub(rf"([{ESCAPED}])", r"\\\1", text)


def paragraph(text: str) -> str:
    """`text` so that Markdown shows it as it stands, on a line of its own."""
    shown = escape(text)
    found = OPENING.match(shown)
    return shown if found is None else f"{shown[: found.end() - 1]}\\{shown[found.end() - 1 :]}"


def prose(text: str) -> str:
    """A sentence in which names stand between backticks."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return "`".join(part.replace("|", "\\|") if n % 2 else escape(part) for n, part in enumerate(parts))


def code(text: str) -> str:
    """`text` as code, in a table too."""
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    pad = " " if text[:1] == "`" or text[-1:] == "`" or text[:1] == text[-1:] == " " else ""
    return f"{ticks}{pad}{text}{pad}{ticks}".replace("|", "\\|")


def plain(markdown: str) -> str:
    """What a reader of the rendered Markdown sees."""
    return re.sub(rf"\\([{ESCAPED}#>+=.)-])|(`+)(.+?)(?<!`)\2(?!`)", _plain, markdown)


def _plain(found: re.Match[str]) -> str:
    char, _, text = found.groups()
    if char is not None:
        return str(char)
    padded = len(text) > 2 and text[0] == text[-1] == " "
    return (text[1:-1] if padded else text).replace("\\|", "|")


def table_markdown(table: Table) -> list[str]:
    return ["", *(f"| {' | '.join(row)} |" for row in (table.header, ("-",) * len(table.header), *table.rows)), ""]


def table_text(table: Table) -> list[str]:
    """Columns padded to one width; the last one runs free."""
    rows = [tuple(plain(cell) for cell in row) for row in (table.header, *table.rows)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(table.header))]
    lines = [_padded(row, widths) for row in rows]
    head = [lines[0], "-" * min(max(map(len, lines)), 100)] if any(table.header) else []
    return ["", *head, *lines[1:], ""]


def _padded(row: Sequence[str], widths: Iterable[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
