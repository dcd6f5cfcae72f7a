"""Other specs than Gemma 4: what a Model Spec can say, the reference model does or refuses with a diagnostic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from specc import pipeline
from specc.diagnostics import SpecError
from specc.library import load_library
from specc.parse_spec import parse_spec
from specc.source import Source
from specc.targets.torch import target
from specc.typecheck.model import check_model
from tests.targets.torch.test_model import worst, write
from tests.typecheck.mini import MINI

TINY = Path(__file__).parents[3] / "docs" / "examples" / "tiny.spec"
SPLIT = ('"q"[heads·D] ++ "kv"[2·kv_heads·D]', '"qkv"[heads, 0 : 1 of 2, D] ++ "qkv"[heads, 1 : 2 of 2, D]')


def mini(*edits: tuple[str, str]) -> dict[str, str]:
    text = MINI
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return target.emit(check_model(parse_spec(Source("mini.spec", text)), load_library()))


def assert_phases_agree(other: Any, layers: int, vocabulary: int) -> None:
    model = other.Model(other.random_checkpoint(range(layers), seed=5), other.FLOAT64)
    prompt = torch.randint(0, vocabulary, (8,), generator=torch.Generator().manual_seed(2))
    whole = model.prefill(prompt, other.Cache(1, 8, other.FLOAT64))
    chunks, steps = other.Cache(1, 8, other.FLOAT64), other.Cache(1, 8, other.FLOAT64)
    assert worst(torch.cat([model.prefill(part, chunks) for part in prompt.split(3)]), whole) < 1e-13
    assert worst(torch.cat([model.decode(t[None], steps) for t in prompt]), whole) < 1e-13


def test_alternating_layers_agree_in_every_phase(tmp_path: Path) -> None:
    other = target.load(write(mini(), tmp_path / "torch"))
    assert other.config.KINDS == ("local", "full", "local", "full")
    assert_phases_agree(other, 4, 11)


def test_a_model_with_ops_of_its_own_and_one_kind_of_layer_agrees_in_every_phase(tmp_path: Path) -> None:
    files = target.emit(pipeline.load(TINY))
    other = target.load(write(files, tmp_path / "torch"))
    assert other.config.KINDS == ("layer",) * 3
    assert_phases_agree(other, 3, 512)


def test_pieces_take_the_rows_that_the_spec_names(tmp_path: Path) -> None:
    halves = target.load(write(mini(SPLIT), tmp_path / "halves"))
    tensor = torch.arange(32.0).repeat(8, 1).T.contiguous()
    weights = halves.weights.Weights({"m.layers.0.qkv": tensor}, 0, torch.float64)
    rows = [h * 8 + half * 4 + d for half in range(2) for h in range(4) for d in range(4)]
    assert weights["qkv_local.w"][:, 0].tolist() == rows


def test_a_weight_that_the_checkpoint_has_in_another_shape_is_reshaped(tmp_path: Path) -> None:
    plain = 'w[N, K] = "o" |\n  | qkv    | linear           | full'
    edit = (plain, plain.replace('"o"', '"o" as [hidden, heads, D]'))
    other = target.load(write(mini(edit), tmp_path / "torch"))
    tensor = torch.randn(8, 4, 4, dtype=torch.float64)
    weights = other.weights.Weights({"m.layers.0.o": tensor}, 0, torch.float64)
    assert torch.equal(weights["o_proj_local.w"], tensor.reshape(8, 16))


def test_an_input_without_a_meaning_is_refused() -> None:
    with pytest.raises(SpecError) as caught:
        mini(("tokens[T]: index", "words[T]: index"), ("tokens -> h0", "words -> h0"))
    (found,) = caught.value.diagnostics
    assert found.code == "E410" and found.span is not None
    assert "`words` is not known here; `tokens` is before the layers" in found.message
