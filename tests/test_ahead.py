from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specc import pipeline
from specc.ahead import Compiled, compilable, compile_job, compile_model, jobs, run_jobs
from specc.cli import compile as report
from specc.cli import run
from specc.diagnostics import SpecError
from specc.inputs import Options
from specc.resources import shipped
from specc.tiles import ARCHITECTURES

GEMMA = shipped("specs") / "gemma4.spec"
MODELS = sorted(shipped("specs").glob("*.spec"))
ROOT = Path(__file__).parent.parent
TINY = ROOT / "docs" / "examples" / "tiny.spec"
MATRIX = {"sm_80": "HMMA", "sm_90": "HGMMA", "sm_100": "UTCHMMA"}
"""The instruction that multiplies tiles of many rows, by architecture."""


def picked(*names: str, arch: str = "sm_90") -> list[Any]:
    return [j for j in jobs(TINY, [arch], Options()) if j.kernel.name in names]


@pytest.fixture(scope="module")
def compiled() -> list[Compiled]:
    return [c for job in picked("norm1", "mlp_down") for c in compile_job(job)]


def test_every_launch_of_a_kernel_is_compiled_in_the_order_of_the_page(compiled: list[Compiled]) -> None:
    assert list(dict.fromkeys(c.file for c in compiled)) == ["norm1", "mlp_down"]
    assert len([c for c in compiled if c.file == "mlp_down"]) > 1
    assert all(c.good for c in compiled)


def test_two_processes_give_the_same_in_the_same_order(compiled: list[Compiled]) -> None:
    assert list(run_jobs(picked("norm1", "mlp_down"))) == compiled


def test_the_report_names_registers_and_the_tensor_core_instruction(compiled: list[Compiled]) -> None:
    many = max((c for c in compiled if c.file == "mlp_down"), key=lambda c: c.rows)
    assert many.report is not None and many.report.registers > 16
    assert any("HGMMA" in name and "BF16" in name for name in many.report.tensor_core)
    assert "HGMMA" in report.text(many)


def test_a_kernel_that_does_not_compile_is_reported_not_raised() -> None:
    (job,) = picked("norm1")
    broken = replace(job, text=job.text.replace("tl.sqrt_rn(", "tl.no_such_function("))
    (found,) = compile_job(broken)
    assert not found.good and "no_such_function" in found.error
    assert "no_such_function" in report.text(found)


def test_spills_are_not_good(compiled: list[Compiled]) -> None:
    one = compiled[0]
    assert one.report is not None
    for change in ({"spill_stores": 8}, {"spill_loads": 4}, {"shared_bytes": 1 << 20}):
        assert not replace(one, report=replace(one.report, **change)).good  # type: ignore[arg-type]


def test_the_command_fails_when_a_launch_is_not_good(
    compiled: list[Compiled], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bad = replace(compiled[0], report=None, error="out of registers")
    for found, status in ((compiled, 0), ([*compiled, bad], 1)):
        monkeypatch.setattr(report, "compile_model", lambda *_, found=found, **__: iter(found))
        assert run(["build", str(TINY), "--out", str(tmp_path), "--compile", "sm_90"]) == status
    assert "out of registers" in capsys.readouterr().out
    assert run(["build", str(TINY), "--out", str(tmp_path), "--compile", "sm_90", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["folder"] and not found["ok"] and found["compiled"][-1]["error"] == "out of registers"


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(SpecError, match="did you mean `sm_90`"):
        jobs(TINY, ["sm90"], Options())


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("spec", MODELS, ids=lambda path: path.stem)
def test_every_kernel_of_a_model_compiles_without_spills_and_on_tensor_cores(spec: Path, arch: str) -> None:
    found = list(compile_model(spec, [arch], Options()))
    assert [report.text(c) for c in found if not c.good] == []
    assert without_tensor_core(spec, found, arch) == []


def without_tensor_core(spec: Path, found: list[Compiled], arch: str) -> list[str]:
    """Contractions and prefill attentions whose kernel for many rows lacks the instruction of the architecture."""
    kernels = {k.name: k.schedule_name for x in pipeline.lower(pipeline.load(spec)) for k in x.kernels}
    lacking = []
    for name in (n for n, schedule in kernels.items() if schedule in ("contraction", "attention_prefill")):
        most = max((c for c in found if c.file == name), key=lambda c: c.rows)
        if most.report is None or not any(i.startswith(MATRIX[arch]) for i in most.report.tensor_core):
            lacking.append(name)
    return lacking


@pytest.mark.slow
def test_every_kernel_of_gemma4_compiles_with_the_oldest_triton(tmp_path: Path) -> None:
    oldest = os.environ.get("SPECC_OLDEST_TRITON")
    assert oldest, "`make test-slow` installs it and says where it is"
    command = [sys.executable, "-m", "specc", "build", str(GEMMA), "--out", str(tmp_path), "--json"]
    command += ["--target", "triton", *(word for arch in ARCHITECTURES for word in ("--compile", arch))]
    environment = {**os.environ, "PYTHONPATH": f"{Path(oldest).resolve()}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1800)
    found = json.loads(done.stdout)["compiled"]
    assert {c.get("compiler", "3.6.0") for c in found} == {"3.6.0"}
    assert [(c["file"], c["arch"], c["error"]) for c in found if c["error"]] == []


def test_cuda_kernels_stand_in_the_same_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path)
    assert run(["build", str(TINY), "--out", out, "--target", "cuda", "--compile", "sm_90"]) == 0
    lines = capsys.readouterr().out.splitlines()
    norm = next(line.split() for line in lines if line.startswith("norm1 <8>"))
    assert norm[2] == "sm_90" and norm[7] == "0" and norm[9].split("/")[0] == norm[9].split("/")[1] != "0"
    assert any(line.startswith("norm1 <1>") for line in lines)
    assert lines[-1].endswith("launches compiled, 0 not good")


def test_without_nvrtc_other_targets_compile_and_cuda_alone_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from specc.targets.cuda import aot

    monkeypatch.setattr(aot, "available", lambda: False)
    assert compilable(Options()) == ("triton",)
    with pytest.raises(SpecError, match=r"E509.*NVRTC\n  help: pip install 'specc\[cuda\]'"):
        compilable(Options(("cuda",)))


def test_a_cuda_kernel_that_does_not_compile_is_reported_not_raised() -> None:
    job = next(j for j in jobs(TINY, ["sm_90"], Options(), "cuda") if j.kernel.name == "norm1")
    (found,) = compile_job(replace(job, text=job.text.replace("specc::to_real(", "specc::no_such_function(")))
    assert not found.good and "no_such_function" in report.text(found)
