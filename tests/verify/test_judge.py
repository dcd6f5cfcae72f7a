"""Every shipped spec against the class that it names, part by part, and what is said of one that differs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import specc
from specc import pipeline
from specc.diagnostics import SpecError
from specc.ir import Model
from specc.verify.draw import draw_weights
from specc.verify.implementation import Trace
from specc.verify.judge import Figure, Limits, Text, compare_parts, judge, worst
from specc.verify.lift import Lift
from specc.verify.locate import Departure, apart, pairs
from specc.verify.mutate import Mutant, all_mutants, changed_layers
from specc.verify.official import Official, parameter_count
from specc.verify.report import figure_values, texts
from specc.verify.whole import Cache, Step, Whole
from tests.verify.models import NAMES, ROOT, SEED, case, reduced

PARAMETERS = {
    "gemma4": 30_697_345_340,
    "qwen3_0_6b": 596_049_920,
    "granite_3_3_8b": 8_170_864_640,
    "qwen3_8_27b": 26_895_998_464,
    "muse_glimmer_30b": 27_854_780_928,
    "gemma3_270m": 268_098_176,
}
"""Elements of the published checkpoints, text path."""


@pytest.mark.parametrize("name", NAMES)
def test_every_part_is_that_of_the_official_class(name: str) -> None:
    c = case(name)
    text = replace(c.text, start=len(c.text.tokens) - 3)
    figures, departures = judge(c.whole, c.official, text)
    assert [f for f in figures if not f.ok] == []
    assert departures == []
    layers = c.whole.model.layer_count
    parts = [f.part for f in figures]
    assert parts.count("layer") == parts.count("stack") == layers
    assert {"embed", "node", "head", "logits", "chunks", "decode"} <= set(parts)


def test_a_layer_whose_heads_forget_is_that_of_the_official_class() -> None:
    model, text = reduced("qwen3_8_27b").spec.model, list(texts(reduced("qwen3_8_27b"), SEED, 1))[1]
    weights = draw_weights(model, (SEED, 1), forgetful=True)
    whole, steps = Whole(model, weights), list[Step]()
    trace = Official(model, weights, Lift()).prefill(text.tokens)
    assert trace.hidden is not None
    found = whole.layer(0, trace.hidden[0], Cache(), steps=steps)
    (alpha,) = (s.results["alpha"] for s in steps if "alpha" in s.results)
    assert 0 < alpha[:, 0].min() < 1e-12 and np.count_nonzero(alpha[:, 1] == 0) > len(alpha) / 2
    assert apart(found, trace.hidden[1]) <= Limits().recurrent


@pytest.mark.parametrize("name", NAMES)
def test_every_tap_is_the_node_that_holds_its_weight(name: str) -> None:
    c = case(name)
    assert c.trace.hidden is not None
    known = 0
    for layer in range(c.whole.model.layer_count):
        for step in _steps(c.whole, c.trace, layer):
            for pair in pairs(c.whole.model, step, layer, c.trace):
                known += 1
                assert apart(pair.ours, pair.theirs) <= 1e-14, (layer, step.node.path, pair.place)
    assert known >= 10 * c.whole.model.layer_count


def _steps(whole: Whole, trace: Trace, layer: int) -> Iterator[Step]:
    steps: list[Step] = []
    assert trace.hidden is not None
    whole.layer(layer, trace.hidden[layer], Cache(), steps=steps)
    return iter(steps)


@pytest.mark.parametrize("name", NAMES)
def test_the_spec_has_as_many_parameters_as_the_class_and_the_checkpoint(name: str) -> None:
    spec = specc.load(ROOT / "specs" / f"{name}.spec")
    assert spec.parameter_count == parameter_count(spec.model) == PARAMETERS[name]


@pytest.mark.parametrize("name", NAMES)
def test_without_lifting_the_roundings_to_float32_show(name: str) -> None:
    c = case(name)
    plain = Official(c.whole.model, c.weights).prefill(c.text.tokens)
    figures, _ = compare_parts(c.whole, plain, c.text)
    assert max(f.value for f in figures if f.part == "layer") > 1e-9


LOCATED = {
    "constant attn.rope[sliding]: theta · 65/64": ("attn.rope",),
    "constant attn.core[sliding]: window - 1": ("attn.rope", "attn.core"),
    "constant attn.core[global]: scale · 65/64": ("attn.rope", "attn.core"),
    "constant input_norm: eps · 65/64": ("input_norm",),
    "op attn.v_norm[global]: rmsnormUnit -> l2norm": ("attn.v_norm",),
    "pieces attn.qkv_proj[sliding]: w": ("attn.qkv_proj", "attn.qk_norm"),
    "constant post_ffn_norm: eps · 65/64": ("post_ffn_norm",),
    "constant attn_residual: r · 65/64": ("attn_residual",),
    "constant mlp_residual: r · 65/64": ("mlp_residual",),
    "constant final_norm: eps · 65/64": ("final_norm",),
    "constant lm_head: softcap · 65/64": ("lm_head",),
    "constant embed: mul · 65/64": ("embed",),
    "wire attn_residual: h: an -> a": ("attn_residual",),
}
"""Changes of gemma4, and the nodes that are named."""


def test_the_node_that_departs_is_named_with_both_values() -> None:
    c, spec = case("gemma4"), reduced("gemma4").spec
    found = {}
    library = pipeline.libraries(spec.path, spec.syntax)
    for mutant in all_mutants(spec.model, spec.syntax, library, LOCATED.__contains__):
        found[str(mutant)] = _departure(c.whole, spec.model, mutant, c.trace, c.text)
    assert {text: d.suspects for text, d in found.items()} == LOCATED
    for d in found.values():
        assert d.ours != d.theirs
        assert f"{d.ours:.17g}" in str(d) and f"{d.theirs:.17g}" in str(d)


def _departure(whole: Whole, model: Model, mutant: Mutant, trace: Trace, text: Text) -> Departure:
    other = Whole(mutant.model, whole.tensors)
    figures, departures = compare_parts(other, trace, text, layers=changed_layers(model, mutant.model))
    assert worst(figures).value > worst(figures).limit
    return departures[0]


def test_logits_alone_are_judged_without_naming_a_part() -> None:
    class Logits:
        def prefill(self, tokens: np.ndarray) -> Trace:  # type: ignore[type-arg]
            return Trace(c.trace.logits * 1.5)

        def decode(self, tokens: np.ndarray, start: int) -> None:  # type: ignore[type-arg]
            return None

    c = case("granite_3_3_8b")
    figures, departures = judge(c.whole, Logits(), c.text)
    assert [(f.part, f.ok) for f in figures] == [("logits", False), ("chunks", False)]
    assert departures == []


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_figure_that_is_no_number_fails(value: float) -> None:
    figure = Figure("layer", "", 0, 0, 1, value, 1e-14)
    assert not figure.ok
    assert worst([Figure("layer", "", 1, 0, 1, 1.0, 1e-14), figure]) is figure or value == float("inf")


@pytest.mark.parametrize(
    ("official", "message"),
    [
        ("transformers.NoSuchModel", "has no class"),
        ("elsewhere.Model", "has no class"),
        ("transformers.Gemma4Config", "cannot be built"),
        ("transformers.Gemma4Model", "it gives no logits"),
    ],
)
def test_a_class_that_is_no_language_model_is_refused(official: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parameter_count(replace(reduced("gemma4").spec.model, official_class=official))


def test_tensors_that_only_one_side_has_are_named() -> None:
    c = case("granite_3_3_8b")
    weights = {n: w for n, w in c.weights.items() if n != "model.norm.weight"} | {"model.extra": np.zeros(3)}
    with pytest.raises(SpecError) as caught:
        Official(c.whole.model, weights)
    assert "the class has no `model.extra`" in str(caught.value)
    assert "the spec has no `model.norm.weight`" in str(caught.value)


def test_figures_that_are_no_numbers_have_names_in_json() -> None:
    found = json.dumps(figure_values(Figure("layer", "", 0, 0, 1, float("nan"), 1e-14)), allow_nan=False)
    assert json.loads(found)["value"] == "nan"
