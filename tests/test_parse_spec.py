"""Parsing Model Specs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from specc import syntax as s
from specc import syntax_spec as m
from specc.diagnostics import SpecError
from specc.parse_spec import parse_spec
from specc.source import Source
from tests.typecheck.mini import MINI

GEMMA = Path(__file__).parent.parent / "specs" / "gemma4.spec"


def parse(text: str) -> m.SpecFile:
    return parse_spec(Source("mini.spec", text))


def edited(old: str, new: str) -> str:
    assert old in MINI
    return MINI.replace(old, new, 1)


def test_the_founding_spec_has_24_rows_in_the_order_of_the_page() -> None:
    rows = parse_spec(Source.read(GEMMA)).nodes.rows
    assert len(rows) == 24
    assert [r.path for r in rows[:3]] == ["embed", "input_norm", "attn.qkv_proj"]
    assert rows[-1].op.name == "lmHead"


def test_a_row_keeps_labels_appends_bindings_and_pieces() -> None:
    rows = parse(MINI).nodes.rows
    norm, core, qkv = rows[2], rows[3], rows[1]
    assert [a.label for a in norm.applies] == ["q", "k"]
    assert norm.applies[0].binds[0].operand == "w"
    assert norm.applies[0].args[0].dims is not None
    assert [a.state.name if a.state else None for a in core.applies[0].args] == [None, "k_cache", "v_cache"]
    assert isinstance(qkv.weights[0].value, tuple)
    assert [p.name for p in qkv.weights[0].value] == ["q", "kv"]
    assert isinstance(rows[-1].weights[0].value, m.Tied)


def test_a_punned_constant_has_no_value_of_its_own() -> None:
    core = parse(MINI).nodes.rows[3]
    assert [(c.name, c.value is None) for c in core.constants][:2] == [("D", True), ("heads", True)]


def test_pieces_can_be_slices_interleaved_views_and_reshaped() -> None:
    text = edited('w[H] = "norm"', 'w[H] = "a"[0 : 4 of 8] ++ "b"[heads, 1 : 2 of 2, D] ++ "/c"[2] as [2, 1, 4]')
    pieces = parse(text).nodes.rows[-2].weights[0].value
    assert isinstance(pieces, tuple)
    low = pieces[0].view[0].low
    assert isinstance(low, s.Number) and low.value == 0
    assert [len(p.view) for p in pieces] == [1, 3, 1]
    assert pieces[2].name == "/c"
    assert pieces[2].full is not None and len(pieces[2].full) == 3


def test_sections_may_stand_in_any_order() -> None:
    head, rest = MINI.split("inputs\n")
    inputs, after = rest.split("\nstream", 1)
    moved = head + "stream" + after + "\ninputs\n" + inputs
    assert parse(moved) == parse(MINI)


def test_a_cell_may_go_on_in_the_next_line() -> None:
    text = edited("h -> q[T, heads, D], k[T, kv_heads, D], v", "h -> q[T, heads, D],\n      k[T, kv_heads, D],\n v")
    assert parse(text) == parse(MINI)


def test_rule_lines_padding_and_carriage_returns_mean_nothing() -> None:
    text = edited("Weights |\n", "Weights |\n  |--------|:---|----:|----|----|----|\n").replace("| embed  |", "|embed|")
    assert parse(text.replace("\n", "\r\n")) == parse(MINI)


def test_brackets_may_span_lines() -> None:
    text = edited("  k_cache[S, kv_heads, D]", "  k_cache[\n    S,\n\n    kv_heads, D]")
    assert parse(text) == parse(MINI)


def test_ascii_and_unicode_spellings_give_one_tree() -> None:
    ascii_text = MINI.replace("·", "*").replace("√hidden", "sqrt(hidden)").replace("√D", "sqrt(D)")
    assert parse(ascii_text) == parse(MINI)


def test_greek_size_names_are_spelt_out() -> None:
    text = edited("vocab = 11", "vocab = 11\n  θ = 10000")
    sizes = parse(text).sizes
    assert sizes is not None
    assert sizes.sizes[1].name == "theta"


def test_a_comment_may_stand_beside_the_head_of_the_node_table_and_the_rule_below_it() -> None:
    head = next(line for line in MINI.split("\n") if "Op Spec" in line)
    rule = "  " + "|---" * 6 + "|"
    text = MINI.replace(head, f"{head} # columns\n{rule} # rule")
    first, *rows = parse(text).nodes.rows
    assert (replace(first, comments=()), *rows) == parse(MINI).nodes.rows
    assert first.comments == ("columns", "rule")


def test_comments_go_to_the_line_below_or_to_their_own() -> None:
    text = "# the file\n\n# the model\n" + edited("  hidden = 8", "  # width\n  hidden = 8 # wide").replace(
        "  | add ", "  # sum\n  | add "
    )
    tree = parse(text + "\n# the end\n")
    assert (tree.header, tree.model.comments, tree.trailing) == (("the file",), ("the model",), ("the end",))
    assert tree.sizes is not None
    assert tree.sizes.sizes[1].comments == ("width", "wide")
    assert [r.comments for r in tree.nodes.rows if r.path == "add"] == [("sum",)]


def test_hashes_and_escapes_inside_quotes_are_text() -> None:
    about = parse(edited('about "A toy."', r'about "a # b \"c\" \\d"')).about
    assert about is not None
    assert about.text == 'a # b "c" \\d'


def test_section_words_are_names_away_from_the_beginning_of_a_line() -> None:
    tree = parse(edited("  vocab = 11", "  vocab = 11\n  state = 3\n  page = 4"))
    assert tree.sizes is not None
    assert [x.name for x in tree.sizes.sizes][:3] == ["vocab", "state", "page"]


def test_layers_is_a_name_in_an_expression() -> None:
    where = parse(edited("where i % 2 == 1", "where i >= layers - 2")).layers.classes[1].where
    assert isinstance(where, s.Chain)
    assert where.args[1] == s.Binary(
        where.span, "-", s.Name(where.span, "layers"), s.Number(where.span, Fraction(2), "2")
    )


def test_an_empty_file_names_what_is_missing() -> None:
    with pytest.raises(SpecError) as caught:
        parse("# nothing here\n")
    assert "`model`, `domain`, `layers`, `stream`, `output`, `nodes`, `profile`" in str(caught.value)
