"""What differs in meaning is told, by the key it belongs to; what does not is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from specc import pipeline
from specc.compare import Change, Effect, Kind, Touched, compare, compare_files
from specc.compare_nodes import value_text
from specc.inputs import Options
from specc.ir import Model, NodeVariant, WireWrite
from specc.ops import Num
from specc.resources import shipped

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
TINY, OPS = ((EXAMPLES / name).read_text(encoding="utf-8") for name in ("tiny.spec", "own.ops"))
KEY = "example/tiny@1.0"


@cache
def gemma() -> Model:
    return pipeline.load(shipped("specs") / "gemma4.spec")


def tiny(folder: Path, *edits: tuple[str, str], ops: str = OPS) -> Model:
    """The small example with each `(old, new)` replaced; columns of its table are one blank apart."""
    text = "\n".join(" ".join(line.split()) if "|" in line else line for line in TINY.splitlines())
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    folder.mkdir(exist_ok=True)
    (folder / "own.ops").write_text(ops, encoding="utf-8")
    (folder / "tiny.spec").write_text(text + "\n", encoding="utf-8")
    return pipeline.load(folder / "tiny.spec")


def changes(folder: Path, *edits: tuple[str, str], ops: str = OPS) -> tuple[Change, ...]:
    return compare(tiny(folder), tiny(folder, *edits, ops=ops))


def files(model: Model) -> dict[str, str]:
    return pipeline.files(model, pipeline.lower(model), Options())


WRITINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "comments": (("\nsizes\n", "\n# How large.\nsizes\n"), ("| add1 |", "# First sum.\n| add1 |")),
    "blanks": (("vocab = 512", "vocab   =  512"), ("h, a -> h1", "h,a  ->   h1")),
    "an equal number": (("eps=1e-5", "eps=1/100000"), ("hidden = 96", "hidden = 3·32")),
    "an equal expression": (("N=2·inter", "N=inter + inter"),),
    "ASCII spelling": (("(heads + 2·kv_heads) · D", "(heads + 2*kv_heads) * D"),),
}


@pytest.mark.parametrize("name", WRITINGS)
def test_another_writing_of_the_same_is_no_change_and_gives_the_same_files(name: str, tmp_path: Path) -> None:
    old, new = tiny(tmp_path), tiny(tmp_path, *WRITINGS[name])
    assert compare(old, new) == ()
    assert old == new and files(old) == files(new)


def test_the_order_of_rows_sections_and_sizes_is_no_change(tmp_path: Path) -> None:
    for model in (tiny(tmp_path), gemma()):
        turned = replace(
            model, nodes=model.nodes[::-1], sizes=model.sizes[::-1], config=model.config[::-1],
            states=model.states[::-1], classes=model.classes[::-1], domain=model.domain[::-1],
        )  # fmt: skip
        assert turned != model and compare(model, turned) == ()


def test_a_let_by_another_name_and_an_op_that_no_node_uses_are_no_change(tmp_path: Path) -> None:
    renamed = OPS.replace("let m =", "let mean =").replace("- m)", "- mean)")
    assert renamed != OPS and changes(tmp_path, ops=renamed) == ()
    assert changes(tmp_path, ops=OPS + "\nop twice(x[T]) -> y[T]\n  y[t] = 2 · x[t]\n") == ()


def test_a_predicate_of_the_same_layers_is_no_change() -> None:
    first, *rest = gemma().classes
    assert compare(gemma(), replace(gemma(), classes=(replace(first, predicate="not (i % 6 == 5)"), *rest))) == ()


FOLLOWING = {
    "bound": "made from the op, the constants and the wires",
    "library": "the ops that nodes use are compared with the nodes",
    "op": "see the tests of ops and formulas",
    "layer_class": "the row's cell; changed with the layers below",
    "layers": "made from the layer class",
    "outside_order": "counts outside of the layers; see below",
    "sort": "an operand's sort is its op's, but for an input",
    "predicate": "counts by its layers",
}
"""Fields that no edit can change alone."""


def altered(value: Any) -> Iterator[Any]:
    """`value` with one leaf changed, in every way there is one."""
    if is_dataclass(value) and not isinstance(value, type):
        named = [f.name for f in fields(value) if f.compare and f.name not in FOLLOWING]
        if isinstance(value, WireWrite):
            named.remove("operand")  # The op's only result.
        for name in named:
            yield from (replace(value, **{name: x}) for x in altered(getattr(value, name)))
        if isinstance(value, NodeVariant) and value.layers is None:
            yield replace(value, outside_order=-value.outside_order)
    elif isinstance(value, tuple):
        yield from ((*value[:n], x, *value[n + 1 :]) for n in range(len(value)) for x in altered(value[n]))
    elif isinstance(value, Enum):
        yield next(x for x in type(value) if x is not value)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, str):
        yield f"{value}x"
    elif isinstance(value, int | Fraction):
        yield value + 1
    elif isinstance(value, list):
        yield [*value, None]


def few_nodes(model: Model) -> Model:
    """Rows of each kind: outside, in all layers, in a class, with labels, states, pieces, a tied weight."""
    wanted = ("embed", "attn.qkv_proj", "attn.qk_norm", "attn.core", "attn_residual", "lm_head")
    return replace(model, nodes=tuple(n for n in model.nodes if n.path in wanted), config=model.config[-3:])


def test_every_part_of_a_model_that_an_edit_can_change_is_told() -> None:
    model = few_nodes(gemma())
    found = list(altered(model))
    assert len(found) > 200
    silent = [x for x in found if not compare(model, x)]
    assert silent == [], str(silent[0])[:3000]


def test_a_node_that_is_renamed_with_nothing_else_is_told_as_renamed(tmp_path: Path) -> None:
    assert changes(tmp_path, ("| norm1 |", "| norm_1 |")) == (
        Change(f"{KEY}:layers[*].norm1", Kind.RENAMED, "node", "norm1", "norm_1"),
    )


def test_what_is_tied_to_a_renamed_node_is_as_before(tmp_path: Path) -> None:
    (only,) = changes(tmp_path, ("| embed | embed |", "| tokens_in | embed |"), ("tied embed.w", "tied tokens_in.w"))
    assert (only.kind, only.old, only.new) == (Kind.RENAMED, "embed", "tokens_in")


def test_a_node_of_another_name_and_constant_is_another_node(tmp_path: Path) -> None:
    row = "| norm1 | layernorm | all | H=hidden, eps=1e-5 |"
    found = changes(tmp_path, (row, row.replace("norm1", "norm_1").replace("1e-5", "1e-6")))
    assert [(c.key, c.kind, c.old is None, c.new is None) for c in found] == [
        (f"{KEY}:layers[*].norm1", Kind.NODE, False, True),
        (f"{KEY}:layers[*].norm_1", Kind.NODE, True, False),
    ]
    assert found[1].new == "layernorm | all layers | H=96, eps=1e-06 | x=h, w=w -> x"


def test_a_removed_node_stands_where_it_was_and_its_reader_reads_something_else(tmp_path: Path) -> None:
    row = next(line for line in TINY.splitlines() if line.startswith("  | norm2 "))
    found = changes(tmp_path, (" ".join(row.split()) + "\n", ""), ("m -> gu", "h1 -> gu"))
    assert [(c.key, c.kind, c.name) for c in found] == [
        (f"{KEY}:layers[*].norm2", Kind.NODE, ""),
        (f"{KEY}:layers[*].mlp.up", Kind.WIRES, ""),
    ]
    assert (found[1].old, found[1].new) == ("x=m, w=w -> gu", "x=h1, w=w -> gu")


def test_a_node_that_moves_out_of_the_layers_is_told_by_its_place() -> None:
    model = gemma()
    norm = model.variants("input_norm")[0]
    moved = replace(norm, layers=None, layer_class=None, outside_order=1)
    (only,) = compare(model, replace(model, nodes=tuple(moved if n is norm else n for n in model.nodes)))
    assert (only.kind, only.old, only.new) == (Kind.LAYERS, "all layers", "after the layers")
    assert only.key.endswith(":layers[*].input_norm")


def test_a_row_that_is_parted_keeps_the_variant_that_shares_more_layers() -> None:
    model = gemma()
    norm = model.variants("input_norm")[0]
    parts = tuple(replace(norm, layers=c.layers, layer_class=c.name) for c in reversed(model.classes))
    nodes = tuple(x for n in model.nodes for x in (parts if n is norm else (n,)))
    added, kept = compare(model, replace(model, nodes=nodes))
    assert (kept.kind, kept.old, kept.new) == (Kind.LAYERS, "all layers", "sliding layers")
    assert (added.kind, added.old, added.variant) == (Kind.NODE, None, "global")


def test_a_layer_class_and_a_size_of_another_name_are_told_once() -> None:
    model = gemma()
    local = tuple(replace(c, name="local") if c.name == "sliding" else c for c in model.classes)
    nodes = tuple(replace(n, layer_class="local") if n.layer_class == "sliding" else n for n in model.nodes)
    states = tuple(
        replace(s, dims=tuple(("local" if c == "sliding" else c, d) for c, d in s.dims)) for s in model.states
    )
    sizes = tuple(("width" if n == "hidden" else n, v) for n, v in model.sizes)
    found = compare(model, replace(model, classes=local, nodes=nodes, states=states, sizes=sizes))
    assert [(c.kind, c.name, c.old, c.new) for c in found] == [
        (Kind.RENAMED, "layers", "sliding", "local"),
        (Kind.RENAMED, "size", "hidden", "width"),
    ]


def test_another_op_is_told_with_the_constants_that_differ(tmp_path: Path) -> None:
    found = changes(tmp_path, ("| mlp.act | relu2Mul |", "| mlp.act | geluMul |"))
    assert [(c.kind, c.old, c.new) for c in found] == [(Kind.OP, "relu2Mul", "geluMul")]


def test_a_formula_that_differs_is_told_of_each_node_with_its_lines(tmp_path: Path) -> None:
    found = changes(tmp_path, ops=OPS.replace("√(v + eps)", "√(v + 2·eps)"))
    assert [c.key.rpartition(":")[2] for c in found] == ["layers[*].norm1", "layers[*].norm2", "final_norm"]
    assert {(c.kind, c.name) for c in found} == {(Kind.FORMULA, "layernorm")}
    assert all((c.old or "").count("\n") == 0 and "+ eps)" in (c.old or "") for c in found)
    assert all("+ 2 · eps)" in (c.new or "") for c in found)


def test_a_function_that_differs_is_told_of_the_nodes_whose_formula_names_it(tmp_path: Path) -> None:
    (only,) = changes(tmp_path, ops=OPS.replace("max(x, 0)", "max(x, 1)"))
    assert only.key == f"{KEY}:layers[*].mlp.act"
    assert (only.old, only.new) == ("relu(x) = max(x, 0)", "relu(x) = max(x, 1)")


def test_a_requirement_that_comes_is_a_line_that_is_added(tmp_path: Path) -> None:
    (only,) = changes(tmp_path, ops=OPS.replace("  y[.., i] = relu", "  require I < 1000\n  y[.., i] = relu"))
    assert (only.name, only.old, only.new) == ("relu2Mul", None, "require I < 1000")


def test_pieces_and_shape_of_a_weight_are_told_as_far_as_they_differ(tmp_path: Path) -> None:
    parts = '"q.weight"[heads·D] ++ "kv.weight"[2·kv_heads·D]'
    (pieces,) = changes(tmp_path, ('"qkv.weight"', parts))
    assert (pieces.kind, pieces.old) == (Kind.WEIGHT, "model.layers.{i}.qkv.weight")
    assert pieces.new == "model.layers.{i}.q.weight[128] ++ model.layers.{i}.kv.weight[128]"
    shapes = {c.key: (c.old, c.new) for c in changes(tmp_path, ("vocab = 512", "vocab = 640")) if c.kind is Kind.WEIGHT}
    assert shapes == {f"{KEY}:{n}": ("[512, 96]", "[640, 96]") for n in ("embed", "lm_head")}


def test_another_cut_of_a_fused_result_is_told_by_shapes(tmp_path: Path) -> None:
    old = "q[T, heads, D], k[T, kv_heads, D], v[T, kv_heads, D]"
    found = changes(tmp_path, (old, "q[T, heads, 32], k[T, 2, 32], v[T, kv_heads, D]"))
    assert found == ()
    qkv = tiny(tmp_path).variants("attn.qkv")[0]
    (use,) = qkv.applications
    (write,) = use.writes
    (q, dims), k, v = write.views
    wider = replace(write, views=((q, (*dims[:1], Num(Fraction(5)), dims[2])), k, v))
    model = tiny(tmp_path)
    changed = replace(qkv, applications=(replace(use, writes=(wider,)),))
    (only,) = compare(model, replace(model, nodes=tuple(changed if n.path == "attn.qkv" else n for n in model.nodes)))
    assert (only.kind, only.name, only.old, only.new) == (Kind.SHAPE, "wire q", "[T, 4, 32]", "[T, 5, 32]")


def test_numbers_that_the_page_shows_alike_are_told_apart() -> None:
    near = Fraction(0.1)
    assert value_text(Num(Fraction(1, 10))) == "0.1"
    assert value_text(Num(near)) == f"{near.numerator}/{near.denominator}"


def test_changes_of_a_model_line_keep_the_old_key(tmp_path: Path) -> None:
    found = changes(
        tmp_path, ("model example/tiny @ 1.0", "model example/small @ 1.1"), ("eps=1e-5 | h ->", "eps=1e-6 | h ->")
    )
    assert [(c.key, c.name) for c in found] == [
        (KEY, "key"), (KEY, "version"), (f"{KEY}:layers[*].norm1", "eps"), (f"{KEY}:final_norm", "eps")
    ]  # fmt: skip


def test_files_are_rewritten_added_and_removed() -> None:
    assert compare_files({"a": "1", "b": "2", "c": "3"}, {"b": "2", "c": "4", "d": ""}) == (
        Touched("a", Effect.REMOVED),
        Touched("c", Effect.REWRITTEN),
        Touched("d", Effect.ADDED),
    )


def test_a_comparison_turned_round_names_the_same_keys(tmp_path: Path) -> None:
    old, new = tiny(tmp_path), tiny(tmp_path, ("kv_heads = 2", "kv_heads = 4"), ("scale=1/8", "scale=1/4"))
    there, back = compare(old, new), compare(new, old)
    assert len(there) > 5
    assert [(c.key, c.kind, c.name, c.new, c.old) for c in there] == [
        (c.key, c.kind, c.name, c.old, c.new) for c in back
    ]
