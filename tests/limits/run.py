"""Running specc in a process of its own, and what that took."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
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
    printed = folder / "printed"
    with printed.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", *module],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
            preexec_fn=_guard,
        )
        status, used = _wait(process, patience)
    text = printed.read_text(encoding="utf-8", errors="replace")
    return Answer(status, text, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def _guard() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (CEILING, CEILING))


def _wait(process: subprocess.Popen[bytes], patience: int) -> tuple[int, resource.struct_rusage]:
    """The exit status and the use of resources; kills a process that takes longer than `patience` seconds."""

    def kill(_signal: int, _frame: object) -> None:
        process.kill()

    before = signal.signal(signal.SIGALRM, kill)
    signal.alarm(patience)
    try:
        _, state, used = os.wait4(process.pid, 0)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    process.returncode = os.waitstatus_to_exitcode(state)
    return process.returncode, used


if __name__ == "__main__":
    answer_in_turn(Path(sys.argv[1]), Path(sys.argv[2]))
