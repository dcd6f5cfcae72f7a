"""Making a failing case small."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from tests.fuzz.cases import Case

PATIENCE = 40.0
"""Seconds for one case."""


def reduce_case(case: Case, fails: Callable[[Case], bool]) -> Case:
    """`case` without lines, and then bytes, that it fails without; or, as far as PATIENCE goes, nearly so."""
    end = time.monotonic() + PATIENCE
    for name in case.files:
        if len(case.files) > 1:
            fewer = replace(case, files={n: d for n, d in case.files.items() if n != name})
            case = fewer if fails(fewer) else case
    for name in case.files:
        for separator in (b"\n", b" ", b""):
            case = _shorter(case, name, separator, fails, end)
    return case


def _shorter(case: Case, name: str, separator: bytes, fails: Callable[[Case], bool], end: float) -> Case:
    """Drops runs of parts of one file, long runs first."""
    data = case.files[name]
    parts = data.split(separator) if separator else [data[i : i + 1] for i in range(len(data))]
    size = max(1, len(parts) // 2)
    while parts and time.monotonic() < end:
        at, dropped = 0, False
        while at < len(parts) and time.monotonic() < end:
            fewer = parts[:at] + parts[at + size :]
            tried = replace(case, files=case.files | {name: separator.join(fewer)})
            if fails(tried):
                case, parts, dropped = tried, fewer, True
            else:
                at += size
        if not dropped:
            if size == 1:
                break
            size //= 2
    return case
