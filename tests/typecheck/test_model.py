# ruff: noqa: E501
"""Checking Model Specs: what a right one means, and one wrong one per mistake."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path

import pytest

from specc.codes import CODES
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
    text = edited("h, a -> h1", "h, a -> _", "then h1", "then a")
    assert check(text).variants("add")[0].applications[0].writes == ()


# id, edits, code, text at the caret, fragment of the message, fragment of the help
WRONG: dict[str, tuple[tuple[str, ...], str, str, str, str]] = {
    "unknown name": (("mul=√hidden", "mul=√hiden"), "E201", "hiden", "unknown name `hiden`", "`hidden`"),
    "size that is no integer": (("K=hidden, N=(", "K=hidden/3, N=("), "E202", "hidden/3", "`K` is ", ""),
    "division by zero": (("r=0.5", "r=1/(heads - 4)"), "E203", "1/(heads", "division by zero", ""),
    "function that is none": (("r=0.5", "r=sin2(1)"), "E203", "sin2", "unknown function", "`sin`"),
    "size twice": (("vocab = 11", "vocab = 11\n  heads = 3"), "E204", "heads = 4", "given twice", "mini.spec:12:3"),
    "class size of all layers": (("window = 3", "window = 3, hidden = 3"), "E204", "hidden = 3", "of all layers", ""),
    "size with a meaning": (("vocab = 11", "vocab = 11\n  S = 3"), "E204", "S = 3", "meaning of its own", ""),
    "constant twice": (("K=hidden, N=(", "K=hidden, K=hidden, N=("), "E204", "K=hidden, N", "given twice", ""),
    "weight twice": (('wk[D] = "wk"', 'wq[D] = "wk"'), "E204", 'wq[D] = "wk"', "given twice", ""),
    "label twice": (("k: k -> kn", "q: k -> kn"), "E204", "q: k ->", "label `q`", ""),
    "input twice": (("  pos[T]: index\n", "  pos[T]: index\n  pos[T]: index\n"), "E204", "pos[T]: index\n  seq", "twice", ""),
    "config key twice": (("  eps = 1e-6\n", "  window = 3\n"), "E204", "window = 3\n", "given twice", ""),
    "sizes that go in circles": (("heads = 4", "heads = 4·vocab/vocab", "vocab = 11", "vocab = heads + 7"), "E205", "vocab/vocab", "defined by itself", ""),
    "size without end": (("vocab = 11", "vocab = 99999999999999999999"), "E206", "99999999999999999999", "size `vocab` is too large", "at most 1099511627776"),
    "class size without end": (("window = 3", "window = 2^41"), "E206", "2^41", "size `local.window` is too large", ""),
    "absurd number of layers": (("layers 4", "layers 10^9"), "E210", "10^9", "1000000000 layers", "at most 10000"),
    "no layers": (("layers 4", "layers 0"), "E202", "0\n", "not a positive integer", ""),
    "predicate that covers nothing": (("i % 2 == 1:", "i % 2 == 5:"), "E211", "i % 2 == 5", "no layer is `full`", "0 to 3"),
    "predicate that is a number": (("i % 2 == 1:", "i % 2:"), "E203", "i % 2:", "expected a condition", ""),
    "unknown layer class": (("| local  | D, eps", "| lokal  | D, eps"), "E212", "lokal", "no layer class `lokal`", "`local`"),
    "classes that disagree": (("kv_heads = 1", "kv_heads = 1\n  odd where i == 1: D = 5"), "E213", "odd where", "`D` has two values in layer 1", ""),
    "empty domain": (("T in [1, 64]", "T in [65, 64]"), "E220", "T in", "domain of `T` is empty: 65 > 64", ""),
    "unknown run-time size": (("B in [1, 4]", "Q in [1, 4]", "seq_lens[B]", "seq_lens[T]"), "E221", "Q in", "no run-time size", ""),
    "node that is a keyword": (("| out    | rmsnorm", "| class  | rmsnorm"), "E229", "class  | rmsnorm", "the name `class` of a node is reserved", "`class_node`"),
    "node that begins with a keyword": (("| out    | rmsnorm", "| if.out | rmsnorm"), "E229", "if.out | rmsnorm", "the name `if` of a node is reserved", ""),
    "node with the name of a file": (("| out    | rmsnorm", "| launch | rmsnorm"), "E229", "launch | rmsnorm", "the name `launch` of a node is reserved", "`launch_node`"),
    "node with the name of another one": (("| out    | rmsnorm", "| o_proj_full | rmsnorm"), "E229", "o_proj_full | rmsnorm", "`o_proj_full` and `o_proj` would both be called `o_proj_full`", "mini.spec:42:5"),
    "node with the name of a phase": (("| out    | rmsnorm", "| core.full.decode | rmsnorm"), "E229", "core.full.decode", "would both be called `core_full_decode`", ""),
    "node with the name of a further use": (("| out    | rmsnorm", "| norm_local_k | rmsnorm"), "E229", "norm_local_k", "would both be called `norm_local_k`", ""),
    "node inside and outside": (("| out    | rmsnorm", "| add    | rmsnorm"), "E229", "add    | rmsnorm", "would both be called `add`", ""),
    "unknown op": (("| rmsnorm          | -", "| rmsnrm           | -"), "E230", "rmsnrm", "unknown op `rmsnrm`", "`rmsnorm`"),
    "unknown constant": (("H=hidden, eps=1e-6 ", "H=hidden, epss=1e-6 "), "E231", "epss", "no constant `epss`", "`eps`"),
    "missing constant": (("H=hidden, eps=1e-6 ", "H=hidden "), "E232", "rmsnorm          | -", "nothing gives `eps`", "eps=…"),
    "missing window": (("scale=1, window", "scale=1"), "E232", "slidingDecodeGQA", "nothing gives `window`", ""),
    "flag that is a number": (("layer_scalar=True", "layer_scalar=1"), "E233", "1 ", "is a flag", "True or False"),
    "label of another op": (("H=hidden, r=0.5", "H=hidden, r=T"), "E233", "T,", "to be a number", ""),
    "two variants in a layer": (("  | out ", '  | add | residual | local | r=1, layer_scalar=False | h1, h1 -> _ | |\n  | out '), "E234", "add | residual", "a second `add` in layers 0, 2", ""),
    "row that differs between layers": (("| local  | D, eps=1e-6 ", "| all    | D, eps=1e-6 ", "D, heads, kv_heads, scale=1/√D        | q, k_cache + k, v_cache + k -> o", "D, heads, kv_heads, scale=1/√D        | qn, k_cache + kn, v_cache + k -> o"), "E235", "all ", "`D` is 4 and 6", "one row for each layer class"),
    "heads not divisible": (("heads = 4", "heads = 5"), "E236", "heads, kv_heads, scale=1, w", "heads % kv_heads = 0; here heads=5, kv_heads=2", ""),
    "too many operands": (("| h -> hn |", "| h, h -> hn |"), "E237", "h -> hn", "takes 1 operands here, 2 are wired", ""),
    "operand that is none": (("| h -> hn |", "| xx=h -> hn |"), "E237", "xx=h", "no operand `xx`", ""),
    "binding of no operand": (("with w=wq", "with v=wq"), "E237", "v=wq", "no operand `v`", ""),
    "binding of no weight": (("with w=wq", "with w=wz"), "E237", "w=wz", "no weight `wz`", ""),
    "uses without labels": (("q: q[.., D] -> qn", "q[.., D] -> qn"), "E237", "q[.., D] ->", "takes a label", ""),
    "too few operands": (("h, a -> h1", "a -> h1"), "E238", "residual", "nothing feeds `h` of `residual`", ""),
    "input that is not declared": (("  seq_lens[B]: index\n", ""), "E238", "slidingDecodeGQA", "nothing feeds `seq_lens`", "`inputs`"),
    "weight that the constants turn off": (("layer_scalar=True", "layer_scalar=False"), "E239", "residual", "never reads `s`", ""),
    "operand that the constants ask for": (('s[1] = "scale"', ""), "E239", "residual", "needs `s`", ""),
    "constant that another asks for": (("mul=√hidden", "mul=√hidden, norm=True"), "E239", "embed            | -", "needs `eps`", ""),
    "shapes that do not meet": (("K=hidden, N=(heads + 2", "K=9, N=(heads + 2"), "E240", "h -> q", "`h` is [T, 8], but `linear` reads x[.., K], where `K` is 9", ""),
    "shape at a wire": (("q[.., D] ->", "q[.., 5] ->"), "E240", "q[.., 5]", "`q` is [T, 4, 4], not [.., 5]", ""),
    "weight of another shape": (('w[H] = "norm"', 'w[heads] = "norm"'), "E240", 'w[heads] = "norm"', "weight `w` is [4]", ""),
    "stream of another width": (("K=heads·D, N=hidden                   | o -> a | w[N, K] = \"o\" |\n  | qkv", "K=heads·D, N=vocab                   | o -> a | w[N, K] = \"o\" |\n  | qkv"), "E240", "a -> h1", "`a` is [T, 11]", "`a` is written by `o_proj`"),
    "N that contradicts its wires": (("N=(heads + 2·kv_heads)·D", "N=(heads + kv_heads)·D"), "E241", "N=(heads + kv_heads)·D    | h -> q[T, heads, D], k[T, kv_heads, D], v", "N = 24 contradicts what is cut from it", ""),
    "wire cut without a shape": (("q[T, heads, D], k[T, kv_heads, D], v", "q, k[T, kv_heads, D], v"), "E241", "q, k[T", "what is the shape of `q`", ""),
    "read of what nobody wrote": (("h, a -> h1", "hh, a -> h1"), "E250", "hh, a", "`add` reads `hh`, which nothing writes", "did you mean `h`?"),
    "output that nobody writes": (("output logits", "output logits, probs"), "E250", "probs", "`output` reads `probs`", ""),
    "layer left without a variant": (('  | o_proj | linear           | full   | K=heads·D, N=hidden                   | o -> a | w[N, K] = "o" |\n', ""), "E251", "a -> h1", "`add` reads `a`, which nothing writes in layers 1, 3", "`o_proj` has no variant"),
    "cycle": (("h, a -> h1", "h1, a -> h1"), "E252", "h1, a", "depends on its own result", ""),
    "cycle of two": (("h, a -> h1", "h1b, a -> h1"  , "  | out ", "  | loop | residual | all | r=1 | h, h1 -> h1b | |\n  | out "), "E252", "h1 -> h1b", "depends on its own result", "`add`"),
    "unused write": (("D, eps=1e-6                           | q", "D, eps=1e-6 | z: v -> vz with w=wk; q"), "E253", "vz with", "nothing reads `vz` in layers 0, 2", "`_`"),
    "unused input": (("  pos[T]: index\n", "  pos[T]: index\n  mask[T]: index\n"), "E253", "mask[T]", "nothing reads input `mask`", ""),
    "wire written twice": (("| h -> hn |", "| h -> h0 |", "hn -> logits", "h0 -> logits"), "E254", "h0 | w[H]", "written by `embed` too", ""),
    "wire under the stream's name": (("h, a -> h1", "h, a -> h"), "E254", "h | s[1]", "`h` is the stream", ""),
    "wire of the layers outside": (("| h -> hn |", "| a -> hn |"), "E255", "a -> hn", "`a` is a wire of the layers, `out` stands outside", "only the stream `h`"),
    "unknown state": (("k_cache + kn", "k_cach + kn"), "E256", "k_cach +", "no state `k_cach`", "`k_cache`"),
    "unused state": (("  v_cache[", "  x_cache[S, heads]\n  v_cache["), "E256", "x_cache", "no node uses state `x_cache`", ""),
    "entry of another shape": (("  v_cache[S, kv_heads, D]", "  v_cache[S, kv_heads, D + 1]"), "E256", "v_cache + v", "an entry of `v_cache` is", ""),
    "pieces that miss rows": (('"q"[heads·D] ++ "kv"', '"q"[heads] ++ "kv"'), "E260", 'w[N, K] = "q"[heads] ++', "has 32 rows, its pieces have 4 + 16 = 20", ""),
    "slice that is none": (('w[H] = "norm"', 'w[H] = "norm"[9 : 8 of 16]'), "E260", "9 : 8", "rows 9 : 8 of 16 are no rows", ""),
    "piece of unknown length": (('"q"[heads·D] ++ "kv"', '"q" ++ "kv"'), "E260", '"q" ++', "how many rows has 'q'?", ""),
    "rows taken twice": (('"q"[heads·D] ++ "kv"', '"kv"[0 : heads·D of 2·kv_heads·D] ++ "kv"'), "E261", '"kv"[2·kv', "are taken twice", "tied node.weight"),
    "rows that belong to no weight": (('w[H] = "norm"', 'w[H] = "norm"[0 : 8 of 9]'), "E261", '"norm"', "rows 8 : 9 of 'm.norm' belong to no weight", ""),
    "one tensor for many layers": ((' layers "m.layers.{i}."', ""), "E262", 'checkpoint "m."', "the same tensors", "{i}"),
    "tied flag without a tied weight": (("tied embed.w", '"head"'), "E263", "tied=True", "says tied=True and has no tied weight", ""),
    "tied weight without the flag": (("tied=True", "tied=False"), "E263", "tied=False", "says tied=False and has a tied weight", ""),
    "tied to nothing": (("tied embed.w", "tied embed.v"), "E263", "embed.v", "no weight `embed.v`", ""),
    "tied to another shape": (("w[vocab, hidden] = tied", "w[vocab + 1, hidden] = tied"), "E263", "w[vocab + 1", "`embed.w` is [11, 8]", ""),
    "weight that no operand takes": (('w[H] = "norm"', 'w[H] = "norm"; u[H] = "extra"'), "E264", 'u[H]', "takes weight `u`", "with operand=u"),
    "unknown role": (("  cache bfloat16", "  cash bfloat16"), "E270", "cash", "unknown role `cash`", "`cache`"),
    "unknown type": (("  cache bfloat16", "  cache bfloat17"), "E270", "cache bfloat17", "unknown type `bfloat17`", "`bfloat16`"),
    "role without a type": (("  cache bfloat16\n", ""), "E270", "profile\n", "no type for `cache`", ""),
    "accumulator that kernels do not have": (("accumulator float32", "accumulator float64"), "E270", "accumulator float64", "the only type that is supported", "`accumulator float32`"),
    "rounding of nothing": (("round embed.mul", "round embed.scale"), "E270", "embed.scale", "no constant or `let` named `scale`", ""),
    "value for no class": (('full: "full"', 'ful: "full"'), "E212", "each", "no layer class `ful`", "`full`"),
    "value missing for layers": ((', full: "full"', ""), "E271", "each", "no value for layers 1, 3", ""),
    "value that is no number": (("  eps = 1e-6\n", "  eps = 2·T\n"), "E271", "2·T\n", "expected a number", ""),
    "value of a constant that differs": (("  eps = 1e-6\n", "  eps = core.scale\n"), "E201", "core.scale", "unknown name `core.scale`", "core.scale`"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_named_at_its_place_without_an_avalanche(name: str) -> None:
    edits, code, at, message, help_ = WRONG[name]
    text = edited(*edits)
    with pytest.raises(SpecError) as caught:
        check(text)
    found = [d for d in caught.value.diagnostics if d.code == code and message in d.message and help_ in d.help]
    assert found, str(caught.value)
    lines = text.split("\n")
    places = [d.span for d in found if d.span is not None]
    rest = ["\n".join([lines[p.line - 1][p.column - 1 :], *lines[p.line :]]) for p in places]
    assert any(r.startswith(at) for r in rest), str(caught.value)
    assert len(caught.value.diagnostics) <= 3, str(caught.value)


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
    assert {"E220", "E231", "E250", "E253", "E203", "E204", "E270"} <= set(codes)
    places = [(d.span.line, d.span.column) for d in caught.value.diagnostics if d.span is not None]
    assert places == sorted(places)


def test_every_code_in_the_package_is_listed_and_every_listed_code_is_used() -> None:
    used: set[str] = set()
    for path in sorted((ROOT / "specc").rglob("*.py")):
        if path.name != "codes.py":
            used |= set(re.findall(r'"(E\d{3})"', path.read_text(encoding="utf-8")))
    assert used <= set(CODES)
    assert {c for c in CODES if c < "E400"} <= used
