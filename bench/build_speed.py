"""How fast and how large a build is, as ratios to the time that Python needs for importing numpy, lark and jinja2.

    python bench/build_speed.py [SPEC...] [--rounds 9]

Every round measures the import and each build one after the other; the table shows medians of the ratios of a round,
so that a slow or shared machine slows both sides. Limits that a row must keep stand beside it; exit status 1 if one is
broken. Peak memory is that of the build's process. Every side has its byte code, as packages have that pip installed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from statistics import median

GEMMA = Path(__file__).parent.parent / "specs" / "gemma4.spec"
IMPORTS = (sys.executable, "-c", "import numpy, lark, jinja2")
MANY = 600
"""Layers of the long copy of gemma4."""


@dataclass(frozen=True)
class Row:
    """A ratio or a size, what it must not exceed, and whether it is a size in MB."""

    name: str
    value: float
    limit: float
    unit: str = "x"

    @property
    def good(self) -> bool:
        return self.value <= self.limit

    def __str__(self) -> str:
        verdict = "" if self.good else "  TOO MUCH"
        return f"{self.name:44} {self.value:8.2f} {self.unit:2}  limit {self.limit:g}{verdict}"


def run(command: Sequence[str], byte_code: Path) -> tuple[float, float]:
    """Seconds and peak memory in MB of a process. Raises CalledProcessError when it fails."""
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(byte_code)
    start = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            print(said.read().decode(errors="replace"), file=sys.stderr)
            raise subprocess.CalledProcessError(process.returncode, command)
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def builder(specs: Sequence[Path], out: Path) -> Callable[[], tuple[float, float]]:
    command = (sys.executable, "-m", "specc", "build", *map(str, specs), "--out", str(out))
    return lambda: run(command, out.parent / "byte-code")


def long_copy(folder: Path) -> Path:
    """gemma4 with MANY layers in place of 60."""
    text, count = re.subn(r"^layers 60\b", f"layers {MANY}", GEMMA.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert count == 1
    path = folder / "long.spec"
    path.write_text(text, encoding="utf-8")
    return path


def measure(specs: Sequence[Path], rounds: int, folder: Path) -> list[Row]:
    out = folder / "out"
    cold, again = builder([GEMMA], out), builder([GEMMA], out)
    long, every = builder([long_copy(folder)], out), builder(specs, out)
    ratios: dict[str, list[float]] = {"cold": [], "unchanged": [], "long": [], "all": []}
    peak = 0.0
    every(), run(IMPORTS, folder / "byte-code")
    for _ in range(rounds):
        base, _ = run(IMPORTS, folder / "byte-code")
        rmtree(out, ignore_errors=True)
        seconds, memory = cold()
        ratios["cold"].append(seconds / base)
        ratios["unchanged"].append(again()[0] / base)
        rmtree(out)
        ratios["long"].append(long()[0] / seconds)
        peak = max(peak, memory)
        if len(specs) > 1:
            rmtree(out)
            ratios["all"].append(every()[0] / base)
    rows = [
        Row("cold full build of gemma4", median(ratios["cold"]), 8),
        Row("unchanged rebuild of gemma4", median(ratios["unchanged"]), 2),
        Row(f"{MANY} layers against 60", median(ratios["long"]), 1.2),
        Row("peak memory of a cold build", peak, 150, "MB"),
    ]
    return rows + ([Row(f"cold build of {len(specs)} specs", median(ratios["all"]), 20)] if len(specs) > 1 else [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("specs", nargs="*", type=Path, help="also build these together; several")
    parser.add_argument("--rounds", type=int, default=9)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(chosen.specs, chosen.rounds, Path(folder))
    print("\n".join(map(str, rows)))
    return 0 if all(row.good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
