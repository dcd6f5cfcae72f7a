"""Model files by users: the right ones pass, each faulty one is refuted with the node that it has wrong."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from specc.api import Spec
from specc.cli import run
from specc.oracle.arrays import Array
from specc.verify.draw import draw_tokens, draw_weights
from specc.verify.judge import Limits, Text
from specc.verify.user import Bounds, Run, run_file
from specc.verify.user_report import Case, Findings, assess, said
from specc.verify.whole import Whole
from tests.verify.models import ROOT, SEED, reduced

EXAMPLES = ROOT / "docs" / "examples"
GEMMA, QWEN = ("gemma3_270m", "gemma3.py"), ("qwen3_8_27b", "qwen3_8.py")


def given(model: str, path: Path, length: int) -> tuple[Spec, dict[str, Array], Text, Run]:
    spec = reduced(model).spec
    weights = draw_weights(spec.model, (SEED, 0))
    text = Text(0, draw_tokens(spec.model, length, (SEED, 0, 0)), length - 2)
    return spec, weights, text, run_file(path, spec.model, [weights], [[text]], Bounds())


def judged(model: str, path: Path, length: int) -> tuple[Findings, Run]:
    spec, weights, text, run = given(model, path, length)
    return assess(spec, [Case(Whole(spec.model, weights), text, run.answers[0][0])]), run


def edited(folder: Path, example: str, *edits: tuple[str, str]) -> Path:
    """A copy of an example with one line, or a few, written in another way."""
    text = (EXAMPLES / example).read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / example
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("model", "example", "length"), [(*GEMMA, 27), (*QWEN, 6)])
def test_a_right_model_passes_without_transformers(
    model: str, example: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    found, run = judged(model, EXAMPLES / example, length)
    assert [f for f in found.figures if not f.ok] == []
    assert {"embed", "layer", "head", "logits"} <= {f.part for f in found.figures}
    assert ("step" in found.given) == (example == "gemma3.py")
    assert (found.first, found.search) == (None, None)
    assert bool(run.lifted) == (example == "gemma3.py")


ROTATED = "        v = rope(v, pos, theta)\n"
PAST = "        if past is not None:\n            k, v"
FAULTS = {
    "norm weight without its 1": (
        (*GEMMA, 3), ("(1 + w.float())", "w.float()"), 0,
        "op rmsnormOffset -> rmsnorm",
        ("input_norm", "attn.qk_norm", "post_mix_norm", "post_attn_norm", "post_ffn_norm", "final_norm"),
    ),
    "window off by one": (
        (*GEMMA, 27), ("(distance < self.config", "(distance <= self.config"), 24,
        "constant window + 1", ("attn.core[sliding]",),
    ),
    "value taken after RoPE": (
        (*GEMMA, 4), (PAST, ROTATED + PAST), 1,
        "also `v` goes through it too", ("attn.rope[sliding]", "attn.rope[global]"),
    ),
    "gate halves swapped": (
        (*GEMMA, 3), ('gelu(gate, approximate="tanh") * up', 'gelu(up, approximate="tanh") * gate'), 0,
        "pieces `mlp.gate_proj.weight` and `mlp.up_proj.weight` swapped", ("mlp.gate_up",),
    ),
    "decay sign": (
        (*QWEN, 5), ("torch.exp(-self", "torch.exp(self"), 1,
        "op gdnGates -> gdnGatesGrowing", ("gdn.gates[delta]",),
    ),
}  # fmt: skip
"""The example and the length of the text, the edit, the tokens that stay right, the change that is found, and where."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_refuted_and_named(name: str, tmp_path: Path) -> None:
    (model, example, length), edit, right, change, nodes = FAULTS[name]
    found, _ = judged(model, edited(tmp_path, example, edit), length)
    assert not found.ok
    assert found.first is not None and (found.first.part, found.first.layer) == ("layer", 0)
    assert (found.token or 0) == right
    assert found.departures[0].layer == 0
    assert found.search is not None and found.search.found is not None
    assert found.search.found.whole
    guess = found.search.found.hypothesis
    assert (f"{guess.mutant.kind} {guess.mutant.text}", guess.nodes) == (change, nodes)
    text = "\n".join(said(found))
    assert "departs first in layer 0: " in text
    assert f"one change: {guess}" in text
    assert (f"first {right} tokens are right" in text) == (right > 0)


def test_without_hidden_states_logits_are_enough(tmp_path: Path) -> None:
    (model, example, length), edit, _, change, nodes = FAULTS["norm weight without its 1"]
    logits = ("        return logits, hidden\n", "        return logits\n"), ("    def step(", "    def other(")
    found, _ = judged(model, edited(tmp_path, example, edit, *logits), length)
    assert found.given == ()
    assert found.first is not None and found.first.part == "logits"
    assert found.search is not None and found.search.found is not None
    assert found.search.found.hypothesis.nodes == nodes
    assert found.search.found.hypothesis.mutant.text in change


def test_a_step_that_departs_alone_is_told_from_the_prefill(tmp_path: Path) -> None:
    edit = ("start = 0 if past is None else len(past[0])", "start = 0 if past is None else len(past[0]) - 1")
    found, _ = judged(GEMMA[0], edited(tmp_path, GEMMA[1], edit), 4)
    assert [f.part for f in found.figures if not f.ok] == ["decode"]
    assert list(said(found)) == ["prefill is right; `step`, a token at a time, departs"]


def test_two_faults_at_once_are_laid_to_a_layer(tmp_path: Path) -> None:
    edits = ("+ self.mlp", "- 1.5 * self.mlp"), ("/ width**0.5", "/ width**0.4")
    path = edited(tmp_path, QWEN[1], *edits)
    spec, weights, text, run = given(QWEN[0], path, 2)
    whole = Whole(spec.model, weights)
    found = assess(spec, [Case(whole, text, run.answers[0][0])], seconds=0.0)
    assert found.search is not None and (found.search.found, found.search.ended) == (None, False)
    assert (
        "none of 0 single changes of the spec gives these answers; the search was stopped: --search gives it more"
        in list(said(found))
    )
    assert found.departures[0].layer == 0


NUMBER = re.compile(r"-?\d+\.\d{9,}")
"""Of float64: its last digits are those of the order in which a machine adds up."""


@pytest.mark.slow
def test_the_page_shows_what_is_printed_of_a_fault(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert run(["verify", "google/gemma-3-270m", "docs/examples/gemma3_window.py", "--seed", "1", "--draws", "1"]) == 1
    page = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
    shown, told = (
        text.partition("departs first")[2].partition("REFUTED\n") for text in (capsys.readouterr().out, page)
    )
    assert shown[1:] == ("REFUTED\n", "")
    assert NUMBER.sub("…", shown[0]) == NUMBER.sub("…", told[0])
    for ours, theirs in zip(NUMBER.findall(shown[0]), NUMBER.findall(told[0]), strict=True):
        assert abs(float(ours) - float(theirs)) <= Limits().layer * abs(float(theirs))


def test_a_tensor_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(
        "import torch\ndef build(config, tensors):\n    assert sorted(tensors) == ['allow_pickle', 'file']\n"
        "    return lambda tokens: torch.zeros(len(tokens), config['vocab_size']).double()\n"
    )
    weights = {name: np.ones(2) for name in ("file", "allow_pickle")}
    found = run_file(path, reduced("gemma3_270m").spec.model, [weights], [[Text(0, np.array([1, 2]), 1)]], Bounds())
    assert not found.answers[0][0].trace.logits.any()
