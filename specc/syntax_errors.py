"""What a syntax error is called: what stands there, what was expected, and the likely mistakes by name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from lark import UnexpectedInput
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from specc.diagnostics import Diagnostic, nearest
from specc.echo import cut
from specc.near import meant_reduction
from specc.source import Source, Span

SHOWN_TOKEN = 60
"""Characters of a wrong token that a message repeats."""


def syntax_error(error: UnexpectedInput, source: Source) -> Diagnostic:
    span = Span(source, max(1, error.line), max(1, error.column))
    arrow = _arrow(span)
    if arrow is not None:
        return arrow
    match error:
        case UnexpectedCharacters() if error.char == '"':
            return _quoted(span)
        case UnexpectedCharacters():
            # The lexer lets the end of a line through everywhere.
            allowed = {t for t in error.allowed or () if t != "_NL"}
            return Diagnostic("E101", f"unexpected character {_character(error.char)}", span, _expected(allowed))
        case UnexpectedToken() if error.token.type == "$END":
            return Diagnostic("E102", "the text ends too early", _end(source), _expected(error.accepts or ()))
        case UnexpectedToken():
            found = str(error.token)
            span = Span(source, max(1, error.line), max(1, error.column), max(1, len(found.split("\n")[0])))
            expected = error.accepts or error.expected
            hint = nearest(found, [w for t in expected for w in TERMINALS.get(t, ())]) if found.isalpha() else ""
            help_ = hint if hint.startswith("did") else _expected(expected)
            shown = cut(found.strip(), SHOWN_TOKEN)
            return Diagnostic("E101", f"unexpected {shown!r}" if shown else "unexpected end of line", span, help_)
    return Diagnostic("E102", "the text ends too early", _end(source))


def _quoted(span: Span) -> Diagnostic:
    """The mistake of a `"` that begins no text here."""
    rest = span.source.line(span.line)[span.column - 1 :]
    closed = re.match(r'"(?:[^"\\]|\\.)*"', rest)
    wrong = re.match(r'"(?:[^"\\]|\\["\\])*(?=\\)', rest)
    if closed is None:
        return Diagnostic("E101", "this quoted text has no end", span, 'it ends on its line, with a `"`')
    if wrong is not None:
        place = Span(span.source, span.line, span.column + wrong.end(), 2)
        return Diagnostic("E101", "a `\\` that means nothing", place, 'a quoted text has `\\\\` and `\\"`')
    help_ = "an op library has no quoted texts: write the word alone"
    return Diagnostic("E101", "unexpected quoted text", replace(span, width=closed.end()), help_)


ARROWS = re.compile(r"=+>|--+>|[→⇒⟶⟹➔➜]")
"""What is written for `->` at times."""


def _arrow(span: Span) -> Diagnostic | None:
    """The mistake at `span` where another arrow than `->` stands there."""
    for found in ARROWS.finditer(span.source.line(span.line)):
        if found.start() < span.column <= found.end():
            place = Span(span.source, span.line, found.start() + 1, len(found[0]))
            return Diagnostic("E101", f"unexpected {found[0]!r}", place, "write `->`")
    return None


def _character(char: str) -> str:
    """A character and, where it may look like another one, its name."""
    name = "" if char.isascii() else unicodedata.name(char, f"U+{ord(char):04X}")
    return f"{char!r}, {name}" if name else repr(char)


def _end(source: Source) -> Span:
    lines = source.text.rstrip().split("\n")
    return Span(source, len(lines), len(lines[-1]) + 1)


TERMINALS: dict[str, tuple[str, ...]] = {}
"""Readable spellings of terminals, filled by the parsers that define them."""

READABLE = {
    "NAME": "a name", "NUMBER": "a number", "COMPARE": "a comparison", "MUL": "`·`, `/`, `//` or `%`", "PLUS": "`+`",
    "MINUS": "`-`", "BIG": "`Σ_i`", "BIG_OPEN": "`Σ_{i < n}`", "SOFTMAX": "`softmax_l(…)`", "SQRT": "`√`",
    "LPAR": "`(`", "RPAR": "`)`", "LSQB": "`[`", "RSQB": "`]`", "COMMA": "`,`", "EQUAL": "`=`", "SUPERSCRIPT": "`²`",
    "CIRCUMFLEX": "`^`", "DOTS": "`..`", "SEMICOLON": "`;`", "VBAR": "`|`", "COLON": "`:`", "QMARK": "`?`",
    "COLON_INDEX": "`: index`", "OPTIONAL": "`?`", "KIND": "`nat`, `real`, `flag` or `label`", "RBRACE": "`}`",
    "_NL": "the end of the line", "STRING": "a quoted text", "$END": "the end of the text",
}  # fmt: skip


def _expected(terminals: Sequence[str] | set[str]) -> str:
    names = sorted({READABLE.get(t, f"`{t.lower().lstrip('_')}`") for t in terminals if not t.startswith("__")})
    return "expected " + ", ".join(names) if 0 < len(names) <= 12 else ""


BEGINNINGS = re.compile(r"\s*(def|op|let|rec|require|prefill)\b")
"""Words with which an item or a statement of an op library begins."""
OPEN = re.compile(r"[-+−·*×/%^=<>≤≥≠,(\[|√]$|\b(?:and|or|not|if|then|else)$")
"""The end of a line after which a formula goes on."""
CONSTANT = re.compile(r":\s*(nat|real|flag|label)\b")
WORD = re.compile(r"(?<![\w.])\w+(?=[ \t]+[\w√])")


def ops_mistake(found: Diagnostic) -> Diagnostic | None:
    """A clearer message for a syntax error in an op library that is seen only where the next line begins, or comes from
    an unknown reduction."""
    if found.code != "E101" or found.span is None:
        return None
    source, line = found.span.source, found.span.line
    if CONSTANT.match(source.line(line), found.span.column - 1):
        return replace(found, help="constants stand behind the operands, after a `;`")
    before = _code(source, line)[: found.span.column - 1]
    above = next((n for n in range(line - 1, 0, -1) if _code(source, n)), 0)
    blamed = line if before.strip() else above
    for word in WORD.finditer(_code(source, blamed)):
        meant = meant_reduction(word[0])
        if meant is not None:
            span = Span(source, blamed, word.start() + 1, len(word[0]))
            return Diagnostic("E101", f"unknown reduction `{word[0]}`", span, meant[1])
    open_ = OPEN.search(_code(source, above))
    if above and BEGINNINGS.match(source.line(line)) and (open_ or not before.strip()):
        span = Span(source, above, len(_code(source, above)) + 1)
        help_ = f"something follows `{open_[0]}`" if open_ else found.help
        return Diagnostic("E101", "unexpected end of line", span, help_)
    return None


def _code(source: Source, line: int) -> str:
    """A line of an op library without its comment."""
    return source.line(line).partition("#")[0].rstrip()
