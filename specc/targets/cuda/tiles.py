"""The table of tiles of the CUDA kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from specc.resources import shipped
from specc.targets.tile_table import Config, Forms, TileTable, parse_table

MOST_WARPS = 32
"""Warps of the largest block."""
FEW_THREADS, SMALLEST = 256, 16
"""Threads of a block of a contraction of few rows; rows from which on it takes matrix instructions."""


def fault(schedule: str, c: Config) -> str:
    """Why the template of a schedule cannot take these tiles, or nothing."""
    if c.warps > MOST_WARPS:
        return f"a block has at most {MOST_WARPS} warps, not {c.warps}"
    if c.rows is not None and schedule not in ("contraction", "attention_decode"):
        return f"`rows` chooses no tiles of {schedule}"
    return _FAULTS[schedule](c)


def _contraction_fault(c: Config) -> str:
    m, n, k, across = (c.tile(name) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "WARPS_M"))
    if m < SMALLEST:
        if c.rows is None or c.rows > m:
            return f"BLOCK_M below {SMALLEST} takes at most BLOCK_M rows: give `rows`, at most {m}"
        if c.warps * 32 != FEW_THREADS or n < 16:
            return f"BLOCK_M below {SMALLEST} takes {FEW_THREADS // 32} warps, and BLOCK_N of at least 16"
        return ""
    if across > c.warps:
        return f"WARPS_M is at most the number of warps, {c.warps}"
    if m < 16 * across or n < max(16, 8 * c.warps // across) or k < 16:
        return "BLOCK_M is at least 16 · WARPS_M, BLOCK_N at least 16 and 8 · warps / WARPS_M, BLOCK_K at least 16"
    return "" if c.stages > 1 else "the pipeline has at least 2 stages"


def _prefill_fault(c: Config) -> str:
    rows = c.tile("BLOCK_T")
    if rows < 16 or rows > 16 * c.warps:
        return f"BLOCK_T is 16 or more, at most 16 for each of the {c.warps} warps"
    return _keys_fault(c, 16 * c.warps // rows)


def _keys_fault(c: Config, sharing: int) -> str:
    """`sharing`: warps that have the same queries."""
    least = max(16, 8 * sharing)
    told = f"BLOCK_L is at least {least}, 8 keys for each warp of the same queries"
    return "" if c.tile("BLOCK_L") >= least else told


def _recurrence_fault(c: Config) -> str:
    return "" if min(c.tile("CHUNK"), c.tile("BLOCK_V")) >= 16 else "CHUNK and BLOCK_V are at least 16"


_FAULTS: Mapping[str, Callable[[Config], str]] = {
    "contraction": _contraction_fault,
    "attention_prefill": _prefill_fault,
    "attention_decode": lambda c: _keys_fault(c, c.warps),
    "recurrence": _recurrence_fault,
}
FORMS = Forms(
    {
        "contraction": ("BLOCK_M", "BLOCK_N", "BLOCK_K", "WARPS_M", "GROUP_M"),
        "attention_prefill": ("BLOCK_T", "BLOCK_L"),
        "attention_decode": ("BLOCK_L", "SPLITS"),
        "recurrence": ("CHUNK", "BLOCK_V"),
    },
    {
        "contraction": ("N", "K"),
        "attention_prefill": ("D", "E"),
        "attention_decode": ("D", "E"),
        "recurrence": ("K", "V"),
    },
    r"sm_\d{1,4}|cpu",
    fault,
)
"""Tiles that a row of each schedule gives, and what its `when` may speak of; the table's header says what they are."""

GPU, CPU = "sm_80", "cpu"
"""Architectures of the table: sm_80 and later; and the CPU, whose small tiles make checks quick."""


@cache
def shipped_tiles() -> TileTable:
    """The table that comes with specc."""
    path = shipped("templates") / "cuda" / "tiles.toml"
    return parse_table(path.read_text(encoding="utf-8"), path.name, (), FORMS)


def load_tiles(override: Path | None = None) -> TileTable:
    """The shipped table; rows under `cuda` in `override`, a file of the user's, come before it.

    Raises SpecError for a malformed file, OSError for one that cannot be read."""
    table = shipped_tiles()
    if override is None:
        return table
    own = parse_table(override.read_text(encoding="utf-8"), str(override), table.archs, FORMS, "cuda")
    return TileTable(table.archs, (*own.rows, *table.rows))


def on_host(table: TileTable | None) -> str:
    """The architecture whose tiles a kernel has where it runs on the CPU: `cpu`, unless the table is of one GPU."""
    return CPU if table is None or CPU in table.archs else table.archs[0]


@dataclass(frozen=True)
class Tiles:
    """Where the tiles of a file come from: a table, and one of its architectures."""

    table: TileTable
    arch: str = GPU

    def of(self, schedule: str, facts: Mapping[str, int]) -> dict[int, tuple[Config, ...]]:
        """By bytes of a stored element: configurations of one kernel in order of rows. Raises SpecError (E901)."""
        return dict(dict(self.table.resolve(schedule, facts))[self.arch])


def tiles_of(arch: str = GPU, table: TileTable | None = None) -> Tiles:
    """Those of the shipped table where none is given."""
    return Tiles(shipped_tiles() if table is None else table, arch)
