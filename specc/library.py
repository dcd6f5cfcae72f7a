"""Loading op libraries: the shipped one, and a user's own beside it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from specc.diagnostics import Diagnostic, SpecError
from specc.limits import MAX_USED_BYTES
from specc.ops import Library
from specc.parse import parse_ops
from specc.resources import shipped
from specc.source import Source, Span
from specc.syntax import OpsFile
from specc.typecheck.ops import check_library


@cache
def _shipped_files() -> tuple[OpsFile, ...]:
    paths = sorted(shipped("specs").joinpath("ops").glob("*.ops"))
    return tuple(parse_ops(Source(f"specs/ops/{p.name}", p.read_text(encoding="utf-8"))) for p in paths)


@cache
def _shipped_library() -> Library:
    return check_library(_shipped_files())


def load_library(extra: Sequence[Path] = ()) -> Library:
    """The shipped ops together with those of the files in `extra`. Raises SpecError, OSError, TooLong."""
    if not extra:
        return _shipped_library()
    texts = [Source.read(p) for p in extra]
    size = sum(len(t.text.encode()) for t in texts)
    if size > MAX_USED_BYTES:
        place, help_ = Span(texts[-1], 1, 1), f"at most {MAX_USED_BYTES}"
        raise SpecError([Diagnostic("E108", f"the op libraries in use have {size} bytes", place, help_)])
    return check_library((*_shipped_files(), *map(parse_ops, texts)))
