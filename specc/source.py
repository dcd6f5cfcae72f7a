"""Source texts and places in them."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from specc.limits import MAX_BYTES


class TooLong(Exception):
    """A file has more than MAX_BYTES."""


@dataclass(frozen=True)
class Source:
    """A text and the name under which messages speak of it."""

    name: str
    text: str

    @staticmethod
    def read(path: Path) -> Source:
        """Reads a UTF-8 file, with or without a byte order mark. Raises OSError (also for what is no file of its own:
        a folder, a pipe, a device), TooLong or UnicodeDecodeError."""
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            mode = os.fstat(handle).st_mode
            if not stat.S_ISREG(mode):
                number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
                raise OSError(number, os.strerror(number) if stat.S_ISDIR(mode) else "not a file", str(path))
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise TooLong(path)
        return Source(str(path), data.decode("utf-8-sig").replace("\r\n", "\n"))

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines of the text, without their ends."""
        return tuple(line.removesuffix("\r") for line in self.text.split("\n"))

    def line(self, number: int) -> str:
        """The text of line `number`, counted from 1, without its end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""


@dataclass(frozen=True)
class Span:
    """Half-open place in a source: line and column count from 1, `width` in characters."""

    source: Source
    line: int
    column: int
    width: int = 1

    def part(self, number: int) -> Span:
        """The place of one of the names of the dotted name that stands here."""
        first = self.column - 1
        parts = self.source.line(self.line)[first : first + self.width].split(".")
        start = sum(len(part) + 1 for part in parts[:number])
        return Span(self.source, self.line, self.column + start, len(parts[number]))

    def __repr__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"
