"""A user's table of tiles: what of it CUDA kernels take, and mistakes in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from specc import pipeline
from specc.ahead import compile_job, jobs
from specc.cli import run
from specc.diagnostics import SpecError
from specc.evidence.check import Status, check_kernel
from specc.evidence.execute import CudaExecutor
from specc.inputs import Options
from specc.kernels import Kernel
from specc.targets.cuda import host
from specc.targets.cuda.aot import available
from specc.targets.cuda.emit import emit, filled
from specc.targets.cuda.tiles import CPU, GPU, load_tiles, shipped_tiles, tiles_of
from specc.targets.report import CompileReport
from specc.targets.triton.tiles import load_tiles as load_triton_tiles
from tests.targets.cuda.generated import shipped
from tests.targets.cuda.storage import single

TINY = Path(__file__).parents[3] / "docs" / "examples" / "tiny.spec"
OWN = """
[[gather]]
TILE = 64
warps = 1
stages = 1

[[cuda.contraction]]
when = "N <= 4096"
BLOCK_M = 32
BLOCK_N = 16
BLOCK_K = 16
WARPS_M = 2
GROUP_M = 1
warps = 4
stages = 2
"""
SHAPE = "specc::ProductShape<32, 16, 16, 2, 2, 2, 1>"
DECODE = "[[cuda.attention_decode]]\nrows = 4\nBLOCK_L = 16\nSPLITS = 2\nwarps = 1\nstages = 1\n"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    return path


def linear() -> Kernel:
    return shipped("linear", K=72, N=40)


def test_rows_of_a_users_file_come_first_where_they_fit(own: Path) -> None:
    table = load_tiles(own)
    assert load_tiles() == shipped_tiles() and table.archs == shipped_tiles().archs
    for arch in table.archs:
        assert SHAPE in emit(linear(), arch=arch, table=table) and SHAPE not in emit(linear(), arch=arch)
    assert SHAPE not in emit(shipped("linear", K=72, N=4104), table=table)


def test_each_target_takes_its_own_rows(own: Path) -> None:
    assert {r.schedule for r in load_triton_tiles(own).rows[:1]} == {"gather"}
    assert load_triton_tiles(own).rows[1:] == load_triton_tiles().rows
    assert load_tiles(own).rows[1:] == shipped_tiles().rows


def test_a_kernel_with_a_users_tiles_is_verified(own: Path) -> None:
    kernel = linear()
    text = single(emit(kernel, arch=CPU, table=load_tiles(own)), "bfloat16")
    report = check_kernel(kernel, CudaExecutor({kernel.name: text}), 2, 1, ("bfloat16",))
    assert report.status is Status.VERIFIED, report.counterexample or report.reason


def test_a_build_takes_a_users_tiles_and_a_check_of_it_too(own: Path, tmp_path: Path) -> None:
    words = ["build", str(TINY), "--target", "cuda", "--out", str(tmp_path)]
    assert run([*words, "--tiles", str(own)]) == 0
    assert SHAPE in (tmp_path / "tiny" / "cuda" / "attn_qkv.cu").read_text(encoding="utf-8")
    assert run([*words, "--tiles", str(own), "--check"]) == 0
    assert run([*words, "--check"]) == 1
    assert run(words) == 0
    assert SHAPE not in (tmp_path / "tiny" / "cuda" / "attn_qkv.cu").read_text(encoding="utf-8")


def test_a_check_takes_a_users_tiles(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []
    monkeypatch.setattr(host, "build", lambda text, wide=False: built.append(text) or BUILD(text, wide))
    words = ["check", str(TINY), "--node", "attn.qkv", "--target", "cuda", "--target", "triton", "--examples", "0"]
    assert run([*words, "--tiles", str(own)]) == 0
    assert built and all(SHAPE in text for text in built) and "2 VERIFIED" in capsys.readouterr().out
    own.write_text("cuda = 3")
    assert run([*words, "--tiles", str(own)]) == 2
    assert run([*words, "--tiles", str(own.with_name("none.toml"))]) == 2
    assert "E902" in (err := capsys.readouterr().err) and "E501" in err


BUILD = host.build


@pytest.mark.skipif(not available(), reason="NVRTC is not installed")
def test_a_users_tiles_are_compiled(own: Path) -> None:
    job = next(j for j in jobs(TINY, ["sm_90"], Options(("cuda",), own), "cuda") if j.kernel.name == "attn_qkv")
    found = compile_job(job)
    assert all(one.good for one in found) and any(SHAPE in one.report.kernel for one in found if one.report)


@pytest.mark.parametrize("heads", [16, 17, 128, 129, 1000])
@pytest.mark.parametrize("warps", [1, 2, 4, 8, 16, 32])
def test_query_heads_of_one_kv_head_are_as_many_blocks_as_need_be(heads: int, warps: int, own: Path) -> None:
    kernel = shipped("decodeGQA", lead=0, D=16, heads=heads, kv_heads=1, scale=1)
    own.write_text(row("attention_decode", BLOCK_L=max(16, 8 * warps), SPLITS=4, warps=warps, stages=1))
    for arch, table in ((GPU, load_tiles(own)), (GPU, None), (CPU, None)):
        ready, slots = filled(kernel, tiles_of(arch, table))
        assert all(one.threads <= 1024 for width in (2, 4) for one in slots.instances(ready.name, width))


@pytest.mark.parametrize(("warps", "fits"), [(32, True), (33, False)])
def test_a_block_of_more_than_1024_threads_does_not_fit(warps: int, fits: bool) -> None:
    report = CompileReport("k", "sm_90", "NVRTC", warps, 1, True, 32, 0, 0, 0, 1024, 0, 10, (), ())
    assert report.fits == fits


def row(schedule: str, **tiles: int) -> str:
    return f"[[cuda.{schedule}]]\n" + "".join(f"{name} = {value}\n" for name, value in tiles.items())


def contraction(**changes: int) -> str:
    good = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "WARPS_M": 2, "GROUP_M": 1, "warps": 4, "stages": 2}
    return row("contraction", **{**good, **changes})


def prefill(**changes: int) -> str:
    return row("attention_prefill", **{"BLOCK_T": 32, "BLOCK_L": 32, "warps": 4, "stages": 1, **changes})


FAULTS = {
    "cuda = 3": "own.toml:1:1: error[E902]: `cuda` is no table of schedules",
    "[cuda]\ncontractions = []": "`cuda.contractions` is no list of a schedule",
    "[cuda.contraction]\nBLOCK_M = 16": "help: write `[[cuda.contraction]]` above the lines of each row",
    '[cuda]\narchs = ["sm_90"]': "`cuda.archs` is no list of a schedule",
    row("gather", TILE=64): "`cuda.gather` is no list of a schedule",
    "\n" + contraction(BLOCK_M=48): "own.toml:2:3: error[E902]: cuda.contraction, row 1: `BLOCK_M` is a power of two",
    contraction() + contraction(warps=64): "cuda.contraction, row 2: a block has at most 32 warps, not 64",
    contraction(BLOCK_M=8): "BLOCK_M below 16 takes at most BLOCK_M rows: give `rows`, at most 8",
    contraction(BLOCK_M=8, rows=8): "BLOCK_M below 16 takes 8 warps",
    contraction(WARPS_M=8): "WARPS_M is at most the number of warps, 4",
    contraction(BLOCK_N=8): "BLOCK_N at least 16 and 8 · warps / WARPS_M",
    contraction(stages=1): "the pipeline has at least 2 stages",
    contraction() + 'arch = "sm_90"': "unknown architecture `sm_90`; `archs` lists sm_80, cpu",
    prefill(BLOCK_T=128): "BLOCK_T is 16 or more, at most 16 for each of the 4 warps",
    prefill(BLOCK_T=16, BLOCK_L=16): "BLOCK_L is at least 32, 8 keys for each warp of the same queries",
    prefill(rows=5): "`rows` chooses no tiles of attention_prefill",
    row("attention_decode", BLOCK_L=16, SPLITS=4, warps=4, stages=1): "BLOCK_L is at least 32",
    row("recurrence", CHUNK=8, BLOCK_V=16, warps=4, stages=1): "CHUNK and BLOCK_V are at least 16",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_mistake_in_a_file_is_said(text: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        load_tiles(path)
    assert FAULTS[text] in str(caught.value)


def test_tiles_of_decode_attention_that_differ_by_rows_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(DECODE)
    with pytest.raises(SpecError, match=r"E901.*attn_core_decode differ in warps or BLOCK_L by rows"):
        pipeline.build(TINY, tmp_path / "out", Options(("cuda",), path))
    path.write_text(DECODE + DECODE.replace("rows = 4\n", ""))
    assert pipeline.build(TINY, tmp_path / "out", Options(("cuda",), path)).written is not None
