"""Changes of a spec that stand in for a faulty implementation are found again, by their own name."""

from __future__ import annotations

import numpy as np
import pytest

from specc.cli import run
from specc.verify.draw import draw_tokens, draw_weights
from specc.verify.explain import Search, first_row
from specc.verify.hypotheses import Hypothesis, hypotheses
from specc.verify.implementation import Trace
from specc.verify.judge import Text
from specc.verify.user import Answer
from specc.verify.user_report import Case, assess
from specc.verify.whole import Cache, Whole
from tests.verify.models import SEED, reduced

FAULTS = {
    "`attn.v_norm[global]`: wire x: k -> kr": "gemma4",
    "`layers`: layers counted from 1": "gemma3_270m",
    "`attn.rope`: op rope -> ropeInterleaved": "qwen3_0_6b",
    "`attn.core`: op decodeGQA -> decodeTiled": "granite_3_3_8b",
    "`attn.core`: constant scale -> 1": "qwen3_0_6b",
    "`attn.core`: wire q: qr -> qn": "qwen3_0_6b",
    "`attn_residual`, `mlp_residual`: constant r -> 1": "granite_3_3_8b",
}


def found_again(name: str, text: str) -> tuple[Hypothesis, Search]:
    spec = reduced(name).spec
    fault = next(h for h in hypotheses(spec, lambda k: True) if str(h) == text)
    weights, tokens = draw_weights(spec.model, (SEED, 0)), draw_tokens(spec.model, 4, (SEED, 1))
    answer = Answer(_trace(Whole(fault.mutant.model, weights), tokens), None)
    found = assess(spec, [Case(Whole(spec.model, weights), Text(0, tokens, 2), answer)])
    assert found.search is not None
    return fault, found.search


def _trace(whole: Whole, tokens: np.ndarray) -> Trace:  # type: ignore[type-arg]
    hidden, cache = [whole.before(tokens)], Cache()
    for layer in range(whole.model.layer_count):
        hidden.append(whole.layer(layer, hidden[-1], cache))
    return Trace(whole.after(hidden[-1]), tuple(hidden))


@pytest.mark.parametrize("text", FAULTS)
def test_a_change_is_found_again_by_its_name(text: str) -> None:
    fault, search = found_again(FAULTS[text], text)
    assert search.found is not None and search.found.whole
    assert str(search.found.hypothesis) == str(fault)


def test_the_first_row_that_differs_is_told() -> None:
    ones = np.ones((3, 2))
    assert first_row(ones, ones, 0.0) is None
    assert first_row(ones, ones + np.array([[0.0], [0.0], [1.0]]), 0.1) == 2
    assert first_row(ones, ones * np.nan, 0.1) == 0


def test_a_model_file_is_judged_in_float64_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "Qwen/Qwen3-0.6B", "model.py", "--dtype", "bfloat16"]) == 2
    assert "a model file is not judged in `bfloat16`" in capsys.readouterr().err
