"""Other models fit the language: one file of two screens each, and the parameter count of the official class."""

from __future__ import annotations

from pathlib import Path

import pytest

from specc.format import format_ops, format_spec
from specc.formula_text import dims_text
from specc.ir import Model, Phase, Role
from specc.library import load_library
from specc.parse import parse_ops
from specc.parse_spec import parse_spec
from specc.source import Source
from specc.typecheck.model import check_model

FOLDER = Path(__file__).parent / "siblings"
COUNTS = {"delta": 26_895_998_464, "multipliers": 8_170_864_640, "nope": 27_854_780_928}
SCREEN = 50


def model(name: str) -> Model:
    spec = parse_spec(Source.read(FOLDER / f"{name}.spec"))
    return check_model(spec, load_library([FOLDER / line.text for line in spec.uses]))


@pytest.mark.parametrize("name", COUNTS)
def test_parameters_are_those_of_the_official_class(name: str) -> None:
    assert model(name).parameter_count == COUNTS[name]


@pytest.mark.parametrize("name", COUNTS)
def test_a_sibling_fits_on_two_screens_and_is_canonical(name: str) -> None:
    text = (FOLDER / f"{name}.spec").read_text(encoding="utf-8")
    assert format_spec(parse_spec(Source(name, text))) == text
    assert len(text.split("\n")) <= 2 * SCREEN


def test_ops_of_a_user_are_canonical_too() -> None:
    text = (FOLDER / "delta.ops").read_text(encoding="utf-8")
    assert format_ops(parse_ops(Source("delta.ops", text))) == text


def test_a_recurrent_state_is_read_and_replaced_in_both_phases() -> None:
    core = model("delta").variants("gdn.core")[0]
    (prefill,), (decode,) = core.phase(Phase.PREFILL), core.phase(Phase.DECODE)
    assert core.applications[0].writes[0].views[0][0] == "memory"
    assert not prefill.reads[0].appends
    assert (prefill.reads[0].wire, prefill.reads[0].state) == ("memory", "memory")
    assert dims_text(prefill.formula.tensor("S0").dims) == "[48, 128, 128]"
    assert dims_text(decode.formula.tensor("S0").dims) == "[B, 48, 128, 128]"
    assert (dict(decode.roles)["S0"], dict(decode.roles)["S"]) == (Role.CACHE, Role.CACHE)


def test_one_of_several_results_is_cut() -> None:
    conv = model("delta").variants("gdn.conv")[0]
    views = [[name for name, _ in w.views] for w in conv.applications[0].writes]
    assert views == [["window"], ["q", "k", "v"]]
    assert conv.weights[0].pieces[0].full == (10240, 1, 4)


def test_a_node_of_some_layers_leaves_the_others_alone() -> None:
    nope = model("nope")
    assert [n.path for n in nope.in_layer(3)].count("attn.rope") == 0
    assert [n.path for n in nope.in_layer(2)].count("attn.rope") == 1
    assert [n.variant_name for n in nope.variants("attn.core")] == ["attn_core_sliding", "attn_core_full"]
