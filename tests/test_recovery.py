"""All syntax errors of a text are reported at once, in order, and none that only follows from another."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from specc.diagnostics import SpecError
from specc.limits import MAX_ERRORS
from specc.parse import parse_ops
from specc.parse_spec import parse_spec
from specc.source import Source
from tests.typecheck.mini import MINI

HEADER = next(line for line in MINI.split("\n") if "Op Spec" in line) + "\n"
OPS = """def f(x) = x + 1
op g(x[H]; H: nat) -> y[H]
  let a[i] = x[i]
  y[i] = a[i]
op h(x[H]; H: nat) -> y[H]
  y[i] = x[i]
"""


def found(parse: Callable[[Source], object], text: str, *edits: tuple[str, str]) -> list[tuple[str, str]]:
    """(code, the text of the line) of each error, after edits."""
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    try:
        parse(Source("x", text))
    except SpecError as error:
        places = [d.span for d in error.diagnostics if d.span is not None]
        assert [(p.line, p.column) for p in places] == sorted((p.line, p.column) for p in places)
        return [(d.code, p.source.line(p.line).strip()) for d, p in zip(error.diagnostics, places, strict=True)]
    return []


INDEPENDENT = [
    ("  vocab = 11", "  vocab = = 11", "vocab = = 11"),
    ("  hidden = 8", "  hidden = 8 +", "hidden = 8 +"),
    ("  full where i % 2 == 1", "  full where i %% 2 == 1", "full where i %% 2 == 1: D = 6, kv_heads = 1"),
    ("  pos[T]: index", "  pos(T): index", "pos(T): index"),
    ("  window = local.window", "  window = local..window", "window = local..window"),
    ("  weight bfloat16", "  weight bfloat16 17", "weight bfloat16 17"),
]


@pytest.mark.parametrize("count", range(2, len(INDEPENDENT) + 1))
def test_each_faulty_line_is_reported_once(count: int) -> None:
    chosen = INDEPENDENT[-count:]
    lines = [line for _, line in found(parse_spec, MINI, *((old, new) for old, new, _ in chosen))]
    assert sorted(lines) == sorted(line for _, _, line in chosen)


def test_each_faulty_row_is_reported_once() -> None:
    edits = [
        ("h -> hn", "h => hn"),
        ("q, k_cache + k, v_cache + k -> o", "q k -> o"),
        ('w[H] = "norm"', 'w[H = "norm"'),
    ]
    rows = [line.split("|")[1].strip() for _, line in found(parse_spec, MINI, *edits)]
    assert rows == ["core", "out"], "two faults of one row are one"


@pytest.mark.parametrize(
    "edit",
    [
        ("sizes\n", "seizs\n"),
        ("sizes\n", "  sizes\n"),
        ("layers 4\n", "layers four five\n"),
        ("layers 4\n", "lyers 4\n"),
        ("nodes\n", "nodse\n"),
        ("nodes\n", "  nodes\n"),
        (HEADER, ""),
        (HEADER, HEADER.replace("Op Spec", "Op")),
        ("profile\n", "profiel\n"),
        ("inputs\n", "inputs tokens\n"),
        ("state\n", "state:\n"),
        ("config\n", "config =\n"),
        ("domain\n", "domain {\n"),
        ("  heads = 4\n", "  heads = (4 + (2 · 1)\n"),
        ("  T in [1, 64]", "  T in [1, 64"),
        ("  k_cache[S, kv_heads, D]", "  k_cache[S, kv_heads, D"),
        ("model toy/mini @ 1.0", "model toy mini"),
        ('about "A toy."', 'about "A toy.'),
        ("tokens -> h0 |", "tokens -> h0"),
        ("kv_heads = 1\n", "kv_heads = \n"),
    ],
    ids=lambda e: e[1].strip()[:30] or "nothing",
)
def test_one_fault_is_one_error(edit: tuple[str, str]) -> None:
    assert len(found(parse_spec, MINI, edit)) == 1


def test_an_open_bracket_hides_no_other_section() -> None:
    lines = [c for c, _ in found(parse_spec, MINI, ("  heads = 4\n", "  heads = (4\n"), ("h -> hn", "h => hn"))]
    assert lines == ["E101", "E101"]


def test_each_faulty_item_of_a_library_is_reported_once() -> None:
    edits = [("x + 1", "x + "), ("let a[i] = x[i]", "let a[i] x[i]"), ("  y[i] = x[i]\n", "  y[i] = x[i\n")]
    assert [line for _, line in found(parse_ops, OPS, *edits)][:2] == [
        "def f(x) = x +",
        "let a[i] x[i]",
    ]
    assert len(found(parse_ops, OPS, *edits)) == 3


def test_numbers_and_forms_are_reported_together() -> None:
    edits = [("  vocab = 11", "  vocab = 1e999"), ("  hidden = 8", "  hidden = 1e-999"), ("r=0.5", "r=1e999")]
    assert [code for code, _ in found(parse_spec, MINI, *edits)] == ["E103"] * 3


def test_a_text_without_end_of_errors_is_given_up() -> None:
    assert len(found(parse_spec, MINI, ("  vocab = 11\n", "  a = = 1\n" * 3 * MAX_ERRORS))) == MAX_ERRORS


def test_a_text_of_nothing_else_is_one_error() -> None:
    assert [code for code, _ in found(parse_spec, "lorem ipsum\n  dolor sit\namet\n")] == ["E101"]
    assert [code for code, _ in found(parse_ops, "lorem ipsum\n  dolor sit\namet\n")] == ["E101"]
