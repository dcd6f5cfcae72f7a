"""Checks generated kernels, in Triton and in CUDA, on the GPU at hand against oracle values that travel with them, then
times them against torch.

    python bench/gpu_check.py [--generated generated] [--cases bench/gpu_cases.npz] [--seconds 470]

Needs `generated/`, torch, triton 3.6 or newer, numpy and cuda-core; no part of specc, no C++ compiler. Operands are
made on the spot by a formula that the maker of the cases (make_gpu_cases.py) shares, so that the bundle holds only
sampled results: for each the interval in which the stored value of a conforming kernel lies. Results start as NaN, so
that an element that was not written is seen. Exit status 1 if a kernel is wrong, 3 if time ran out before all were
checked.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
import gpu_cuda  # noqa: E402
from gpu_cases import TARGETS, Case, read_cases  # noqa: E402
from gpu_operands import torch_operand  # noqa: E402
from gpu_rivals import rival  # noqa: E402
from gpu_workers import Work, spread  # noqa: E402

WARM_UP, SAMPLES = 3, 15
CACHE_BYTES = 1 << 28
"""Written between two calls that are timed, so that operands do not lie in the GPU's cache."""
SMALL = 1 << 22
"""Elements up to which an operand is kept, to see that the kernel leaves it alone."""
PATIENCE = 90.0
"""Seconds that one case may take, compilation included."""
CHECKING = 0.7
"""Share of the time after which no case is checked any more, so that some is left to time those that are right."""
WORKER_BYTES = 12 << 30
"""GPU memory that a process which checks may need."""
COLUMNS = [
    "spec", "kernel", "target", "case", "checked", "wrong", "worst", "µs", "GB/s", "TFLOP/s", "eager", "compiled",
]  # fmt: skip

Launcher = Callable[..., Any]
Launchers = Callable[[Case, str], Launcher]
"""The launcher of a case for a target."""
Task = tuple[int, str]
"""The number of a case, and a target."""


@dataclass
class Row:
    """One line of the table. `used`: the worst distance from the middle of an interval over half its width."""

    case: Case
    target: str = TARGETS[0]
    checked: int = 0
    wrong: int = 0
    used: float = 0.0
    note: str = ""
    times: dict[str, float] = field(default_factory=dict)

    def fail(self, note: str) -> None:
        self.wrong, self.note = self.wrong + 1, self.note or note


def load_kernels(folder: Path, device: torch.device) -> Launchers:
    """Launchers out of generated folders, which lie in `folder` under the names of their specs."""

    def launcher(case: Case, target: str) -> Launcher:
        found: Launcher
        if target == "cuda":
            found = gpu_cuda.launcher(case, folder / case.spec, device)
            return found
        package = f"specc_generated_{case.spec}"
        here = folder / case.spec / "triton"
        if package not in sys.modules:
            _module(package, here / "__init__.py", [str(here)])
        full = f"{package}.{case.kernel}"
        found = getattr(sys.modules.get(full) or _module(full, here / f"{case.kernel}.py", None), case.kernel)
        return found  # noqa: RET504

    return launcher


def _module(name: str, path: Path, search: list[str] | None) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=search)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def check(case: Case, call: Launcher, tensors: Sequence[torch.Tensor], target: str = TARGETS[0]) -> Row:
    """Runs a launcher once and compares the sampled elements. A launcher that raises is wrong."""
    row = Row(case, target)
    small = [t for t in tensors if t.numel() <= SMALL]
    before = [t.clone() for t in small]
    try:
        results = launch(case, call, tensors)
    except Exception as error:  # any failure of one launcher is its row; the table goes on
        row.fail(f"{type(error).__name__}: {error}".splitlines()[0][:120])
        return row
    for r, result in zip(case.results, results, strict=True):
        compare(row, result, *case.samples[r.name])
        if bool(torch.isnan(result).any()):
            row.fail(f"{r.name} has elements that were not written, or NaN")
    if not all(torch.equal(a, b) for a, b in zip(before, small, strict=True)):
        row.fail("an operand was changed")
    return row


def launch(case: Case, call: Launcher, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The results, written over NaN."""
    out = gpu_cuda.empty(case, tensors[0].device)
    for result in out:
        result.fill_(float("nan"))
    call(*tensors, out=out if len(out) > 1 else out[0])
    synchronize(tensors[0].device)
    return out


def compare(row: Row, result: torch.Tensor, at: Any, low: Any, high: Any) -> None:
    """Adds the sampled elements of one result to `row`."""
    indices = tuple(torch.as_tensor(at[:, axis], device=result.device) for axis in range(at.shape[1]))
    got = result[indices].double().cpu().numpy()
    good = (low <= got) & (got <= high)
    middle, half = (low + high) / 2, (high - low) / 2
    with np.errstate(all="ignore"):
        used = np.where(half > 0, np.abs(got - middle) / half, np.where(got == middle, 0.0, np.inf))
    row.checked += int(good.size)
    row.wrong += int(np.count_nonzero(~good))
    row.used = max(row.used, float(np.max(used, initial=0.0)))
    if not good.all() and not row.note:
        n = int(np.argmin(good))
        row.note = f"{at[n].tolist()} is {got[n]:.6g}, not in [{low[n]:.6g}, {high[n]:.6g}]"


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds(call: Callable[[], Any], device: torch.device) -> float:
    """Median time of one call, with operands out of the cache on a GPU."""
    flush = torch.empty(CACHE_BYTES, dtype=torch.int8, device=device) if device.type == "cuda" else None
    times = []
    for _ in range(WARM_UP + SAMPLES):
        if flush is not None:
            flush.zero_()
        times.append(_once(call, device))
    return float(np.median(times[WARM_UP:]))


def _once(call: Callable[[], Any], device: torch.device) -> float:
    if device.type != "cuda":
        start = time.perf_counter()
        call()
        return time.perf_counter() - start
    event: Any = torch.cuda.Event
    begin, end = event(enable_timing=True), event(enable_timing=True)
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize(device)
    return float(begin.elapsed_time(end)) / 1e3


def time_rivals(row: Row, names: Sequence[str], tensors: Sequence[torch.Tensor]) -> None:
    """Times what a person would write in torch: "eager", "compiled"."""
    other = rival(row.case.op, row.case.constants)
    if other is None:
        return
    for name in names:
        run = other if name == "eager" else torch.compile(other, dynamic=False)
        try:
            row.times[name] = seconds(partial(run, *tensors), tensors[0].device)
        except Exception as error:  # a rival that cannot run or compile here is a note, not a failure
            row.note = row.note or f"torch {name}: {type(error).__name__}"


def traffic(case: Case) -> float:
    """Bytes of all operands and results."""
    types = {"index": 8, "places": 8}
    read = sum(np.prod(o.shape) * (types.get(o.kind) or _width(o.dtype or case.dtype)) for o in case.operands)
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
    others = [f"{row.times[n] / spent:.2f}" if n in row.times else "-" for n in ("eager", "compiled")]
    return [*cells, *speed, *others]


def print_table(rows: Sequence[Row]) -> None:
    lines = [COLUMNS, *map(line, rows)]
    widths = [max(len(cells[n]) for cells in lines) for n in range(len(COLUMNS))]
    for cells, note in zip(lines, ["", *(r.note for r in rows)], strict=True):
        padded = [c.ljust(w) if n < 4 else c.rjust(w) for n, (c, w) in enumerate(zip(cells, widths, strict=True))]
        print("  ".join([*padded, note]).rstrip())


def start(cases: Path, generated: Path, device: str) -> Work:
    """What a process that checks does: a task in, its row out, and whether the GPU still answers this process."""
    where = torch.device(device)
    known, launchers = read_cases(cases), load_kernels(generated, where)
    return lambda task: try_task(known, launchers, where, task)


def try_task(cases: Sequence[Case], launchers: Launchers, device: torch.device, task: Task) -> tuple[Row, bool]:
    """The row of a task, and whether the GPU still answers."""
    case, target = cases[task[0]], task[1]
    try:
        tensors = [torch_operand(o, case.dtype, device) for o in case.operands]
        row = check(case, launchers(case, target), tensors, target)
    except Exception as error:  # a kernel that cannot be loaded, or a GPU without enough memory, is its row
        row = Row(case, target)
        row.fail(f"{type(error).__name__}: {error}".splitlines()[0][:120])
    try:
        synchronize(device)
    except RuntimeError:
        return row, False
    return row, True


def check_all(
    cases: Sequence[Case], begin: Callable[..., Work], arguments: Sequence[Any], workers: int, deadline: float
) -> dict[Task, Row]:
    """The rows of all tasks that were done by `deadline`, in the order of the cases."""
    tasks = [(n, target) for n in range(len(cases)) for target in TARGETS]
    rows: dict[Task, Row] = {}
    for task, row, failure in spread(tasks, begin, arguments, workers, deadline, PATIENCE):
        if row is None:
            row = Row(cases[task[0]], task[1])
            row.fail(failure)
        rows[task] = row
        said = f"wrong: {row.note}" if row.wrong else "right"
        print(f"{row.case.spec} {row.case.kernel} {row.target} {row.case.label}: {said}", file=sys.stderr, flush=True)
    return {task: rows[task] for task in tasks if task in rows}


def time_all(rows: Mapping[Task, Row], launchers: Launchers, device: torch.device, deadline: float) -> None:
    """Times the right ones of both targets and eager torch, kernel by kernel; then what torch compiles, which takes
    longest, while there is time."""
    groups: dict[int, list[Row]] = {}
    for (number, _), row in rows.items():
        if row.case.timed and not row.wrong:
            groups.setdefault(number, []).append(row)
    for names in (("specc", "eager"), ("compiled",)):
        for group in groups.values():
            if time.monotonic() > deadline:
                return
            tensors = [torch_operand(o, group[0].case.dtype, device) for o in group[0].case.operands]
            for row in group if "specc" in names else ():
                call = launchers(row.case, row.target)
                row.times["specc"] = seconds(partial(call, *tensors), device)
            time_rivals(group[0], [n for n in names if n != "specc"], tensors)
            for row in group[1:]:
                row.times = {**group[0].times, **{n: t for n, t in row.times.items() if n == "specc"}}


def finish(cases: Sequence[Case], rows: Mapping[Task, Row]) -> int:
    """Prints the table, and what was not checked. The exit status."""
    print_table(list(rows.values()))
    missing = [(c, t) for n, c in enumerate(cases) for t in TARGETS if (n, t) not in rows]
    for case, target in missing:
        print(f"not checked: {case.spec} {case.kernel} {target} {case.label}")
    wrong = sum(1 for r in rows.values() if r.wrong)
    print(f"{len(rows) - wrong} right, {wrong} wrong, {len(missing)} not checked")
    return 1 if wrong else 3 if missing else 0


def processes() -> int:
    """How many processes check at once."""
    free, _ = torch.cuda.mem_get_info()
    return max(1, min(8, (os.cpu_count() or 1) - 1, free // WORKER_BYTES))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check and time generated kernels on this machine's GPU.")
    parser.add_argument("--generated", type=Path, default=Path("generated"))
    parser.add_argument("--cases", type=Path, default=Path(__file__).parent / "gpu_cases.npz")
    parser.add_argument("--seconds", type=float, default=470.0, help="be done after so long; checks come first")
    options = parser.parse_args(arguments)
    begin = time.monotonic()
    if not torch.cuda.is_available():
        print("torch sees no GPU here", file=sys.stderr)
        return 2
    import triton

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}", flush=True)
    cases, device = read_cases(options.cases), torch.device("cuda", torch.cuda.current_device())
    given = (options.cases, options.generated, str(device))
    rows = check_all(cases, start, given, processes(), begin + CHECKING * options.seconds)
    checked = time.monotonic()
    time_all(rows, load_kernels(options.generated, device), device, begin + options.seconds - PATIENCE / 3)
    print(f"checked in {checked - begin:.0f} s, timed in {time.monotonic() - checked:.0f} s")
    return finish(cases, rows)


if __name__ == "__main__":
    sys.exit(main())
