"""Compiling all kernels of a model ahead of time, and what came out. No GPU is needed."""

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
from specc.targets.cuda.names import namespace
from specc.tiles import ARCHITECTURES

if TYPE_CHECKING:
    from specc.targets.report import CompileReport

WORKERS = 2


@dataclass(frozen=True)
class Job:
    """One kernel file for one architecture, with `dtype` in every role that holds reals."""

    kernel: Kernel
    text: str
    arch: str
    dtype: str
    target: str = "triton"
    space: str = ""
    """Namespace of CUDA kernels."""
    tiles: Path | None = None
    """A table of the user's own that `text` has tiles of."""


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


def compile_model(
    path: Path,
    archs: Sequence[str],
    options: Options,
    workers: int = WORKERS,
    targets: Sequence[str] = ("triton",),
) -> Iterator[Compiled]:
    """Every launch of every kernel of a spec, in the profile's storage type, as they are done: one target after the
    other, in the order of the page. Raises SpecError."""
    return run_jobs([job for t in targets for job in jobs(path, archs, options, t)], workers)


def compilable(options: Options) -> tuple[str, ...]:
    """Targets among the chosen ones that have machine code, and whose compiler is installed. Raises SpecError (E509)
    where the only one has none."""
    from specc.targets.cuda.aot import INSTALL, available

    chosen = [t for t in ("triton", "cuda") if t in options.targets]
    if chosen == ["cuda"] and not available():
        raise SpecError([Diagnostic("E509", "this needs NVRTC", None, INSTALL)])
    return tuple(t for t in chosen if t != "cuda" or available())


def check_archs(archs: Sequence[str]) -> None:
    """Raises SpecError (E505) for architectures that are not known."""
    unknown = [a for a in archs if a not in ARCHITECTURES]
    if unknown:
        raise SpecError(
            Diagnostic("E505", f"there is no architecture `{a}`", None, nearest(a, ARCHITECTURES)) for a in unknown
        )


def jobs(path: Path, archs: Sequence[str], options: Options, target: str = "triton") -> list[Job]:
    """What there is to compile of a target. Raises SpecError."""
    check_archs(archs)
    model = pipeline.load(path)
    lowered = pipeline.lower(model)
    texts = pipeline.emit_target(target, model, lowered, options)
    dtype = model.profile.type_of(Role.ACTIVATION)
    suffix, space = (".py", "") if target == "triton" else (".cu", namespace(model))
    files = [(k, f"{k.name}{suffix}") for k in all_kernels(lowered)]
    return [Job(k, texts[f], arch, dtype, target, space, options.tiles) for k, f in files for arch in archs]


def run_jobs(todo: Sequence[Job], workers: int = WORKERS) -> Iterator[Compiled]:
    """Compiles in `workers` processes."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for found in pool.map(compile_job, todo):
            yield from found


def compile_job(job: Job) -> list[Compiled]:
    """All launches of one kernel file on one architecture."""
    return _compile_cuda(job) if job.target == "cuda" else _compile_triton(job)


def _compile_cuda(job: Job) -> list[Compiled]:
    from specc.targets.cuda.aot import compile_kernel
    from specc.targets.cuda.tiles import load_tiles
    from specc.targets.report import CompileError

    try:
        reports = compile_kernel(job.kernel, job.text, job.arch, job.dtype, job.space, load_tiles(job.tiles))
    except CompileError as error:
        return [Compiled(job.kernel.name, job.arch, 1, None, str(error))]
    return [Compiled(job.kernel.name, job.arch, 1, report) for report in reports]


def _compile_triton(job: Job) -> list[Compiled]:
    from specc.targets.report import CompileError
    from specc.targets.triton.aot import compile_kernel
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
