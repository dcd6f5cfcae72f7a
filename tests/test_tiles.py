"""Tables of all targets from one file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specc.api import load
from specc.diagnostics import SpecError
from specc.evidence.suite import executors
from specc.tiles import left_out, tile_tables

TINY = Path(__file__).parents[1] / "docs" / "examples" / "tiny.spec"
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
CUDA = "BLOCK_M = 32\nBLOCK_N = 16\nBLOCK_K = 16\nWARPS_M = 2\nGROUP_M = 1\nwarps = 4\nstages = 2\n"


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
    with pytest.raises(SpecError, match="no cuda tiles for `sm_75`, with the rows of `.*\n.*sm_80 and later"):
        tile_tables(path, "sm_75")


@pytest.mark.parametrize("targets", [("torch",), ("triton",), ("cuda",), ("cuda", "torch")])
def test_a_file_matters_as_far_as_targets_take_tiles_from_it(targets: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('archs = ["sm_75", "sm_120"]\n')
    assert list(tile_tables(path, "sm_120", targets)) == [t for t in targets if t != "torch"]
    if "cuda" not in targets:
        tile_tables(path, "sm_75", targets)
    with pytest.raises(SpecError, match="there is no architecture `sm_9x`"):
        tile_tables(path, "sm_9x", targets)
    path.write_text("archs = 3\n")
    with pytest.raises(SpecError, match="`archs` is a list of names"):
        tile_tables(path, "sm_90", targets)
    path.write_text("[[cuda.contraction]]\n")
    if "cuda" not in targets:
        tile_tables(path, "sm_90", targets)


def test_rows_that_no_kernel_takes_on_a_cpu_are_known(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    row = "TILE = 64\nwarps = 1\nstages = 1\n"
    path.write_text(f"[[gather]]\n{row}[[pointwise]]\narch = 'sm_90 sm_100'\n{row}[[cuda.contraction]]\n{CUDA}")
    targets = ("cuda", "torch", "triton")
    assert left_out(path, targets) == ()
    path.write_text(f"[[gather]]\narch = 'sm_80 sm_90'\n{row}[[cuda.contraction]]\narch = 'sm_80'\n{CUDA}")
    assert set(left_out(path, targets)) == {("triton", "sm_80"), ("triton", "sm_90"), ("cuda", "sm_80")}
    assert left_out(path, ("torch",)) == ()
    path.write_text(f"archs = ['sm_120']\n[[gather]]\narch = 'sm_100'\n{row}")
    assert left_out(path, targets) == (("triton", "sm_100"),)


@pytest.mark.parametrize("target", ["torch", "triton"])
def test_executors_and_nodes_read_the_rows_of_their_own_target_only(target: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("[[cuda.contraction]]\n")
    spec = load(TINY)
    (executor,) = executors(spec.model, [target], path, "sm_90")
    assert executor.name == target
    x = np.ones((2, 96))
    assert spec.node("norm1").run(target, tiles=path, gpu="sm_90", x=x, w=np.ones(96))["y"].shape == (2, 96)
    with pytest.raises(SpecError, match="E902"):
        executors(spec.model, [target, "cuda"], path, "sm_90")
