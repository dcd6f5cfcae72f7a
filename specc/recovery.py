"""Parsing on after a syntax error, so that one run reports all of them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput, UnexpectedToken


@dataclass(frozen=True)
class Resync:
    """Where a text can be understood again. `section`: the beginning of a section or item, at the beginning of a line,
    whose first token is one of `starts`. `by_line`: inside of a section, each line that is indented is one item."""

    section: re.Pattern[str]
    starts: tuple[str, ...]
    by_line: bool


class Reader:
    """One pass over a text. A line with an error is left out, and so is the rest of its section where nothing says that
    the next line is an item again: an error that only follows from another one is worse than one not reported."""

    def __init__(
        self,
        parser: Lark,
        text: str,
        resync: Resync,
        note: Callable[[UnexpectedInput], None],
        meter: Callable[[Token], None],
    ) -> None:
        self.text, self.resync, self.note, self.meter = text, resync, note, meter
        self.parser = parser.parse_interactive(text)
        self.state = self.parser.parser_state
        self.lexer: Any = self.parser.lexer_thread
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self.safe = self._stacks()
        self.fresh = True
        self.first: Token | None = None

    def tree(self) -> Tree[Token] | None:
        """The tree of the text, None where it has an error. What `meter` and `note` raise ends the pass."""
        clean = True
        while True:
            try:
                tree = self._read()
                return tree if clean else None
            except UnexpectedInput as error:
                clean = False
                error.interactive_parser = self.parser
                self.note(error)
                if not self._resume(error):
                    return None

    def _read(self) -> Any:
        last: Token | None = None
        for token in self.lexer.lex(self.state):
            self.meter(token)
            if self.fresh:
                self.safe, self.first, self.fresh = self._stacks(), None, False
            before = self._stacks() if not self.resync.by_line and token.type in self.resync.starts else None
            self.state.feed_token(token)
            if before is not None:
                self.safe, self.first = before, None
            self.first = self.first or token
            self.fresh = self.resync.by_line and token.type == "_NL"
            last = token
        end = Token.new_borrow_pos("$END", "", last) if last else Token("$END", "", 0, 1, 1)
        return self.state.feed_token(end, True)

    def _stacks(self) -> tuple[list[Any], list[Any]]:
        return list(self.state.state_stack), list(self.state.value_stack)

    def _resume(self, error: UnexpectedInput) -> bool:
        """Goes on behind an error; False where nothing is left."""
        if isinstance(error, UnexpectedToken) and error.token.type == "$END":
            return False
        at = self._next(error.pos_in_stream or 0)
        if at is None:
            return False
        self.state.state_stack[:], self.state.value_stack[:] = self.safe
        self.safe, self.fresh, self.first = self._stacks(), True, None
        line = bisect_right(self.starts, at)
        where = self.lexer.state.line_ctr
        where.char_pos, where.line, where.column, where.line_start_pos = at, line, 1, at
        return True

    def _next(self, at: int) -> int | None:
        """Where to go on after an error at `at`, a beginning of a line."""
        line = bisect_right(self.starts, at)
        start = self.starts[line - 1]
        first = self.first
        leads = not self.text[start:at].strip()
        if first is not None and first.line != line and self.resync.section.match(self.text, start):
            return start
        if not self.resync.by_line or first is None or first.column == 1 or self._heads(start, first):
            return self._section(at if leads and first is not None else at + 1)
        if leads and self._item(start, first):
            return start
        for begin in self.starts[line:]:
            if self._item(begin, first):
                return begin
        return None

    def _heads(self, start: int, first: Token) -> bool:
        """Whether the line of an error may be meant as the head of a section: one of its words, or a word alone."""
        alone = self.text[start : self.text.find("\n", start)].strip() == str(first)
        return alone or self.resync.section.match(str(first)) is not None

    def _section(self, at: int) -> int | None:
        found = self.resync.section.search(self.text, at)
        return None if found is None else found.start()

    def _item(self, start: int, first: Token) -> bool:
        """Whether the line at `start` begins an item as `first` does, or a section."""
        end = self.text.find("\n", start)
        line = self.text[start:end].strip()
        row = first.type == "VBAR"
        return bool(self.resync.section.match(self.text, start)) or (bool(line) and row == line.startswith("|"))
