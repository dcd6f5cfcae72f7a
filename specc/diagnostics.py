"""One form for every error a user can cause: place, code, message, caret, expectation, suggestion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from specc.echo import cut, excerpt, visible
from specc.limits import MAX_ERRORS, MAX_MESSAGE, MAX_SHOWN
from specc.near import closest
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
        message = cut(visible(self.message), MAX_MESSAGE)
        tail = [f"  help: {cut(visible(self.help), MAX_MESSAGE)}"] if self.help else []
        if self.span is None:
            return "\n".join([f"{kind}[{self.code}]: {message}", *tail])
        gutter = f"{self.span.line:>5} | "
        text, carets = excerpt(self.span.source.line(self.span.line), self.span.column, self.span.width)
        body = [gutter + text, " " * (len(gutter) - 2) + "| " + carets]
        return "\n".join([f"{visible(repr(self.span))}: {kind}[{self.code}]: {message}", *body, *tail])


class SpecError(Exception):
    """All mistakes of one stage, in source order."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=_place))
        super().__init__(render_all(self.diagnostics))


def cannot_write(error: OSError, what: str, help: str = "") -> SpecError:
    """E502 for the file that `error` names, or else for `what`."""
    named = what if error.filename is None else f"`{error.filename}`"
    reason = error.strerror or str(error) or type(error).__name__
    return SpecError([Diagnostic("E502", f"cannot write {named}: {reason}", None, help)])


@contextmanager
def writing(what: str, help: str) -> Iterator[None]:
    """OSErrors become SpecErrors (E502)."""
    try:
        yield
    except OSError as error:
        raise cannot_write(error, what, help) from error


class Stop(SpecError):
    """What a stage has found when it gives up."""


def render_all(diagnostics: Sequence[Diagnostic]) -> str:
    """The first mistakes, and how many there are beside."""
    shown = [d.render() for d in diagnostics[:MAX_SHOWN]]
    more = len(diagnostics) - len(shown)
    least = "at least " if len(diagnostics) == MAX_ERRORS else ""
    return "\n".join([*shown, f"… and {least}{more} more"] if more else shown)


def _place(diagnostic: Diagnostic) -> tuple[str, int, int, str]:
    span = diagnostic.span
    return ("", 0, 0, diagnostic.code) if span is None else (span.source.name, span.line, span.column, diagnostic.code)


class Collector:
    """Gathers the diagnostics of a stage; `finish` raises them together."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self._seen: set[tuple[str, str, Span | None]] = set()

    def error(self, code: str, message: str, span: Span | None, help: str = "") -> None:
        """Notes a mistake once. Raises Stop for the last one that is taken."""
        if (code, message, span) in self._seen:
            return
        self._seen.add((code, message, span))
        self.found.append(Diagnostic(code, message, span, help))
        if len(self.found) >= MAX_ERRORS:
            raise Stop(self.found)

    def take(self, error: SpecError) -> None:
        """Notes what another stage, or a part of this one, has found."""
        for d in error.diagnostics:
            self.error(d.code, d.message, d.span, d.help)

    def finish(self) -> None:
        """Raises SpecError when anything was found."""
        if self.found:
            raise SpecError(self.found)


def nearest(name: str, known: Iterable[str]) -> str:
    """A suggestion sentence for a misspelt `name`, or the sorted names when none is near and they are few."""
    options = sorted(dict.fromkeys(known))
    close = closest(name, options)
    if close is not None:
        return f"did you mean `{close}`?"
    if 0 < len(options) <= 12:
        return "known here: " + ", ".join(f"`{o}`" for o in options)
    return ""
