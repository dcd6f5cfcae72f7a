"""The rows of gpu_check.py: said one by one as they are known, and once more as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from gpu_cases import TARGETS, Case

RIVALS = ("eager", "compiled")
COLUMNS = [
    "spec", "kernel", "target", "case", "checked", "wrong", "worst", "µs", "GB/s", "TFLOP/s", *RIVALS,
]  # fmt: skip
LONGEST = 320
"""Characters of an error that are told: its beginning and its end."""

Task = tuple[int, str]
"""The number of a case, and a target; or, when timed, a target or a rival."""


@dataclass
class Row:
    """One line of the table. `used`: the worst distance from the middle of an interval over half its width.
    `untimed`: what kept the kernel from being timed."""

    case: Case
    target: str = TARGETS[0]
    checked: int = 0
    wrong: int = 0
    used: float = 0.0
    note: str = ""
    untimed: str = ""
    times: dict[str, float] = field(default_factory=dict)

    def fail(self, note: str) -> None:
        self.wrong, self.note = self.wrong + 1, self.note or note

    @property
    def name(self) -> str:
        return f"{self.case.spec} {self.case.kernel} {self.target} {self.case.label}"


def told(error: BaseException) -> str:
    """An error on one line."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"


def say(text: str) -> None:
    """What is printed stays, whatever becomes of this process."""
    print(text, flush=True)


def say_checked(row: Row) -> None:
    said = f"WRONG: {row.wrong} of {row.checked}; {row.note}" if row.wrong else f"right, {row.checked} checked"
    say(f"{row.name}: {said}, worst {row.used:.2f}")


def say_timed(case: Case, name: str, found: float | str) -> None:
    said = found if isinstance(found, str) else f"{found * 1e6:.1f} µs"
    say(f"{case.spec} {case.kernel} {case.label}, {name if name in TARGETS else f'torch {name}'}: {said}")


def traffic(case: Case) -> float:
    """Bytes of all operands and results."""
    read = sum(np.prod(o.shape) * _width(o.stored(case.dtype)) for o in case.operands)
    return float(read + sum(np.prod(r.shape) * _width(r.dtype) for r in case.results))


def _width(dtype: str) -> int:
    return torch.empty(0, dtype=getattr(torch, dtype)).element_size()


def line(row: Row) -> list[str]:
    """One line of the table. GB/s counts every operand and result once; `eager` and `compiled` are their times over
    the kernel's."""
    case, spent = row.case, row.times.get("specc")
    cells = [case.spec, case.kernel, row.target, case.label, str(row.checked), str(row.wrong), f"{row.used:.2f}"]
    if spent is None:
        return [*cells, *["-"] * 5]
    speed = [f"{spent * 1e6:.1f}", f"{traffic(case) / spent / 1e9:.0f}", f"{case.flops / spent / 1e12:.1f}"]
    others = [f"{row.times[n] / spent:.2f}" if n in row.times else "-" for n in RIVALS]
    return [*cells, *speed, *others]


def print_table(rows: Sequence[Row]) -> None:
    lines = [COLUMNS, *map(line, rows)]
    widths = [max(len(cells[n]) for cells in lines) for n in range(len(COLUMNS))]
    for cells, note in zip(lines, ["", *(r.note or r.untimed for r in rows)], strict=True):
        padded = [c.ljust(w) if n < 4 else c.rjust(w) for n, (c, w) in enumerate(zip(cells, widths, strict=True))]
        say("  ".join([*padded, note]).rstrip())


def finish(cases: Sequence[Case], tasks: Sequence[Task], rows: Mapping[Task, Row]) -> int:
    """Prints the table, then what was not checked and what failed, which so is the end of the output. The exit
    status."""
    print_table([rows[task] for task in tasks if task in rows])
    missing = [(cases[n], target) for n, target in tasks if (n, target) not in rows]
    for case, target in missing:
        say(f"not checked: {case.spec} {case.kernel} {target} {case.label}")
    untimed = [r for r in rows.values() if r.untimed]
    for row in untimed:
        say(f"not timed: {row.name}: {row.untimed}")
    wrong = [r for r in rows.values() if r.wrong]
    for row in wrong:
        say(f"wrong: {row.name}: {row.note}")
    say(f"{len(rows) - len(wrong)} right, {len(wrong)} wrong, {len(missing)} not checked")
    return 1 if wrong else 3 if missing else 4 if untimed else 0
