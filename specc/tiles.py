"""The tables that targets take their tiles from, with a user's rows before the shipped ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from specc.diagnostics import Collector, Diagnostic, SpecError, nearest
from specc.targets.cuda.tiles import CPU
from specc.targets.cuda.tiles import load_tiles as load_cuda
from specc.targets.tile_table import TileTable, own_archs
from specc.targets.triton.tiles import load_tiles as load_triton

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
"""Architectures that kernels are compiled for ahead of time."""
LOADERS = {"triton": load_triton, "cuda": load_cuda}


def tile_tables(
    path: Path | None = None, gpu: str | None = None, targets: Sequence[str] = tuple(LOADERS)
) -> Mapping[str, TileTable]:
    """By target, of those of `targets` that have tiles. `path`: a file whose rows come before the shipped ones. `gpu`:
    for that one alone. Of the file no more is looked at than `archs` and the rows for these targets.

    Raises SpecError with the mistakes of all of them (E902), for a GPU that is neither one of ARCHITECTURES nor an
    architecture of the file (E505), and one that a target has no tiles for (E901); OSError for a file that cannot be
    read."""
    report, tables = Collector(), dict[str, TileTable]()
    for target in (t for t in LOADERS if t in targets):
        try:
            tables[target] = LOADERS[target](path)
        except SpecError as error:
            report.take(error)
    report.finish()
    if gpu is None:
        return tables
    own = () if path is None else own_archs(path.read_text(encoding="utf-8"), str(path))
    known = dict.fromkeys((*ARCHITECTURES, *own))
    if gpu not in known:
        raise SpecError([Diagnostic("E505", f"there is no architecture `{gpu}`", None, nearest(gpu, known))])
    return {target: _alone(target, table, gpu, path) for target, table in tables.items()}


def left_out(path: Path, targets: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Targets and GPUs of rows of a user's file that no kernel takes where none asks for the tiles of that GPU. Raises
    SpecError and OSError as `tile_tables`."""
    found: dict[tuple[str, str], None] = {}
    for target, table in tile_tables(path, targets=targets).items():
        taken = CPU if CPU in table.archs else max(table.archs, key=lambda a: int(a.removeprefix("sm_")))
        own = table.rows[: len(table.rows) - len(LOADERS[target]().rows)]
        found |= dict.fromkeys((target, arch) for row in own if taken not in row.archs for arch in row.archs)
    return tuple(found)


def _alone(target: str, table: TileTable, gpu: str, path: Path | None) -> TileTable:
    """Raises SpecError (E901)."""
    try:
        return table.alone(gpu)
    except LookupError as error:
        also = "" if path is None else f", with the rows of `{path}` or without"
        message = f"there are no {target} tiles for `{gpu}`{also}"
        raise SpecError([Diagnostic("E901", message, None, str(error.args[0]))]) from error
