"""What a text may not hold: characters that nobody sees, that reorder what is shown, or that pass for others.

Everything that a user writes comes through `clean` before it is parsed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

from specc.diagnostics import Diagnostic, SpecError
from specc.limits import MAX_SHOWN
from specc.source import Source, Span

PLAIN = re.compile(r"[^\n\t -~]+")
WORD = re.compile(r"[\w.]+")
BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Characters without a shape that Unicode counts among letters, marks and symbols."""
REFUSED = {
    "Cc": "a control character",
    "Cf": "an invisible character, which may reorder what is shown",
    "Cs": "half a character",
    "Co": "a character without a public meaning",
    "Cn": "no assigned character",
    "Zl": "a line end that is none everywhere",
    "Zp": "a line end that is none everywhere",
    "Zs": "a space that passes for a plain one",
}
LOOKALIKE = ("CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC", "GEORGIAN", "LISU", "FULLWIDTH")
"""Alphabets with letters of the same shape as Latin ones."""


def clean(source: Source) -> Source:
    """The source itself. Raises SpecError (E111, E112, E113) for what must not be in it."""
    if not (source.text.isascii() and PLAIN.search(source.text) is None):
        found = [d for n, line in enumerate(source.text.split("\n"), 1) for d in _line(source, n, line)]
        if found:
            raise SpecError(found[: MAX_SHOWN + 1])
    return source


def fault(text: str) -> str | None:
    """What is wrong with a short text, such as a name given on a command line."""
    return next((d.message for d in _line(Source("", text), 1, text)), None)


def named(char: str) -> str:
    """`U+202E RIGHT-TO-LEFT OVERRIDE`."""
    return f"U+{ord(char):04X} {unicodedata.name(char, CONTROLS.get(char, ''))}".rstrip()


CONTROLS = {"\0": "NULL", "\b": "BACKSPACE", "\r": "CARRIAGE RETURN", "\x1b": "ESCAPE", "\x7f": "DELETE"}


def _line(source: Source, number: int, line: str) -> Iterator[Diagnostic]:
    if line.isascii() and PLAIN.search(line) is None:
        return
    for run in PLAIN.finditer(line):
        for n, char in enumerate(run[0], run.start()):
            why = _refused(char)
            if why is not None:
                yield Diagnostic("E111", f"{named(char)} is {why}", Span(source, number, n + 1), "remove it")
    yield from _composed(source, number, line)
    for word in WORD.finditer(line):
        odd = None if word[0].isascii() else _odd_letter(word[0])
        if odd is not None:
            span = Span(source, number, word.start() + odd + 1)
            message = f"{named(word[0][odd])} stands among Latin letters in `{word[0]}`"
            yield Diagnostic("E113", message, span, "a word is written in one alphabet")


@cache
def _refused(char: str) -> str | None:
    return "an invisible character" if BLANK.match(char) else REFUSED.get(unicodedata.category(char))


def _composed(source: Source, number: int, line: str) -> Iterator[Diagnostic]:
    """One text is written in one way: letters with their marks as one character, no second code for a letter."""
    if unicodedata.is_normalized("NFC", line):
        return
    wanted = unicodedata.normalize("NFC", line)
    place = next((n for n, (a, b) in enumerate(zip(line, wanted, strict=False)) if a != b), len(wanted) - 1)
    message = f"{named(line[place])} is written in another way than usual"
    yield Diagnostic("E112", message, Span(source, number, place + 1), f"write {named(wanted[place])} (form NFC)")


def _odd_letter(word: str) -> int | None:
    """Where in a word that has Latin letters one of another alphabet stands that looks like them."""
    alphabets = [unicodedata.name(c, "").split(" ")[0] if c.isalpha() else "" for c in word]
    if "LATIN" not in alphabets:
        return None
    return next((n for n, a in enumerate(alphabets) if a in LOOKALIKE), None)
