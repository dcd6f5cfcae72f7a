"""Every shipped model against what is published of it: parameters, node table, configuration."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from specc import pipeline
from specc.diagnostics import SpecError
from specc.format import format_spec
from specc.formula_text import dims_text
from specc.ir import Model, Phase, Role
from specc.page import model_page, page_values
from specc.page.markdown import plain
from specc.reduce import reduce_spec
from specc.resources import shipped
from specc.syntax import Number
from specc.syntax_spec import SpecFile
from specc.typecheck.model import check_model
from tests.models import gemma3, gemma4, granite, qwen3, qwen3_8
from tests.models import muse as muse_glimmer
from tests.models.published import NOT_ARCHITECTURE, Published, leaves, texts
from tests.page.founding import CONFIG

MODELS: dict[str, Published] = {
    "gemma3_270m": gemma3.PUBLISHED,
    "gemma4": gemma4.PUBLISHED,
    "granite_3_3_8b": granite.PUBLISHED,
    "muse_glimmer_30b": muse_glimmer.PUBLISHED,
    "qwen3_0_6b": qwen3.PUBLISHED,
    "qwen3_8_27b": qwen3_8.PUBLISHED,
}
every_model = pytest.mark.parametrize("name", MODELS)


def spec(name: str) -> Path:
    return shipped("specs") / f"{name}.spec"


@cache
def model(name: str) -> Model:
    return pipeline.load(spec(name))


def test_every_shipped_spec_is_here() -> None:
    assert sorted(p.stem for p in shipped("specs").glob("*.spec")) == sorted(MODELS)


@every_model
def test_parameters_are_those_of_the_official_class(name: str) -> None:
    assert model(name).parameter_count == MODELS[name].parameters


@every_model
def test_the_spec_is_canonical_and_states_no_count(name: str) -> None:
    text = spec(name).read_text(encoding="utf-8")
    assert format_spec(pipeline.parse(spec(name))) == text
    assert str(MODELS[name].parameters) not in text.replace(",", "").replace("_", "")


def constants(cell: str) -> dict[str, object]:
    """`H=640, scale=1 / √256`: numbers as float64, everything else as its text."""
    pairs = (part.split("=", 1) for part in cell.split(", "))
    return {name: number(value) for name, value in pairs}


def number(text: str) -> object:
    found = re.fullmatch(r"(√)?([\d.e+-]+)(?: / √([\d.e+-]+))?", text)
    if found is None:
        return text
    value = float(found[2]) ** (0.5 if found[1] else 1)
    return value if found[3] is None else value * float(found[3]) ** -0.5


@every_model
def test_the_page_has_the_published_node_table(name: str) -> None:
    page = json.loads(json.dumps(page_values(model_page(model(name), ()))))
    found = [(r["Node"], r["Op Spec"], r["Layers"], constants(r["Constants"])) for r in page["nodes"]]
    wanted = [(node, op, layers, constants(cell)) for node, op, layers, cell in MODELS[name].nodes]
    assert found == wanted


FACTS = {
    "gemma3_270m": {
        "Layers": "18 (15 sliding-window attention, 3 full attention)",
        "Norm": "(1 + w)·x̂, ε = 1e-06",
        "Embedding": "tied to the LM head, × √640",
    },
    "granite_3_3_8b": {"Layers": "40", "Embedding": "tied to the LM head, × 12", "Logits": "× 0.0625"},
    "muse_glimmer_30b": {
        "Layers": "52 (39 sliding-window attention, 13 full attention)",
        "Norm": "(1 + w)·x̂, ε = 1e-05",
        "Embedding": "not tied, normed with ε = 1e-05",
        "Logits": "× 1 / √26, soft-capped at 20",
    },
    "qwen3_0_6b": {"MLP width": "3,072 (silu)", "Norm": "w·x̂, ε = 1e-06", "Embedding": "tied to the LM head"},
    "qwen3_8_27b": {"Layers": "64 (48 gated DeltaNet, 16 full attention)", "Embedding": "not tied"},
}


@pytest.mark.parametrize("name", FACTS)
def test_the_page_says_what_is_peculiar_to_a_model(name: str) -> None:
    said = {fact.label: plain(fact.value) for fact in model_page(model(name), ()).facts}
    assert {label: said.get(label) for label in FACTS[name]} == FACTS[name]
    assert ("Logits" in said) == ("Logits" in FACTS[name])


@every_model
def test_the_configuration_equals_the_published_one(name: str) -> None:
    """Key by key, an integer where an integer is published and a float where a float is."""
    assert texts(json.loads(pipeline.config_text(model(name)))) == texts(MODELS[name].config)


def test_the_configuration_of_gemma_4_is_that_of_its_founding_page() -> None:
    """All values, and all types but those of a few whole numbers: config.json has floats there."""
    found = json.loads(pipeline.config_text(model("gemma4")))
    assert found == CONFIG
    assert {key for key, text in texts(found).items() if text != texts(CONFIG)[key]} == gemma4.FLOATS.keys()


@every_model
def test_a_key_that_is_left_out_has_a_reason_and_is_not_rendered(name: str) -> None:
    reasons = [key for listed in NOT_ARCHITECTURE.values() for key in listed]
    assert len(reasons) == len(set(reasons))
    left_out = MODELS[name].left_out
    assert [key for key in left_out if key.rsplit(".", 1)[-1] not in reasons] == []
    assert leaves(MODELS[name].config).keys().isdisjoint(left_out)


@every_model
def test_an_edited_size_changes_the_configuration(name: str) -> None:
    tree, before = pipeline.parse(spec(name)), dict(model(name).config)
    for size, value in literal_sizes(tree).items():
        assert edited_config(name, tree, size, value) != before, size


def edited_config(name: str, tree: SpecFile, size: str, value: int) -> dict[str, object]:
    """The configuration with a size doubled, or halved where twice as many heads share nothing."""
    try:
        edited = check_model(reduce_spec(tree, {size: 2 * value}), model(name).library)
    except SpecError:
        edited = check_model(reduce_spec(tree, {size: value // 2}), model(name).library)
    return dict(edited.config)


def literal_sizes(tree: SpecFile) -> dict[str, int]:
    """Sizes that are not written in terms of others; of a broken number the integer part."""
    written = [(x.name, x.value) for x in tree.sizes.sizes] if tree.sizes else []
    written += [(f"{c.name}.{x.name}", x.value) for c in tree.layers.classes for x in c.sizes]
    written.append(("layers", tree.layers.count))
    return {name: int(value.value) for name, value in written if isinstance(value, Number)}


def test_a_recurrent_state_is_read_and_replaced_in_both_phases() -> None:
    core = model("qwen3_8_27b").variants("gdn.core")[0]
    (prefill,), (decode,) = core.phase(Phase.PREFILL), core.phase(Phase.DECODE)
    assert core.applications[0].writes[0].views[0][0] == "memory"
    assert not prefill.reads[0].appends
    assert (prefill.reads[0].wire, prefill.reads[0].state) == ("memory", "memory")
    assert dims_text(prefill.formula.tensor("S0").dims) == "[48, 128, 128]"
    assert dims_text(decode.formula.tensor("S0").dims) == "[B, 48, 128, 128]"
    assert dict(decode.roles)["S0"] is dict(decode.roles)["S"] is not Role.ACTIVATION


def test_one_of_several_results_is_cut() -> None:
    conv = model("qwen3_8_27b").variants("gdn.conv")[0]
    views = [[name for name, _ in w.views] for w in conv.applications[0].writes]
    assert views == [["window"], ["q", "k", "v"]]
    assert conv.weights[0].pieces[0].full == (10240, 1, 4)


def test_a_node_of_some_layers_leaves_the_others_alone() -> None:
    muse = model("muse_glimmer_30b")
    assert [n.path for n in muse.in_layer(3)].count("attn.rope") == 0
    assert [n.path for n in muse.in_layer(2)].count("attn.rope") == 1
    assert [n.variant_name for n in muse.variants("attn.core")] == ["attn_core_sliding", "attn_core_global"]
