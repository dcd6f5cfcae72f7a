"""Running specc in a process of its own, and what that took."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 2
"""Most processor time of a process that answers a bad input, its start included."""
START = 0.5
"""What the start takes of it, where one process answers many."""
PATIENCE = 20
"""Seconds after which a process is killed, however busy the machine."""
MEGABYTES = 300
LAUNCH = Path(__file__).parent / "launch.py"
CEILING = 2 << 30
"""Bytes of address space, so that a fault here does no harm to the machine."""


@dataclass(frozen=True)
class Answer:
    """What a process printed, and what it took: seconds of processor time, megabytes at its peak."""

    status: int
    out: str
    seconds: float
    megabytes: float


def answer(folder: Path, *arguments: str) -> Answer:
    """Runs `specc ARGUMENTS` in `folder`."""
    return _run(folder, ("specc", *arguments), PATIENCE)


def answers(commands: Mapping[str, tuple[Path, Sequence[str]]], folder: Path) -> dict[str, Answer]:
    """Runs all `commands` (by a name: where, and what comes after `specc`) in one process, one after the other. The
    megabytes are those of the process; a command that is missing ended it, or was not reached."""
    jobs, results = folder / "jobs.json", folder / "results"
    jobs.write_text(json.dumps({name: [str(where), *rest] for name, (where, rest) in commands.items()}))
    results.touch()
    whole = _run(folder, ("tests.limits.run", str(jobs), str(results)), 6 * PATIENCE)
    found = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    return {name: replace(Answer(**values), megabytes=whole.megabytes) for name, values in found}


def answer_in_turn(jobs: Path, results: Path) -> None:
    """What the process of `answers` does: one line for each command, as soon as it has ended."""
    from specc.cli.main import run

    with results.open("w", encoding="utf-8") as file:
        for name, (where, *arguments) in json.loads(jobs.read_text()).items():
            os.chdir(where)
            printed, start = io.StringIO(), time.process_time()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                try:
                    status = run(arguments)
                except Exception:  # whatever it is, it is the finding
                    status = 1
                    traceback.print_exc()
            found = Answer(status, printed.getvalue(), START + time.process_time() - start, 0)
            print(json.dumps([name, asdict(found)]), file=file, flush=True)


def _run(folder: Path, module: Sequence[str], patience: int) -> Answer:
    """Runs a module in a process that is killed after `patience` seconds."""
    printed, result = folder / "printed", folder / "used"
    launch = (sys.executable, "-I", "-S", str(LAUNCH), str(CEILING), str(result))
    with printed.open("wb") as out:
        process = subprocess.Popen(
            [*launch, sys.executable, "-m", *module],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
            start_new_session=True,
        )
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return Answer(-signal.SIGKILL, printed.read_text(encoding="utf-8", errors="replace"), patience, 0)
    status, seconds, kilobytes = json.loads(result.read_text())
    return Answer(status, printed.read_text(encoding="utf-8", errors="replace"), seconds, kilobytes / 1024)


if __name__ == "__main__":
    answer_in_turn(Path(sys.argv[1]), Path(sys.argv[2]))
