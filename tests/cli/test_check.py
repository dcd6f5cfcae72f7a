"""`specc check`: green and red, a counterexample file, and `specc eval` replaying it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from specc.cli import run
from specc.evidence import suite
from specc.evidence.check import Executor
from specc.evidence.execute import TritonExecutor
from specc.ir import Model
from specc.lowered import all_kernels, lower_each
from specc.targets.triton.emit import emit

TINY = Path(__file__).parents[2] / "docs" / "examples" / "tiny.spec"


def check(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    capsys.readouterr()
    status = run(["check", str(TINY), "--examples", "1", "--seed", "1", *map(str, words)])
    return status, capsys.readouterr().out


def test_a_right_node_is_verified_on_both_targets(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = check(capsys, "--node", "norm1")
    assert status == 0 and text.count("VERIFIED") == 3 and "seed 1" in text


def test_the_report_for_a_program_has_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = check(capsys, "--node", "mlp.act", "--target", "torch", "--json")
    report = json.loads(text)
    (one,) = report["reports"]
    assert status == 0 and report["ok"] and report["seed"] == 1
    assert one["constants"] == {"I": "160"} and one["status"] == "VERIFIED" and one["evidence"] == "run on the CPU"
    assert one["dtypes"] == ["float32", "bfloat16", "float16"] and one["examples"] >= 5
    assert 0 <= one["error_over_bound"] <= 1 and 0 <= one["bound_over_rms"] <= 0.05


def test_a_wrong_kernel_is_refuted_and_its_counterexample_replayed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def planted(model: Model, targets: object) -> tuple[Executor, ...]:
        (kernel,) = (k for k in all_kernels(lower_each(model)) if k.name == "norm1")
        text = emit(kernel)
        assert "other=0.0" in text
        wrong = text.replace("tl.sum(", "1.5 * tl.sum(")
        assert wrong != text
        return (TritonExecutor({kernel.name: wrong}),)

    monkeypatch.setattr(suite, "executors", planted)
    status, text = check(capsys, "--node", "norm1", "--target", "triton", "--out", tmp_path)
    assert status == 1 and "REFUTED" in text and "replay: specc eval" in text
    file = tmp_path / "norm1.triton.npz"
    with np.load(file) as found:
        assert {"case", "x", "w"} <= set(found.files)
    key = f"{TINY}:layers[0].norm1"
    assert run(["eval", key, "--inputs", str(file), "--target", "oracle"]) == 0
    assert "y" in capsys.readouterr().out


def test_an_unknown_node_or_target_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, "--node", "nrom1")[0] == 2
    assert check(capsys, "--target", "metal")[0] == 2
