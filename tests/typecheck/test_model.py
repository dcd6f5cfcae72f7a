# ruff: noqa: E501
"""Checking Model Specs: what a right one means. Wrong ones are in tests/diagnostics."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import pytest

from specc.diagnostics import SpecError
from specc.formula_text import dims_text, expr_text, formula_text
from specc.ir import Model, Phase, Role
from specc.library import load_library
from specc.parse_spec import parse_spec
from specc.source import Source
from specc.typecheck.model import check_model
from tests.typecheck.mini import MINI

ROOT = Path(__file__).parent.parent.parent


@cache
def gemma() -> Model:
    return check_model(parse_spec(Source.read(ROOT / "specs" / "gemma4.spec")), load_library())


def check(text: str) -> Model:
    return check_model(parse_spec(Source("mini.spec", text)), load_library())


def edited(*edits: str) -> str:
    text = MINI
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def test_the_founding_spec_counts_its_parameters() -> None:
    assert gemma().parameter_count == 30_697_345_340


def test_the_founding_spec_has_its_layers_and_classes() -> None:
    model = gemma()
    sliding, full = model.classes
    assert (model.layer_count, len(sliding.layers), full.layers[:2], full.layers[-1]) == (60, 50, (5, 11), 59)
    assert full.predicate == "i % 6 == 5"


def test_constants_are_shown_sorted_and_symbolic() -> None:
    rope = gemma().variants("attn.rope")[1]
    shown = [f"{n}={expr_text(v)}" for n, v in rope.constants if not isinstance(v, str | bool)]
    assert shown == ["D=512", "active=64", "denom=512", "rot=512", "theta=1000000"]
    assert expr_text(dict(gemma().variants("embed")[0].constants)["mul"]) == "√5376"  # type: ignore[arg-type]


def test_an_attention_node_has_both_phases() -> None:
    core = gemma().variants("attn.core")[0]
    (prefill,), (decode,) = core.phase(Phase.PREFILL), core.phase(Phase.DECODE)
    assert (prefill.op.name, decode.op.name) == ("slidingGQA", "slidingDecodeGQA")
    assert [dims_text(t.dims) for t in prefill.formula.inputs] == [
        "[T, 32, 256]", "[L, 16, 256]", "[L, 16, 256]", "[T]",
    ]  # fmt: skip
    assert [dims_text(t.dims) for t in decode.formula.inputs] == [
        "[B, 32, 256]", "[B, S, 16, 256]", "[B, S, 16, 256]", "[B]",
    ]  # fmt: skip
    assert [r.wire for r in prefill.reads] == ["qr", "kr", "vn", "pos"]
    assert [r.wire for r in decode.reads] == ["qr", "kr", "vn", "seq_lens"]
    assert dict(decode.roles)["k"] is Role.CACHE


def test_other_nodes_have_one_form_for_both_phases() -> None:
    norm = gemma().variants("final_norm")[0]
    assert norm.phase(Phase.DECODE) == norm.phase(Phase.PREFILL)
    assert len(norm.bound) == 1


def test_a_projection_is_cut_into_heads_and_heads_are_read_as_one_row() -> None:
    qkv, o_proj = gemma().variants("attn.qkv_proj")[1], gemma().variants("attn.o_proj")[1]
    (write,) = qkv.applications[0].writes
    assert [(n, dims_text(d)) for n, d in write.views] == [("q", "[T, 32, 512]"), ("k", "[T, 4, 512]")]
    assert dims_text(o_proj.phase(Phase.PREFILL)[0].formula.tensor("x").dims) == "[T, 16384]"


def test_one_node_applies_its_op_to_several_tensors_with_their_own_weights() -> None:
    norm = gemma().variants("attn.qk_norm")[0]
    assert [(a.label, a.weights) for a in norm.applications] == [("q", (("w", "wq"),)), ("k", (("w", "wk"),))]
    shapes = [dims_text(b.formula.tensor("x").dims) for b in norm.phase(Phase.PREFILL)]
    assert shapes == ["[T, 32, 256]", "[T, 16, 256]"]


def test_global_values_are_the_raw_keys() -> None:
    v_norm = gemma().variants("attn.v_norm")[1]
    assert v_norm.applications[0].reads[0].wire == "k"


def test_row_order_is_not_order_of_evaluation() -> None:
    paths = [n.path for n in gemma().in_layer(5)]
    assert paths.index("attn.core") < paths.index("attn.o_proj") < paths.index("mlp.down")
    assert [n.path for n in gemma().outside(1)] == ["final_norm", "lm_head"]


def test_leading_axes_get_index_names_that_the_op_does_not_use() -> None:
    norm = gemma().variants("attn.v_norm")[0]
    text = formula_text(norm.phase(Phase.PREFILL)[0].formula)[0]
    assert text == "y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² / 256 + 1e-06)"


def test_weights_have_their_pieces_under_the_checkpoint_prefix() -> None:
    (weight,) = gemma().variants("attn.qkv_proj")[0].weights
    assert weight.shape == (16384, 5376)
    assert weight.pieces[1].name == "model.language_model.layers.{i}.self_attn.k_proj.weight"
    assert [p.full for p in weight.pieces] == [(8192, 5376), (4096, 5376), (4096, 5376)]
    assert gemma().variants("lm_head")[0].weights[0].tied == ("embed", "w")


def test_the_configuration_is_json() -> None:
    config = dict(gemma().config)
    types = config["text_config.layer_types"]
    assert isinstance(types, list)
    assert (types[5], types[6], len(types)) == ("full_attention", "sliding_attention", 60)
    assert config["text_config.rms_norm_eps"] == 1e-6
    assert config["text_config.head_dim"] == 256
    assert config["tie_word_embeddings"] is True


CONFIG = """\
  eps = out.eps
  scale = full.core.scale
  tied = head.tied
  caps = [head.softcap, 2 - 1/add.r]
  embed = embed.eps
  window = core.window
"""


def test_the_configuration_reads_constants_of_nodes() -> None:
    config = dict(check(edited("  window = local.window\n  eps = 1e-6\n", CONFIG)).config)
    assert config["eps"] == 1e-6
    assert config["scale"] == 1 / math.sqrt(6)
    assert config["tied"] is True
    assert config["caps"] == [30, 0]
    assert config["embed"] is None
    assert config["window"] == 3


def configured(constants: str, value: str) -> str:
    """The JSON of a value of the configuration, where the node `add` has these constants."""
    edits = (
        "  heads = 4\n",
        "  heads = 4\n  theta = 1000000.0\n",
        "r=0.5, layer_scalar=True",
        f"{constants}, layer_scalar=True",
    )
    found = check(edited(*edits, "  eps = 1e-6\n", f"  eps = {value}\n")).config
    return json.dumps(dict(found)["eps"])


@pytest.mark.parametrize(
    ("constants", "value", "printed"),
    [
        ("r=30", "add.r", "30"),
        ("r=30.0", "add.r", "30.0"),
        ("r=30.0", "[add.r, 0, 0.0, heads]", "[30.0, 0, 0.0, 4]"),
        ("r=0.0625", "1/add.r", "16.0"),
        ("r=1/16", "1/add.r", "16"),
        ("r=1/√heads", "1/add.r²", "4"),
        ("r=1.0/√heads", "1/add.r²", "4.0"),
        ("r=theta", "add.r", "1000000.0"),
        ("r=theta", "theta", "1000000.0"),
        ("r=1", "1.0·heads", "4.0"),
        ("r=1", "-(1.0 + heads)", "-5.0"),
        ("r=1", "heads/3·3", "4"),
        ("r=1", "heads/8", "0.5"),
        ("r=1", "max(1, 2.0)", "2.0"),
        ("r=1", "√4", "2"),
        ("r=1", "√4.0", "2.0"),
        ("r=1", "if heads == 4 then 1 else 2.0", "1"),
        ("r=1e-6", "add.r", "1e-06"),
        ("r=1e-5", "add.r", "1e-05"),
        ("r=0.0078125", "add.r", "0.0078125"),
        ("r=10000000.0", "add.r", "10000000.0"),
        ("r=1.0e22", "add.r", "1e+22"),
        ("r=1/√26", "add.r", "0.19611613513818404"),
        ("r=1e6", "add.r", "1000000"),
    ],
)
def test_a_value_is_a_float_if_it_is_not_whole_or_has_a_decimal_fraction_in_it(
    constants: str, value: str, printed: str
) -> None:
    assert configured(constants, value) == printed


def test_a_size_of_a_layer_class_keeps_its_point() -> None:
    edits = (
        "i % 2 == 0: ",
        "i % 2 == 0: r = 30.0, ",
        "i % 2 == 1: ",
        "i % 2 == 1: r = 30.0, ",
    )
    model = check(edited(*edits, "r=0.5, layer", "r, layer", "  eps = 1e-6\n", "  a = local.r\n  b = add.r\n"))
    assert (
        json.dumps(dict(model.config) | {"layer_types": 0})
        == '{"vocab_size": 11, "layer_types": 0, "window": 3, "a": 30.0, "b": 30.0}'
    )


def test_the_point_of_a_number_changes_no_node() -> None:
    assert check(edited("softcap=30", "softcap=30.0")).nodes == check(MINI).nodes


def test_a_mistake_of_a_node_is_told_once_though_the_configuration_reads_the_node() -> None:
    edits = ("H=hidden, eps=1e-6 ", "H=hidden, epss=1e-6 ", "  eps = 1e-6\n", "  eps = 2·out.eps\n")
    with pytest.raises(SpecError) as caught:
        check(edited(*edits))
    assert [d.code for d in caught.value.diagnostics] == ["E231"]


def test_the_small_spec_is_right() -> None:
    model = check(MINI)
    assert [n.variant_name for n in model.in_layer(1)] == ["qkv_full", "core_full", "o_proj_full", "add"]
    assert [(s.name, [c for c, _ in s.dims]) for s in model.states][0] == ("k_cache", ["local", "full"])
    assert expr_text(dict(model.variants("core")[1].constants)["scale"]) == "1 / √6"  # type: ignore[arg-type]


def test_sizes_may_refer_to_each_other_in_any_order() -> None:
    model = check(edited("  hidden = 8", "  hidden = 2·half", "  heads = 4", "  heads = half\n  half = 2 + 2"))
    assert dict(model.sizes) == {"vocab": 11, "hidden": 8, "heads": 4, "half": 4}


def test_interleaved_pieces_tile_one_tensor() -> None:
    text = edited(
        '"q"[heads·D] ++ "kv"[2·kv_heads·D]',
        '"qk"[heads, 0 : 1 of 2, D] ++ "qk"[heads, 1 : 2 of 2, D]',
    )
    weight = check(text).variants("qkv")[0].weights[0]
    assert [p.view for p in weight.pieces] == [((0, 4, 4), (0, 1, 2), (0, 4, 4)), ((0, 4, 4), (1, 2, 2), (0, 4, 4))]
    assert [p.row_count for p in weight.pieces] == [16, 16]
    assert weight.pieces[0].full == (32, 8)


def test_a_name_with_a_slash_takes_no_prefix_and_a_shape_may_be_the_file_s() -> None:
    weight = check(edited('w[H] = "norm"', 'w[H] = "/norm"[H] as [H, 1]')).variants("out")[0].weights[0]
    assert (weight.pieces[0].name, weight.pieces[0].full) == ("norm", (8, 1))


def test_a_result_that_nobody_wants_is_written_as_underscore() -> None:
    gates = '  | gates | gdnGates | all | H=hidden | h, h -> g, _ | A_log[H] = "A"; dt_bias[H] = "dt" |\n'
    text = edited("h, a -> h1", "g, a -> h1", "  | out ", f"{gates}  | out ")
    assert [w.operand for w in check(text).variants("gates")[0].applications[0].writes] == ["alpha"]


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (("  | out ", "  | out | rmsnorm | - | | h -> x | |\n" * 400 + "  | out "), "rows"),
        (("layers 4", "layers 200\n" + "".join(f"  bit{k} where i // 2^{k} % 2 == 1\n" for k in range(7))), "ways"),
    ],
)
def test_an_absurdly_large_spec_is_refused_at_once(edits: tuple[str, str], message: str) -> None:
    with pytest.raises(SpecError, match="E210") as caught:
        check(edited(*edits))
    assert message in caught.value.diagnostics[0].message


def test_mistakes_of_different_kinds_are_reported_together() -> None:
    text = edited(
        "T in [1, 64]", "T in [65, 64]", "mul=√hidden", "mull=√hidden", "| h -> hn |", "| h -> hm |",
        "window = 3", "window = 3/0", "tied=True", "tied=True, softcap=30", "round embed.mul", "round embed.mil",
    )  # fmt: skip
    with pytest.raises(SpecError) as caught:
        check(text)
    codes = [d.code for d in caught.value.diagnostics]
    assert {"E220", "E231", "E250", "E203", "E204", "E270"} <= set(codes)
    places = [(d.span.line, d.span.column) for d in caught.value.diagnostics if d.span is not None]
    assert places == sorted(places)
