"""One form for every error a user can cause: place, code, message, caret, expectation, suggestion."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from specc.source import Span


@dataclass(frozen=True)
class Diagnostic:
    """One mistake. `code` is stable (docs list it; W… is a warning); `help` says what was expected or what to do."""

    code: str
    message: str
    span: Span | None = None
    help: str = ""

    def render(self) -> str:
        """The message as a terminal shows it: `file:line:col: error[CODE]: …` with the line and a caret."""
        kind = "warning" if self.code.startswith("W") else "error"
        if self.span is None:
            head, body = f"{kind}[{self.code}]: {self.message}", []
        else:
            head = f"{self.span!r}: {kind}[{self.code}]: {self.message}"
            text = self.span.source.line(self.span.line)
            gutter = f"{self.span.line:>5} | "
            pad = "".join("\t" if c == "\t" else " " for c in text[: self.span.column - 1])
            carets = "^" * max(1, min(self.span.width, max(1, len(text) - self.span.column + 1)))
            body = [gutter + text, " " * (len(gutter) - 2) + "| " + pad + carets]
        tail = [f"  help: {self.help}"] if self.help else []
        return "\n".join([head, *body, *tail])


class SpecError(Exception):
    """All mistakes of one stage, in source order."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=_place))
        super().__init__("\n".join(d.render() for d in self.diagnostics))


def _place(diagnostic: Diagnostic) -> tuple[str, int, int, str]:
    span = diagnostic.span
    return ("", 0, 0, diagnostic.code) if span is None else (span.source.name, span.line, span.column, diagnostic.code)


class Collector:
    """Gathers the diagnostics of a stage; `finish` raises them together."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    def error(self, code: str, message: str, span: Span | None, help: str = "") -> None:
        if not any((d.code, d.message, d.span) == (code, message, span) for d in self.found):
            self.found.append(Diagnostic(code, message, span, help))

    def finish(self) -> None:
        """Raises SpecError when anything was found."""
        if self.found:
            raise SpecError(self.found)


def nearest(name: str, known: Iterable[str]) -> str:
    """A suggestion sentence for a misspelt `name`, or the sorted names when none is near and they are few."""
    options = sorted(dict.fromkeys(known))
    close = difflib.get_close_matches(name, options, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    if 0 < len(options) <= 12:
        return "known here: " + ", ".join(f"`{o}`" for o in options)
    return ""
