"""Loading op libraries: the shipped one, and a user's own beside it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from specc.diagnostics import Collector
from specc.limits import MAX_USED_BYTES
from specc.ops import Library
from specc.parse import parse_ops
from specc.resources import shipped
from specc.source import Source, Span
from specc.syntax import OpsFile
from specc.typecheck.ops import check_library
from specc.typecheck.values import attempt


@cache
def _shipped_files() -> tuple[OpsFile, ...]:
    paths = sorted(shipped("specs").joinpath("ops").glob("*.ops"))
    return tuple(parse_ops(Source(f"specs/ops/{p.name}", p.read_text(encoding="utf-8"))) for p in paths)


@cache
def _shipped_library() -> Library:
    return check_library(_shipped_files())


def load_library(extra: Sequence[Path] = ()) -> Library:
    """The shipped ops together with those of the files in `extra`. Raises SpecError, OSError, TooLong."""
    return library_of([Source.read(p) for p in extra], Collector())


def library_of(texts: Sequence[Source], report: Collector) -> Library:
    """The shipped ops together with those of op libraries as written. Raises SpecError: with the mistakes of all texts,
    and those in `report`."""
    size = sum(len(t.text.encode()) for t in texts)
    if size > MAX_USED_BYTES:
        place, help_ = Span(texts[-1], 1, 1), f"at most {MAX_USED_BYTES}"
        report.error("E108", f"the op libraries in use have {size} bytes", place, help_)
        report.finish()
    own = [attempt(report, parse_ops, t) for t in texts]
    report.finish()
    if not own:
        return _shipped_library()
    return check_library((*_shipped_files(), *(f for f in own if f is not None)))
