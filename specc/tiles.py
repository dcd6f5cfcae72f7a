"""The tables that targets take their tiles from, with a user's rows before the shipped ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from specc.diagnostics import Collector, Diagnostic, SpecError, nearest
from specc.targets.cuda.tiles import load_tiles as load_cuda
from specc.targets.tile_table import TileTable
from specc.targets.triton.tiles import load_tiles as load_triton

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
"""Architectures that kernels are compiled for ahead of time."""
LOADERS = {"triton": load_triton, "cuda": load_cuda}


def tile_tables(
    path: Path | None = None, gpu: str | None = None, targets: Sequence[str] = tuple(LOADERS)
) -> Mapping[str, TileTable]:
    """By target. `path`: a file whose rows come before the shipped ones. `gpu`: for that one alone.

    Raises SpecError with the mistakes of all targets (E902), or for a GPU that is neither one of ARCHITECTURES nor an
    architecture of the file (E505); OSError for a file that cannot be read."""
    report, tables = Collector(), dict[str, TileTable]()
    for target in (t for t in LOADERS if t in targets):
        try:
            tables[target] = LOADERS[target](path)
        except SpecError as error:
            report.take(error)
    report.finish()
    if gpu is None:
        return tables
    known = dict.fromkeys((*ARCHITECTURES, *(a for t in tables.values() for a in t.archs if a.startswith("sm_"))))
    if gpu not in known:
        raise SpecError([Diagnostic("E505", f"there is no architecture `{gpu}`", None, nearest(gpu, known))])
    return {target: table.alone(gpu) for target, table in tables.items()}
