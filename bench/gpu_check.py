"""Checks generated kernels, in Triton and in CUDA, on the GPU at hand against oracle values that travel with them, then
times them against torch.

    python bench/gpu_check.py [--generated generated] [--cases bench/gpu_cases.npz] [--seconds 450] [--only PATTERN]

Needs `generated/`, torch, triton 3.6 or newer, numpy and cuda-core; no part of specc, no C++ compiler. Operands are
made on the spot by a formula that the maker of the cases (make_gpu_cases.py) shares, so that the bundle holds only
sampled results: for each the interval in which the stored value of a conforming kernel lies. Results start as NaN, so
that an element that was not written is seen.

Every verdict and every time is printed as it is known, and all of them once more as a table; what failed stands at the
end. Kernels run in processes of their own, so that one which hangs or spoils its process costs no other. Exit status: 0
if all is right, 1 if a kernel is wrong, 2 if nothing can run here or nothing is chosen, 3 if time ran out before all
were checked, 4 if a right kernel could not be timed, 5 if the script itself hung or failed and no kernel is known to be
wrong.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
from gpu_cases import TARGETS, Case, read_cases  # noqa: E402
from gpu_rows import Row, Task, finish, say, say_checked, say_timed  # noqa: E402
from gpu_tasks import start_checking, start_timing  # noqa: E402
from gpu_workers import Work, spread  # noqa: E402

PATIENCE = 60.0
"""Seconds that one task may take, compilation included."""
CHECKING = 0.7
"""Share of the time after which no case is checked any more, so that some is left to time those that are right."""
CLOSING = 15.0
"""Seconds that are kept to end in."""
WORKER_BYTES = 12 << 30
"""GPU memory that a process which checks may need."""
MOST_WORKERS = 10

Rows = dict[Task, Row]


def check_all(
    tasks: Sequence[Task],
    cases: Sequence[Case],
    rows: Rows,
    begin: Callable[..., Work],
    arguments: Sequence[Any],
    workers: int,
    deadline: float,
) -> None:
    """Adds the rows of all tasks that are done by `deadline`."""
    for task, found, failure in spread(tasks, begin, arguments, workers, deadline, PATIENCE):
        row = found or Row(cases[task[0]], task[1])
        if failure:
            row.fail(failure)
        rows[task] = row
        say_checked(row)


def time_all(
    cases: Sequence[Case],
    rows: Mapping[Task, Row],
    begin: Callable[..., Work],
    arguments: Sequence[Any],
    deadline: float,
) -> None:
    """Times the right ones of both targets and eager torch, case by case; then what torch compiles, which takes
    longest, while there is time."""
    right = [task for task, row in rows.items() if row.case.timed and not row.wrong]
    numbers = sorted({n for n, _ in right})
    first = [(n, name) for n in numbers for name in (*TARGETS, "eager") if name == "eager" or (n, name) in right]
    tasks = [*first, *((n, "compiled") for n in numbers)]
    for (number, name), found, failure in spread(tasks, begin, arguments, 1, deadline, PATIENCE):
        result = failure or found
        if result is not None:
            add_time([r for (n, _), r in rows.items() if n == number], name, result)
            say_timed(cases[number], name, result)


def add_time(rows: Sequence[Row], name: str, found: float | str) -> None:
    """`rows`: those of one case. A rival's time stands beside both targets; one that cannot run is no failure."""
    for row in rows:
        if name in TARGETS and row.target != name:
            continue
        if isinstance(found, float):
            row.times["specc" if name in TARGETS else name] = found
        elif name in TARGETS:
            row.untimed = found
        else:
            row.note = row.note or f"torch {name}: {found}"


def watch(seconds: float, cases: Sequence[Case], tasks: Sequence[Task], rows: Rows) -> threading.Timer:
    """Ends this process after so many seconds, with the table as far as it goes; soon after that, whatever holds it."""
    faulthandler.dump_traceback_later(seconds + CLOSING, exit=True, file=2)

    def stop() -> None:
        say(f"stopped after {seconds:.0f} s, at:")
        faulthandler.dump_traceback(file=2)
        leave(broken_off(finish(cases, tasks, dict(rows))))

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    return timer


def broken_off(status: int) -> int:
    """The exit status of a script that did not come to its end."""
    return 1 if status == 1 else 5


def leave(status: int) -> None:
    """Ends this process and its children, without waiting for any that the driver does not let go."""
    for child in active_children():
        child.kill()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def processes(device: torch.device) -> int:
    """How many processes check at once."""
    if device.type != "cuda":
        return 1
    memory = torch.cuda.get_device_properties(device).total_memory
    return max(1, min(MOST_WORKERS, (os.cpu_count() or 1) - 2, memory // WORKER_BYTES))


def run(options: argparse.Namespace, cases: Sequence[Case], tasks: Sequence[Task], rows: Rows, begin: float) -> int:
    """Checks and times. The exit status, also where either breaks off."""
    given = (options.cases, options.generated, options.device)
    broken = False
    try:
        until = begin + CHECKING * options.seconds
        check_all(tasks, cases, rows, start_checking, given, processes(torch.device(options.device)), until)
        checked = time.monotonic()
        say(f"{len(rows)} of {len(tasks)} checked in {checked - begin:.0f} s")
        time_all(cases, rows, start_timing, given, begin + options.seconds - CLOSING)
        say(f"timed in {time.monotonic() - checked:.0f} s")
    except Exception:  # the table comes all the same
        traceback.print_exc()
        broken = True
    status = finish(cases, tasks, rows)
    return broken_off(status) if broken else status


def existing(text: str) -> Path:
    if not os.path.exists(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not there")
    return Path(text)


def device_name(text: str) -> str:
    try:
        torch.device(text)
    except RuntimeError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error


def chosen(cases: Sequence[Case], only: re.Pattern[str]) -> list[Task]:
    return [(n, t) for n, c in enumerate(cases) for t in TARGETS if only.search(f"{c.spec} {c.kernel} {t}")]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check and time generated kernels on this machine's GPU.")
    parser.add_argument("--generated", type=existing, default="generated")
    parser.add_argument("--cases", type=existing, default=str(Path(__file__).parent / "gpu_cases.npz"))
    parser.add_argument("--seconds", type=float, default=450.0, help="be done after so long; checks come first")
    only = "those whose `spec kernel target` has this regular expression"
    parser.add_argument("--only", type=pattern, default="", help=only)
    parser.add_argument(
        "--device", type=device_name, default="cuda:0", help="cpu tries the script itself, with TRITON_INTERPRET=1"
    )
    options = parser.parse_args(arguments)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # a process that may be ended starts none of its own
    begin, rows = time.monotonic(), Rows()
    cases = read_cases(options.cases)
    tasks = chosen(cases, options.only)
    if not tasks:
        print(f"no case has {options.only.pattern!r} in its `spec kernel target`", file=sys.stderr)
        return 2
    timer = watch(options.seconds, cases, tasks, rows)
    try:
        device = torch.device(options.device)
        if device.type == "cuda" and not torch.cuda.is_available():
            print("torch sees no GPU here", file=sys.stderr)
            return 2
        describe(device)
        return run(options, cases, tasks, rows, begin)
    finally:
        timer.cancel()
        faulthandler.cancel_dump_traceback_later()


def describe(device: torch.device) -> None:
    import triton

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    say(f"{name}, torch {torch.__version__}, triton {triton.__version__}")


if __name__ == "__main__":
    leave(main())
