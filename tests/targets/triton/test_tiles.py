"""The table of tiles: the first row that fits, overrides, and mistakes in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from specc.diagnostics import SpecError
from specc.targets.triton.tiles import FACTS, TILES, load_tiles, next_power_of_two, parse_tiles, shipped_tiles

OWN = 'gather = [{ arch = "sm_90", bytes = 2, when = "width >= 100", TILE = 256, warps = 2, stages = 1 }]\n'
WIDE = {"width": 100, "axes": 1, "reads": 1}


def test_the_shipped_table_covers_every_schedule_gpu_and_storage_type() -> None:
    for schedule in TILES:
        for size in (1, 64, 5000, 10**6):
            for _, widths in shipped_tiles().resolve(schedule, dict.fromkeys(FACTS[schedule], size)):
                assert all(found[-1].rows is None for _, found in widths)


def test_few_rows_have_tiles_of_their_own() -> None:
    facts = {"N": 16384, "K": 5376, "aligned": 16, "reads": 1}
    few, many = dict(dict(shipped_tiles().resolve("contraction", facts))["sm_90"])[2]
    assert (few.rows, many.rows) == (16, None)
    assert few.tile("BLOCK_M") < many.tile("BLOCK_M")


def test_rows_of_a_users_file_come_first_where_they_fit(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    table = load_tiles(path)
    found = dict(table.resolve("gather", WIDE))
    assert dict(found["sm_90"])[2][0].tile("TILE") == 256
    assert dict(found["sm_80"])[2][0].tile("TILE") != 256
    assert dict(dict(table.resolve("gather", WIDE | {"width": 99}))["sm_90"])[2][0].tile("TILE") != 256


def test_a_users_file_may_name_another_gpu_but_must_cover_it(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('archs = ["sm_120"]\ngather = [{ arch = "sm_120", TILE = 64, warps = 1, stages = 1 }]\n')
    table = load_tiles(path)
    assert table.archs[-1] == "sm_120"
    assert dict(table.resolve("gather", WIDE))["sm_120"]
    with pytest.raises(SpecError, match="no tiles for contraction on sm_120"):
        table.resolve("contraction", {"N": 1, "K": 1, "aligned": 1, "reads": 1})


ROW = "[[gather]]\nTILE = 64\nwarps = 1\nstages = 1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gather = [", "own.toml:1:11: error[E902]: this is no TOML: invalid value"),
        ("archs = []\ngather = ]", "own.toml:2:10: error[E902]: this is no TOML: invalid value"),
        ("gather = " + "[\n" * 9_000 + "]" * 900, "own.toml: lists or tables are nested too deeply"),
        ("gathers = []", "`gathers` is no list of a schedule"),
        ("gather = 3", "own.toml:1:1: error[E902]: `gather` is no list of rows"),
        ("\ngather.TILE = 5", "own.toml:2:1: error[E902]: `gather` is no list of rows"),
        ("[gather]\nTILE = 5", "help: write `[[gather]]` above the lines of each row"),
        (ROW + "\n  " + ROW.replace("64", "5"), "own.toml:6:5: error[E902]: gather, row 2: `TILE` is a power of two"),
        ('archs = "sm_90"', "`archs` is a list"),
        ("gather = [{ TILE = 100, warps = 1, stages = 1 }]", "`TILE` is a power of two, not 100"),
        ("gather = [{ TILE = 64, warps = 3, stages = 1 }]", "`warps` is a power of two"),
        ("gather = [{ TILE = 64, warps = 1 }]", "missing: stages"),
        ("gather = [{ TILES = 64, warps = 1, stages = 1 }]", "unknown: TILES"),
        ("gather = [{ bytes = 8, TILE = 64, warps = 1, stages = 1 }]", "`bytes` is 2 or 4"),
        ('gather = [{ arch = "sm_1", TILE = 64, warps = 1, stages = 1 }]', "unknown architecture `sm_1`"),
        ("gather = [{ rows = 0, TILE = 64, warps = 1, stages = 1 }]", "`rows` is a positive number"),
        ('gather = [{ when = "N > 1", TILE = 64, warps = 1, stages = 1 }]', "`when` has `N > 1`"),
        ('gather = [{ when = "width", TILE = 64, warps = 1, stages = 1 }]', "`when` has `width`"),
        ("gather = [3]", "row 1: not a table"),
    ],
)
def test_a_mistake_in_a_file_is_said(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_tiles(text, "own.toml", ("sm_90",))
    assert message in str(caught.value)


def test_all_mistakes_of_a_file_are_said_together() -> None:
    text = "a = 1\ngather = [{ TILE = 3, warps = 1, stages = 1 }, { TILE = 4, warps = 0, stages = 1 }]\n"
    with pytest.raises(SpecError) as caught:
        parse_tiles(text, "own.toml", ("sm_90",))
    assert len(caught.value.diagnostics) == 3


@pytest.mark.parametrize(("n", "power"), [(0, 1), (1, 1), (2, 2), (3, 4), (4, 4), (5376, 8192)])
def test_the_next_power_of_two(n: int, power: int) -> None:
    assert next_power_of_two(n) == power
