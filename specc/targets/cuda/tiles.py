"""The table of tiles of the CUDA kernels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from specc.resources import shipped
from specc.targets.tile_table import Config, Forms, TileTable, parse_table

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
)
"""Tiles that a row of each schedule gives, and what its `when` may speak of; the table's header says what they are."""

GPU, CPU = "sm_80", "cpu"
"""Architectures of the table: sm_80 and later; and the CPU, whose small tiles make checks quick."""


@cache
def shipped_tiles() -> TileTable:
    """The table that comes with specc."""
    path = shipped("templates") / "cuda" / "tiles.toml"
    return parse_table(path.read_text(encoding="utf-8"), path.name, (), FORMS)


def tiles_for(schedule: str, facts: Mapping[str, int], arch: str) -> dict[int, tuple[Config, ...]]:
    """By bytes of a stored element: configurations of one kernel in order of rows."""
    return dict(dict(shipped_tiles().resolve(schedule, facts))[arch])
