"""Compiling all Triton kernels of a model ahead of time, and what came out. No GPU is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from specc import pipeline
from specc.diagnostics import Diagnostic, SpecError, nearest
from specc.inputs import Options
from specc.ir import Role
from specc.kernels import Kernel
from specc.lowered import all_kernels

if TYPE_CHECKING:
    from specc.targets.triton.aot import CompileReport

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
WORKERS = 2


@dataclass(frozen=True)
class Job:
    """One kernel file for one architecture, with `dtype` in every role that holds reals."""

    kernel: Kernel
    text: str
    arch: str
    dtype: str


@dataclass(frozen=True)
class Compiled:
    """What became of one launch of a kernel file. `rows`: the number of rows that chose its tiles."""

    file: str
    arch: str
    rows: int
    report: CompileReport | None
    error: str = ""

    @property
    def good(self) -> bool:
        """It compiled, nothing spilled, and a block fits the architecture."""
        r = self.report
        return r is not None and r.spill_stores == 0 and r.spill_loads == 0 and r.fits


def compile_model(path: Path, archs: Sequence[str], options: Options, workers: int = WORKERS) -> Iterator[Compiled]:
    """Every launch of every kernel of a spec, in the profile's storage type, as they are done in the order of the page.
    Raises SpecError."""
    return run_jobs(jobs(path, archs, options), workers)


def jobs(path: Path, archs: Sequence[str], options: Options) -> list[Job]:
    """What there is to compile. Raises SpecError."""
    unknown = [a for a in archs if a not in ARCHITECTURES]
    if unknown:
        raise SpecError(
            Diagnostic("E505", f"there is no architecture `{a}`", None, nearest(a, ARCHITECTURES)) for a in unknown
        )
    model = pipeline.load(path)
    lowered = pipeline.lower(model)
    texts = pipeline.emit_target("triton", model, lowered, options)
    dtype = model.profile.type_of(Role.ACTIVATION)
    return [Job(k, texts[f"{k.name}.py"], arch, dtype) for k in all_kernels(lowered) for arch in archs]


def run_jobs(todo: Sequence[Job], workers: int = WORKERS) -> Iterator[Compiled]:
    """Compiles in `workers` processes."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for found in pool.map(compile_job, todo):
            yield from found


def compile_job(job: Job) -> list[Compiled]:
    """All launches of one kernel file on one architecture."""
    from specc.targets.triton.aot import CompileError, compile_kernel
    from specc.targets.triton.compile import compile_specs

    found: list[Compiled] = []
    for s in compile_specs(job.kernel, job.text, job.arch, job.dtype):
        try:
            report = compile_kernel(
                s.fn, s.signature, s.constexprs, arch=job.arch, divisible=s.divisible,
                num_warps=s.num_warps, num_stages=s.num_stages,
            )  # fmt: skip
            found.append(Compiled(job.kernel.name, job.arch, s.rows, report))
        except CompileError as error:
            found.append(Compiled(job.kernel.name, job.arch, s.rows, None, str(error)))
    return found
