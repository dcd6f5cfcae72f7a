"""What commands share: exit statuses, JSON, errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from math import isfinite

from specc.diagnostics import Diagnostic, SpecError, render_all

OK, FAILED, BAD_INPUT = 0, 1, 2


def print_json(value: object) -> None:
    """JSON in which a terminal finds nothing to obey: such characters are escaped, as JSON does it. Numbers that it has
    no form for are words."""
    text = json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False)
    print("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def _finite(value: object) -> object:
    match value:
        case dict():
            return {name: _finite(one) for name, one in value.items()}
        case list() | tuple():
            return [_finite(one) for one in value]
        case float() if not isfinite(value):
            return str(value)
    return value


def print_errors(error: SpecError, as_json: bool) -> None:
    """Diagnostics on the standard error; as JSON on the standard output, where a program reads them."""
    if as_json:
        print_json({"ok": False, "errors": [diagnostic_values(d) for d in error.diagnostics]})
        return
    print(render_all(error.diagnostics), file=sys.stderr)


def print_warnings(warnings: Sequence[Diagnostic]) -> None:
    """The first of them on the standard error, so that a report stays clean."""
    if warnings:
        print(render_all(warnings), file=sys.stderr)


def diagnostic_values(diagnostic: Diagnostic) -> dict[str, object]:
    place = diagnostic.span
    where = {} if place is None else {"file": place.source.name, "line": place.line, "column": place.column}
    return {"code": diagnostic.code, "message": diagnostic.message, **where, "help": diagnostic.help}


def count(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
