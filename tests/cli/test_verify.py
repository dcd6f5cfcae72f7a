"""`specc verify`: what it prints, its JSON, its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specc import pipeline
from specc.cli import run
from specc.cli.output import BAD_INPUT, FAILED

SPEC = Path(__file__).parent.parent.parent / "specs" / "granite_3_3_8b.spec"
ARGUMENTS = ["--seed", "1", "--draws", "1"]


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """The spec with another norm before the feed-forward block."""
    text = SPEC.read_text(encoding="utf-8")
    old = "| post_attn_norm | rmsnorm   |"
    assert old in text
    path = tmp_path / "wrong.spec"
    path.write_text(text.replace(old, "| post_attn_norm | rmsnormOffset |"), encoding="utf-8")
    return path


def test_a_right_spec_is_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(SPEC), *ARGUMENTS]) == 0
    printed = capsys.readouterr().out
    assert "seed 1\n" in printed
    assert "8,170,864,640 in both" in printed
    assert "lifted to float64: " in printed
    assert printed.endswith("VERIFIED\n")
    said = printed.splitlines()[-2]
    assert said.startswith("taken from the spec, and therefore not judged by the class: ")
    keys = said.partition(": ")[2].split(", ")
    config = json.loads(pipeline.config_text(pipeline.load(SPEC)))
    assert set(keys) == config.keys() - {"architectures"}


def test_a_wrong_spec_is_refuted_and_the_node_named(wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(wrong), *ARGUMENTS]) == FAILED
    printed = capsys.readouterr().out
    assert "departs in layer 0: `post_attn_norm`: the result of `model.layers.0.post_attention_layernorm`" in printed
    assert printed.endswith("REFUTED\n")


def test_the_report_as_json(wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(wrong), *ARGUMENTS, "--json"]) == FAILED
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is False
    assert found["seed"] == 1
    assert {"rope_theta", "rms_norm_eps", "logits_scaling"} <= set(found["not_judged"])
    assert found["parameters"] == {"spec": 8_170_864_640, "class": 8_170_864_640}
    assert {d["layer"] for d in found["departures"]} == {0, 1}
    assert all(d["nodes"] == ["post_attn_norm"] for d in found["departures"])
    assert all(f["ok"] for f in found["figures"] if f["part"] in ("embed", "head"))
    assert sum(found["lifted"].values()) > 0


def test_without_lifting_nothing_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(SPEC), *ARGUMENTS, "--no-lift", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["judged"] is False and found["lifted"] is None
    assert found["worst"]["layer"]["value"] > 1e-9


def test_the_rounding_of_the_reference_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(SPEC), *ARGUMENTS, "--dtype", "bfloat16", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [r["layer"] for r in found["layers"]] == [0, 1]
    assert all(r["ratio"] <= found["limit"] for r in found["layers"])


def test_another_type_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(SPEC), "--dtype", "float16"]) == BAD_INPUT
    assert "bfloat16 as in the profile" in capsys.readouterr().err


def test_the_search_for_an_explanation_has_a_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
import torch
def build(config, tensors):
    return lambda tokens: torch.ones(len(tokens), config["vocab_size"]).double()
"""
    (tmp_path / "model.py").write_text(text, encoding="utf-8")
    assert run(["verify", str(SPEC), str(tmp_path / "model.py"), *ARGUMENTS, "--search", "0"]) == FAILED
    assert "none of 0 single changes" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--timeout", "--memory", "--search"])
def test_a_bound_without_end_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(SPEC), "model.py", option, "9" * 14]) == BAD_INPUT
    assert option in capsys.readouterr().err
