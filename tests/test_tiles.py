"""Tables of all targets from one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from specc.diagnostics import SpecError
from specc.tiles import tile_tables

WRONG = """[[gather]]
TILE = 3
warps = 1
stages = 1

[[cuda.recurrence]]
CHUNK = 8
BLOCK_V = 16
warps = 1
stages = 1
"""


def test_mistakes_in_the_rows_of_all_targets_are_told_together(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(WRONG)
    with pytest.raises(SpecError) as caught:
        tile_tables(path)
    assert [(d.code, d.span.line) for d in caught.value.diagnostics if d.span] == [("E902", 1), ("E902", 6)]
    assert list(tile_tables(targets=("triton",))) == ["triton"]


def test_the_table_of_a_gpu_is_that_of_the_newest_architecture_that_it_runs() -> None:
    assert {t: table.archs for t, table in tile_tables(gpu="sm_90").items()} == {
        "triton": ("sm_90",),
        "cuda": ("sm_80",),
    }


def test_an_architecture_of_a_users_file_is_known(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('archs = ["sm_120"]\n')
    assert tile_tables(path, "sm_120")["triton"].archs == ("sm_120",)
    with pytest.raises(SpecError, match="there is no architecture `sm_120`"):
        tile_tables(gpu="sm_120")
    path.write_text('archs = ["sm_75"]\n')
    with pytest.raises(SpecError, match="there are no tiles for `sm_75`.*\n.*sm_80 and later"):
        tile_tables(path, "sm_75")
