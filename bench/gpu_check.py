"""Checks generated Triton kernels on the GPU at hand against oracle values that travel with them, then times them.

    python bench/gpu_check.py [--generated generated/gemma4] [--cases bench/gpu_cases.npz] [--seconds 270]

Needs torch, triton 3.6 or newer, and numpy; no part of specc. Operands are made on the spot by a formula that the
maker of the cases (make_gpu_cases.py) shares, so that the bundle holds only sampled results: for each the interval in
which the stored value of a conforming kernel lies. Results start as NaN, so that an element that was not written is
seen. Exit status 1 if a kernel is wrong.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from gpu_operands import Layout, layout, torch_operand  # noqa: E402
from gpu_rivals import rival  # noqa: E402

WARM_UP, SAMPLES = 3, 15
CACHE_BYTES = 1 << 28
"""Written between two calls that are timed, so that operands do not lie in the GPU's cache."""
SMALL = 1 << 22
"""Elements up to which an operand is kept, to see that the kernel leaves it alone."""
COLUMNS = ["kernel", "case", "checked", "wrong", "worst", "µs", "GB/s", "TFLOP/s", "eager", "compiled"]

Launcher = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """A kernel at one shape. `samples`: per result, indices [n, rank], and low and high of what may be stored there."""

    kernel: str
    op: str
    dtype: str
    sizes: Mapping[str, int]
    operands: tuple[Layout, ...]
    results: tuple[tuple[str, tuple[int, ...]], ...]
    constants: Mapping[str, float]
    flops: float
    timed: bool
    samples: Mapping[str, tuple[Any, ...]]

    @property
    def label(self) -> str:
        return " ".join([*(f"{n}={v}" for n, v in self.sizes.items()), self.dtype])


@dataclass
class Row:
    """One line of the table. `used`: the worst distance from the middle of an interval over half its width."""

    case: Case
    checked: int = 0
    wrong: int = 0
    used: float = 0.0
    note: str = ""
    times: dict[str, float] = field(default_factory=dict)

    def fail(self, note: str) -> None:
        self.wrong, self.note = self.wrong + 1, self.note or note


def read_cases(path: Path) -> list[Case]:
    """The bundle. Raises OSError, KeyError, ValueError."""
    with np.load(path, allow_pickle=False) as found:
        return [_case(number, meta, found) for number, meta in enumerate(json.loads(str(found["meta"])))]


def _case(number: int, meta: dict[str, Any], found: Mapping[str, Any]) -> Case:
    parts = ("at", "low", "high")
    results = tuple((name, tuple(shape)) for name, shape in meta.pop("results"))
    operands = tuple(layout(o) for o in meta.pop("operands"))
    samples = {name: tuple(found[f"{number}.{name}.{p}"] for p in parts) for name, _ in results}
    return Case(**meta, operands=operands, results=results, samples=samples)


def load_kernels(folder: Path) -> Callable[[str], Launcher]:
    """Launchers by kernel name, out of a generated folder."""
    package = "specc_generated_triton"
    _module(package, folder / "triton" / "__init__.py", [str(folder / "triton")])

    def launcher(name: str) -> Launcher:
        full = f"{package}.{name}"
        module = sys.modules.get(full) or _module(full, folder / "triton" / f"{name}.py", None)
        found: Launcher = getattr(module, name)
        return found

    return launcher


def _module(name: str, path: Path, search: list[str] | None) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=search)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def check(case: Case, call: Launcher, tensors: Sequence[torch.Tensor]) -> Row:
    """Runs a launcher once and compares the sampled elements. A launcher that raises is wrong."""
    row = Row(case)
    small = [t for t in tensors if t.numel() <= SMALL]
    before = [t.clone() for t in small]
    try:
        results = launch(case, call, tensors)
    except Exception as error:  # any failure of one launcher is its row; the table goes on
        row.fail(f"{type(error).__name__}: {error}".splitlines()[0][:120])
        return row
    for (name, _), result in zip(case.results, results, strict=True):
        compare(row, result, *case.samples[name])
        if bool(torch.isnan(result).any()):
            row.fail(f"{name} has elements that were not written, or NaN")
    if not all(torch.equal(a, b) for a, b in zip(before, small, strict=True)):
        row.fail("an operand was changed")
    return row


def launch(case: Case, call: Launcher, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The results; a single one is written over NaN."""
    device, dtype = tensors[0].device, getattr(torch, case.dtype)
    out = {}
    if len(case.results) == 1:
        out["out"] = torch.full(case.results[0][1], float("nan"), dtype=dtype, device=device)
    found = call(*tensors, **out)
    synchronize(device)
    return found if isinstance(found, tuple) else (found,)


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


def time_case(row: Row, call: Launcher, tensors: Sequence[torch.Tensor], deadline: float) -> None:
    """Times the kernel, then what a person would write in torch, eager and compiled, while there is time."""
    device = tensors[0].device
    row.times["specc"] = seconds(lambda: call(*tensors), device)
    other = rival(row.case.op, row.case.constants)
    if other is None:
        return
    for name, run in (("eager", other), ("compiled", torch.compile(other, dynamic=False))):
        if time.monotonic() > deadline:
            return
        try:
            row.times[name] = seconds(lambda run=run: run(*tensors), device)  # type: ignore[misc]
        except Exception as error:  # a rival that cannot run or compile here is a note, not a failure
            row.note = row.note or f"torch {name}: {type(error).__name__}"


def traffic(case: Case) -> float:
    """Bytes of all operands and results."""
    width = torch.empty(0, dtype=getattr(torch, case.dtype)).element_size()
    read = sum(float(np.prod(o.shape)) * (width if o.kind == "real" else 8) for o in case.operands)
    return read + width * sum(float(np.prod(shape)) for _, shape in case.results)


def line(row: Row) -> list[str]:
    """One line of the table. GB/s counts every operand and result once; `eager` and `compiled` are their times over
    the kernel's."""
    case, spent = row.case, row.times.get("specc")
    cells = [case.kernel, case.label, str(row.checked), str(row.wrong), f"{row.used:.2f}"]
    if spent is None:
        return [*cells, *["-"] * 5]
    speed = [f"{spent * 1e6:.1f}", f"{traffic(case) / spent / 1e9:.0f}", f"{case.flops / spent / 1e12:.1f}"]
    others = [f"{row.times[n] / spent:.2f}" if n in row.times else "-" for n in ("eager", "compiled")]
    return [*cells, *speed, *others]


def print_table(rows: Sequence[Row]) -> None:
    lines = [COLUMNS, *map(line, rows)]
    widths = [max(len(cells[n]) for cells in lines) for n in range(len(COLUMNS))]
    for cells, note in zip(lines, ["", *(r.note for r in rows)], strict=True):
        padded = [c.ljust(w) if n < 2 else c.rjust(w) for n, (c, w) in enumerate(zip(cells, widths, strict=True))]
        print("  ".join([*padded, note]).rstrip())


def run(cases: Sequence[Case], launcher: Callable[[str], Launcher], device: torch.device, deadline: float) -> int:
    """Checks all cases, then times those that are right while there is time; prints the table."""
    rows = []
    for case in cases:
        tensors = [torch_operand(o, case.dtype, device) for o in case.operands]
        rows.append(check(case, launcher(case.kernel), tensors))
        print(f"{case.kernel} {case.label}: {'wrong' if rows[-1].wrong else 'right'}", file=sys.stderr)
    for row in rows:
        if row.case.timed and not row.wrong and time.monotonic() < deadline:
            tensors = [torch_operand(o, row.case.dtype, device) for o in row.case.operands]
            time_case(row, launcher(row.case.kernel), tensors, deadline)
    print_table(rows)
    wrong = sum(1 for r in rows if r.wrong)
    print(f"{len(rows) - wrong} right, {wrong} wrong")
    return 1 if wrong else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check and time generated Triton kernels on this machine's GPU.")
    parser.add_argument("--generated", type=Path, default=Path("generated/gemma4"))
    parser.add_argument("--cases", type=Path, default=Path(__file__).parent / "gpu_cases.npz")
    parser.add_argument("--seconds", type=float, default=270.0, help="stop timing after so long; checks come first")
    options = parser.parse_args(arguments)
    deadline = time.monotonic() + options.seconds
    if not torch.cuda.is_available():
        print("torch sees no GPU here", file=sys.stderr)
        return 2
    import triton

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}")
    return run(read_cases(options.cases), load_kernels(options.generated), torch.device("cuda"), deadline)


if __name__ == "__main__":
    sys.exit(main())
