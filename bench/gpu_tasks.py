"""What a process of gpu_check.py does: checks a kernel, or times one or what a person would write in torch."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import gpu_cuda
import numpy as np
import torch
from gpu_cases import TARGETS, Case, read_cases
from gpu_operands import torch_operand
from gpu_rivals import rival
from gpu_rows import Row, Task, told
from gpu_workers import Work

WARM_UP, SAMPLES, ENOUGH = 3, 15, 3
PER_CALL = 2.0
"""Seconds of samples after which ENOUGH of them are enough."""
CACHE_BYTES = 1 << 28
"""Written between two calls that are timed, so that operands do not lie in the GPU's cache."""
HEAD_START = 2_000_000
"""Cycles for which the GPU waits before a call that is timed, so that what the CPU does to launch it does not count."""
SMALL = 1 << 22
"""Elements up to which an operand is kept, to see that the kernel leaves it alone."""
HELD = 2 << 30
"""Bytes of GPU memory that a process keeps from one task to the next."""

Launcher = Callable[..., Any]
Launchers = Callable[[Case, str], Launcher]
"""The launcher of a case for a target."""


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
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def start_checking(cases: Path, generated: Path, device: str) -> Work:
    where = torch.device(device)
    known, launchers = read_cases(cases), load_kernels(generated, where)
    return lambda task: try_task(known, launchers, where, task)


def start_timing(cases: Path, generated: Path, device: str) -> Work:
    where = torch.device(device)
    known, launchers = read_cases(cases), load_kernels(generated, where)
    raise_clocks(where)
    return lambda task: try_timing(known, launchers, where, task)


def try_task(cases: Sequence[Case], launchers: Launchers, device: torch.device, task: Task) -> tuple[Row, bool]:
    """The row of a task, and whether the GPU still answers this process."""
    case, target = cases[task[0]], task[1]
    try:
        tensors = [torch_operand(o, case.dtype, device) for o in case.operands]
        row = check(case, launchers(case, target), tensors, target)
    except Exception as error:  # a kernel that cannot be loaded, or a GPU without enough memory, is its row
        row = Row(case, target)
        row.fail(told(error))
    lost = lost_after(device)
    if lost:
        row.fail(lost)
        row.note = row.note if lost in row.note else f"{row.note}; {lost}"
    return row, not lost


def try_timing(
    cases: Sequence[Case], launchers: Launchers, device: torch.device, task: Task
) -> tuple[float | str | None, bool]:
    """Seconds, or why there are none, or None where torch has no rival; and whether the GPU still answers."""
    case, name = cases[task[0]], task[1]
    found: float | str | None
    try:
        call = launchers(case, name) if name in TARGETS else torch_rival(case, name)
        tensors = [torch_operand(o, case.dtype, device) for o in case.operands] if call else []
        found = None if call is None else seconds(partial(call, *tensors), device)
    except Exception as error:  # of any kind: it is told, and the next one has its turn
        found = told(error)
    tensors = []
    lost = lost_after(device)
    return (f"{found}; {lost}" if isinstance(found, str) else lost) if lost else found, not lost


def lost_after(device: torch.device) -> str:
    """What the GPU answers a process in which a kernel, of whatever kind, went out of bounds; "" if it still works."""
    try:
        synchronize(device)
        if device.type == "cuda" and torch.cuda.memory_reserved(device) > HELD:
            torch.cuda.empty_cache()
    except Exception as error:  # drivers and torch name a lost context differently; the process is replaced for any
        return f"the GPU no longer answers this process, which is replaced ({told(error)[:120]})"
    return ""


def torch_rival(case: Case, name: str) -> Launcher | None:
    other = rival(case.op, case.constants)
    if other is None or name == "eager":
        return other
    torch.compiler.reset()  # or one function at many shapes runs eagerly at some point
    return torch.compile(other, dynamic=False)


def check(case: Case, call: Launcher, tensors: Sequence[torch.Tensor], target: str = TARGETS[0]) -> Row:
    """Runs a launcher once and compares the sampled elements. A launcher that raises is wrong."""
    row = Row(case, target)
    small = [t for t in tensors if t.numel() <= SMALL]
    before = [t.clone() for t in small]
    try:
        results = launch(case, call, tensors)
    except Exception as error:  # any failure of one launcher is its row; the table goes on
        row.fail(told(error))
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


def raise_clocks(device: torch.device) -> None:
    """A GPU that was idle takes a while to run at full speed."""
    until = time.monotonic() + 0.5
    while device.type == "cuda" and time.monotonic() < until:
        square = torch.ones(4096, 4096, dtype=torch.bfloat16, device=device)
        torch.mm(square, square)
        synchronize(device)


def seconds(call: Callable[[], Any], device: torch.device) -> float:
    """Median time of one call, with operands out of the cache on a GPU."""
    flush = torch.empty(CACHE_BYTES, dtype=torch.int8, device=device) if device.type == "cuda" else None
    until = time.monotonic() + PER_CALL
    times: list[float] = []
    for n in range(WARM_UP + SAMPLES):
        if n == WARM_UP:  # what compiles does so before
            until, times = time.monotonic() + PER_CALL, []
        if flush is not None:
            flush.zero_()
        times.append(_once(call, device))
        if n >= WARM_UP + ENOUGH - 1 and time.monotonic() > until:
            break
    return float(np.median(times))


def _once(call: Callable[[], Any], device: torch.device) -> float:
    if device.type != "cuda":
        start = time.perf_counter()
        call()
        return time.perf_counter() - start
    event: Any = torch.cuda.Event
    begin, end = event(enable_timing=True), event(enable_timing=True)
    torch.cuda._sleep(HEAD_START)  # type: ignore[no-untyped-call]
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize(device)
    return float(begin.elapsed_time(end)) / 1e3
