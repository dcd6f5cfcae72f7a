"""Tiles that ship for GPUs, run on the CPU at the constants of shipped specs: a tile that is wrong shows only where a
kernel has the sizes that choose it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specc.evidence.case import Case
from specc.evidence.check import Executor, try_case
from specc.evidence.execute import CudaExecutor, TritonExecutor
from specc.evidence.strategy import pinned
from specc.kernels import Attention, Contraction, Kernel
from specc.ops import Size
from specc.targets.cuda.emit import TILED
from specc.targets.cuda.emit import emit as emit_cuda
from specc.targets.cuda.tiles import CPU, GPU
from specc.targets.cuda.tiles import shipped_tiles as cuda_tiles
from specc.targets.triton.emit import emit as emit_triton
from specc.targets.triton.tiles import shipped_tiles
from tests.shipped import distinct

KERNELS = distinct()
ROWS = {"contraction": (1, 4, 5, 16, 17, 129), "attention_decode": (4, 32, 33)}
"""Numbers of rows on both sides of every limit in a table, by schedule."""
KEYS = 70
"""With so many rows."""


def of_rows(kernel: Kernel) -> list[Case]:
    """In each width of storage, as many rows as there are tiles for."""
    normal = next(c for c in pinned(kernel) if c.family == "normal")
    s = kernel.schedule
    axes = (s.row,) if isinstance(s, Attention) else s.rows if isinstance(s, Contraction) else ()
    names = {a.extent.name for a in axes if isinstance(a.extent, Size)}
    counts = ROWS.get(kernel.schedule_name, ())
    sizes = [tuple((n, rows if n in names else KEYS) for n, _ in normal.sizes) for rows in counts]
    own = replace(normal, places=(KEYS, 1, 0)) if isinstance(s, Attention) else normal
    return [replace(own, dtype=d, sizes=s) for d in ("bfloat16", "float32") for s in sizes]


def wrong(kernel: Kernel, executor: Executor, cases: list[Case]) -> list[str]:
    """What is said of the cases that fail."""
    found = [try_case(kernel, executor, case) for case in cases]
    return [f"{o.case.describe()}: {o.describe()}" for o in found if o.failed]


def test_the_rows_of_cases_lie_on_both_sides_of_every_limit() -> None:
    for row in (*shipped_tiles().rows, *cuda_tiles().rows):
        limit = row.config.rows
        if limit is not None:
            assert limit in ROWS[row.schedule] and limit < max(ROWS[row.schedule])
    for kernel in (k for k in KERNELS.values() if k.schedule_name in ROWS):
        assert len({case.sizes for case in of_rows(kernel)}) == len(ROWS[kernel.schedule_name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, k in KERNELS.items() if k.schedule_name in TILED])
def test_a_cuda_kernel_with_the_tiles_of_gpus_is_right(name: str) -> None:
    kernel = KERNELS[name]
    assert emit_cuda(kernel) != emit_cuda(kernel, arch=CPU)
    assert wrong(kernel, CudaExecutor(tiles=cuda_tiles().alone(GPU)), [*pinned(kernel), *of_rows(kernel)]) == []


def varied() -> set[str]:
    """Schedules whose tiles differ among GPUs, or by the number of rows; all others are run as they ship by checks of
    a spec."""
    table = shipped_tiles()
    return {r.schedule for r in table.rows if r.archs != table.archs or r.config.rows is not None}


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, k in KERNELS.items() if k.schedule_name in varied()])
def test_a_triton_kernel_with_the_tiles_of_each_gpu_is_right(name: str) -> None:
    kernel, archs = KERNELS[name], shipped_tiles().archs
    tables = {a: shipped_tiles().alone(a) for a in archs}
    distinct = {emit_triton(kernel, table).replace(arch, "GPU"): table for arch, table in tables.items()}
    for table in distinct.values():
        assert wrong(kernel, TritonExecutor(tiles=table), [*pinned(kernel), *of_rows(kernel)]) == []
