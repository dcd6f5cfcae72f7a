"""Source texts and places in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """A text and the name under which messages speak of it."""

    name: str
    text: str

    @staticmethod
    def read(path: Path) -> Source:
        """Reads a UTF-8 file, with or without a byte order mark. Raises OSError or UnicodeDecodeError."""
        return Source(str(path), path.read_text(encoding="utf-8-sig"))

    def line(self, number: int) -> str:
        """The text of line `number`, counted from 1, without its newline."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


@dataclass(frozen=True)
class Span:
    """Half-open place in a source: line and column count from 1, `width` in characters."""

    source: Source
    line: int
    column: int
    width: int = 1

    def __repr__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"
