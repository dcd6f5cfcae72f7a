"""Counterexamples as files that `specc eval` replays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from specc.archive import write_arrays
from specc.evidence.case import Case
from specc.evidence.check import Outcome, Report
from specc.evidence.draw import draw

CASE = "case"
"""Entry of the file that holds the case as JSON, also where an operand is called so: they are drawn from it again."""
LARGEST = 1 << 24
"""Elements up to which an operand is stored as well, for a reader without specc."""


def file_name(report: Report) -> str:
    """`attn_core_sliding_decode.triton.npz`."""
    return f"{re.sub(r'[^A-Za-z0-9_]', '_', report.kernel.name)}.{report.target}.npz"


def save(report: Report, outcome: Outcome, folder: Path) -> Path:
    """Writes the failing case and its operands. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name(report)
    operands = {n: d.exact for n, d in draw(report.kernel, outcome.case).items() if d.exact.size <= LARGEST}
    with path.open("wb") as file:
        write_arrays(file, {**operands, CASE: np.array(outcome.case.to_json())}, packed=True)
    return path


def case_of(arrays: Mapping[str, npt.NDArray[Any]]) -> Case | None:
    """The case in a counterexample file, or None for a plain file of operands. Raises ValueError for a broken one."""
    found = arrays.get(CASE)
    return None if found is None or found.dtype.kind != "U" else Case.from_json(str(found))
