from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from specc.cli import run
from specc.targets.triton import target

TINY = str(Path(__file__).parents[2] / "docs" / "examples" / "tiny.spec")


@pytest.fixture
def spoilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every generated norm adds ε a second time."""
    real = target.emit
    monkeypatch.setattr(target, "emit", lambda *a: real(*a).replace("+ 1e-05)", "+ 1e-05 + 1e-05)"))


def test_a_right_spec_is_verified_in_both_targets(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["check", TINY, "--node", "add1", "--node", "mlp.act", "--examples", "1", "--seed", "0", "--json"]
    assert run(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] and found["seed"] == 0
    assert [(r["kernel"], r["target"]) for r in found["reports"]] == [
        (kernel, t) for kernel in ("add1", "mlp_act") for t in ("torch", "triton")
    ]
    assert all(r["examples"] > 3 and r["bound_over_rms"] < 0.05 for r in found["reports"])


@pytest.mark.usefixtures("spoilt")
def test_a_wrong_kernel_is_refuted_with_a_file_that_eval_replays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["check", TINY, "--node", "norm1", "--target", "triton", "--examples", "1", "--seed", "0"]
    assert run([*arguments, "--out", str(tmp_path)]) == 1
    text = capsys.readouterr().out
    assert "REFUTED" in text and "are outside their bound" in text and text.endswith("1 REFUTED\n")
    (command,) = [line.split("replay: ")[1] for line in text.splitlines() if "replay: " in line]
    assert str(tmp_path / "norm1.triton.npz") in command
    assert run(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out.startswith("y [")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--node", "norm11"], "did you mean `norm1`?"), (["--target", "cuda"], "there is no target `cuda`")],
)
def test_a_wrong_name_is_a_message(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", TINY, *arguments]) == 2
    assert message in capsys.readouterr().err
