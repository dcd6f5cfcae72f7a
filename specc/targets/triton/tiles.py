"""The table of tiles of the Triton kernels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from specc.resources import shipped
from specc.targets.tile_table import Config, Configs, Forms, TileTable, next_power_of_two, parse_table

__all__ = [
    "FACTS", "TILES", "Config", "Configs", "TileTable", "load_tiles", "next_power_of_two", "parse_tiles",
    "shipped_tiles",
]  # fmt: skip

TILES: Mapping[str, tuple[str, ...]] = {
    "contraction": ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M"),
    "row_reduction": ("TILE",),
    "pointwise": ("TILE",),
    "gather": ("TILE",),
    "attention_prefill": ("BLOCK_T", "BLOCK_L", "BLOCK_E", "BLOCK_D"),
    "attention_decode": ("BLOCK_L", "BLOCK_E", "BLOCK_D", "SPLITS"),
    "recurrence": ("CHUNK", "BLOCK_V", "CUT_K"),
}
"""The tiles that a row of each schedule gives; the table's header says what they are."""
FACTS: Mapping[str, tuple[str, ...]] = {
    "contraction": ("N", "K", "aligned", "reads"),
    "row_reduction": ("H", "reads"),
    "pointwise": ("width", "axes", "reads"),
    "gather": ("width", "axes", "reads"),
    "attention_prefill": ("D", "E", "group"),
    "attention_decode": ("D", "E", "group", "kv_heads", "span"),
    "recurrence": ("K", "V"),
}
"""What `when` may speak of."""


def load_tiles(override: Path | None = None) -> TileTable:
    """The shipped table; rows of `override`, a file of the same form, come before it.

    Raises SpecError for a malformed file, OSError for one that cannot be read.
    """
    table = shipped_tiles()
    if override is None:
        return table
    own = parse_tiles(override.read_text(encoding="utf-8"), str(override), table.archs)
    return TileTable(tuple(dict.fromkeys((*table.archs, *own.archs))), (*own.rows, *table.rows))


@cache
def shipped_tiles() -> TileTable:
    """The table that comes with specc."""
    path = shipped("templates") / "triton" / "tiles.toml"
    return parse_tiles(path.read_text(encoding="utf-8"), path.name, ())


def parse_tiles(text: str, name: str, archs: tuple[str, ...]) -> TileTable:
    """A table from TOML. `archs`: architectures known beside the file's own. Raises SpecError."""
    return parse_table(text, name, archs, Forms(TILES, FACTS))
