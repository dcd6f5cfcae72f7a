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


def escape(text: str) -> str:
    """`text` so that Markdown shows it as it stands."""
    return re.sub(r"([\\`*_\[<|~&])", r"\\\1", text)


def prose(text: str) -> str:
    """Our own sentence, in which names stand between backticks."""
    return "`".join(part if n % 2 else escape(part) for n, part in enumerate(text.split("`")))


def code(text: str) -> str:
    """`text` as code, in a table too."""
    ticks = "``" if "`" in text else "`"
    return f"{ticks}{text}{ticks}".replace("|", "\\|")


def plain(markdown: str) -> str:
    """What a reader of the rendered Markdown sees."""
    kept = re.sub(r"\\([\\`*_\[<|~&])", lambda m: chr(0xE000 + ord(m[1])), markdown)
    kept = kept.replace("`", "")
    return re.sub(r"[\ue000-\ue07f]", lambda m: chr(ord(m[0]) - 0xE000), kept)


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
