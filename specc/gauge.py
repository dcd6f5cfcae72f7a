"""Measuring a text while it is read: words, brackets, names, depth."""

from __future__ import annotations

from collections.abc import Callable

from lark import Token, Tree

from specc.diagnostics import Collector, Diagnostic, SpecError
from specc.limits import MAX_DEPTH, MAX_NAME, MAX_TEXT, MAX_TOKENS
from specc.source import Source, Span

OPEN = ("LPAR", "LSQB", "BIG_OPEN")
CLOSE = ("RPAR", "RSQB", "RBRACE")
LONGEST_LETTER = 8
"""Characters of the longest Greek letter: a name of fewer than MAX_NAME / LONGEST_LETTER is not spelt out to be told
short."""


class Gauge:
    """Measures the tokens of a text as they come; `spelt` gives the length of a name with Greek letters spelt out.
    Raises SpecError for too many tokens, or too many open brackets; names that are too long go to `report`."""

    def __init__(self, source: Source, report: Collector, spelt: Callable[[str], int]) -> None:
        self.source, self.report, self.spelt = source, report, spelt
        self.count = self.open = 0

    def __call__(self, token: Token) -> None:
        self.count += 1
        if self.count > MAX_TOKENS:
            self._stop("E108", token, "the text is too long", f"at most {MAX_TOKENS} words and signs")
        if token.type in OPEN:
            self.open += 1
        elif token.type in CLOSE:
            self.open = max(0, self.open - 1)
        if self.open > MAX_DEPTH:
            self._stop("E107", token, "this is nested too deeply", f"at most {MAX_DEPTH} levels")
        if len(token) > MAX_NAME // LONGEST_LETTER and token.type not in ("NUMBER", "HEADER", "_NL"):
            self._measure(token)

    def _measure(self, token: Token) -> None:
        quoted = token.type == "STRING"
        length, most = (len(token), MAX_TEXT) if quoted else (self.spelt(str(token)), MAX_NAME)
        if length > most:
            what = "this text" if quoted else "this name"
            span = Span(self.source, token.line or 1, token.column or 1, len(token))
            self.report.error("E108", f"{what} is too long: {length} characters", span, f"at most {most}")

    def _stop(self, code: str, token: Token, message: str, help: str) -> None:
        self.report.error(code, message, Span(self.source, token.line or 1, token.column or 1, len(token)), help)
        self.report.finish()


def check_depth(tree: Tree[Token], source: Source) -> None:
    """Raises SpecError (E107) for a text that nests deeper than MAX_DEPTH, which later stages could not walk."""
    level: list[Tree[Token]] = [tree]
    place = Span(source, 1, 1)
    for _ in range(MAX_DEPTH):
        token = next((kid for node in level for kid in node.children if isinstance(kid, Token)), None)
        place = place if token is None else Span(source, token.line or 1, token.column or 1)
        level = [kid for node in level for kid in node.children if isinstance(kid, Tree)]
        if not level:
            return
    raise SpecError([Diagnostic("E107", "this is nested too deeply", place, f"at most {MAX_DEPTH} levels")])
