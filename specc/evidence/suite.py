"""The property suite of a whole model: every node, phase and target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from specc.evidence.check import Executor, Outcome, Report, check_kernel
from specc.evidence.execute import CudaExecutor, TorchExecutor, TritonExecutor
from specc.evidence.strategy import DTYPES
from specc.ir import Model
from specc.kernels import Kernel
from specc.tiles import tile_tables

Progress = Callable[[Kernel, str, Outcome], None]


def executors(
    model: Model, targets: Sequence[str], tiles: Path | None = None, gpu: str | None = None
) -> tuple[Executor, ...]:
    """`tiles`: a table whose rows come before the shipped ones. `gpu`: kernels have the tiles that they have there.
    Raises KeyError for an unknown target, SpecError as `tile_tables`."""
    tables = tile_tables(tiles, gpu, targets)
    whose = "" if gpu is None else f", tiles of {gpu}"
    made: Mapping[str, Callable[[], Executor]] = {
        "triton": lambda: TritonExecutor(tiles=tables["triton"], evidence=f"{TritonExecutor.evidence}{whose}"),
        "torch": lambda: TorchExecutor(model.profile.rounds),
        "cuda": lambda: CudaExecutor(tiles=tables["cuda"], evidence=f"{CudaExecutor.evidence}{whose}"),
    }
    return tuple(made[t]() for t in targets)


def check_kernels(
    model: Model,
    kernels: Sequence[Kernel],
    targets: Sequence[str],
    examples: int = 10,
    seed: int = 0,
    dtypes: Sequence[str] = DTYPES,
    progress: Progress | None = None,
    tiles: Path | None = None,
    gpu: str | None = None,
) -> Iterator[Report]:
    """One report per kernel and target, as they are done. A kernel that differs from an earlier one in nothing but its
    name shares that one's outcomes, and says so."""
    done: dict[tuple[str, Kernel], Report] = {}
    chosen = executors(model, targets, tiles, gpu)
    for kernel in kernels:
        for executor in chosen:
            key = (executor.name, replace(kernel, name="", keys=()))
            if key in done:
                yield replace(done[key], kernel=kernel, shared=done[key].kernel.name)
                continue
            each = None if progress is None else _bind(progress, kernel, executor.name)
            done[key] = check_kernel(kernel, executor, examples, seed, dtypes, each)
            yield done[key]


def _bind(progress: Progress, kernel: Kernel, target: str) -> Callable[[Outcome], None]:
    return lambda outcome: progress(kernel, target, outcome)
