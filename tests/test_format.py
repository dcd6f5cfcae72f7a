"""The canonical form: printing then parsing is the identity, and printing again changes nothing."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from specc import syntax as s
from specc import syntax_spec as m
from specc.format import WIDTH, format_expr, format_ops, format_spec, format_value
from specc.ops import Bin, Call, Expr, Num, Sort
from specc.parse import parse_ops
from specc.parse_spec import parse_spec
from specc.source import Source
from tests.syntax_trees import expressions, ops_files, spec_files
from tests.typecheck.mini import MINI

ROOT = Path(__file__).parent.parent
SHIPPED = sorted([*(ROOT / "specs").glob("**/*.ops"), *(ROOT / "specs").glob("**/*.spec")])
SLOW = settings(
    max_examples=60,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def read_expr(text: str) -> s.Expr:
    item = parse_ops(Source("expr", f"def f(x) = {text}")).items[0]
    assert isinstance(item, s.Def)
    return item.body


@given(expressions())
@settings(max_examples=200, deadline=None)
def test_an_expression_is_read_back_as_it_was(e: s.Expr) -> None:
    text = format_expr(e)
    again = read_expr(text)
    assert again == e
    assert format_expr(again) == text
    assert [n.decimal for n in numbers_in(again)] == [n.decimal for n in numbers_in(e)]


def numbers_in(value: object) -> list[s.Number]:
    """The numbers of a tree, in the order of the text."""
    if isinstance(value, s.Number):
        return [value]
    inner = value if isinstance(value, tuple) else vars(value).values() if isinstance(value, s.Node) else ()
    return [n for v in inner for n in numbers_in(v)]


@given(ops_files())
@SLOW
def test_an_op_library_is_read_back_as_it_was(tree: s.OpsFile) -> None:
    text = format_ops(tree)
    again = parse_ops(Source("ops", text))
    assert again == tree
    assert format_ops(again) == text


@given(spec_files)
@SLOW
def test_a_spec_is_read_back_as_it_was(tree: m.SpecFile) -> None:
    text = format_spec(tree)
    again = parse_spec(Source("spec", text))
    assert again == tree
    assert format_spec(again) == text


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.name)
def test_shipped_files_are_canonical(path: Path) -> None:
    source = Source.read(path)
    text = format_ops(parse_ops(source)) if path.suffix == ".ops" else format_spec(parse_spec(source))
    assert text == source.text


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("sqrt(x) * y", "√x · y"),
        ("x^2 + (y ^ 3)", "x² + y³"),
        ("((a + b)) * c", "(a + b) · c"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a - b) - c", "a - b - c"),
        ("a*b/c", "a·b / c"),
        ("a / (b * c)", "a / (b·c)"),
        ("2*x/3", "2·x / 3"),
        ("1/2", "1/2"),
        ("(-x)^2", "(-x)²"),
        ("-(x^2)", "-x²"),
        ("theta^(-(2*i/n))", "theta ^ -(2·i / n)"),
        ("a <= b and b != c or not c >= a", "a ≤ b and b ≠ c or not c ≥ a"),
        ("scale * Sum_e q[e]*k[e]", "scale · Σ_e q[e] · k[e]"),
        ("(Sum_j x[j]) * c", "(Σ_j x[j]) · c"),
        ("Prod_{r<n | r < m} a[r]", "Π_{r < n | r < m} a[r]"),
        ("if a < b then x else if b < c then y else z", "if a < b then x else if b < c then y else z"),
        ("if (if a<b then b<c else c<d) then x else y", "if (if a < b then b < c else c < d) then x else y"),
        ("2 * pi", "2·π"),
        ("α + σ(x)", "alpha + sigmoid(x)"),
        ("0.10 + 1e-6 + 1E6 + 5376 + 1.0", "0.1 + 1e-6 + 1000000 + 5376 + 1.0"),
        ("30.00 + 0.0 + 1.0e7", "30.0 + 0.0 + 10000000.0"),
        ("15e20 + 1.5e21 + 1e20 + 1.0e20 + 100e-2", "15e20 + 1.5e21 + 1e20 + 1.0e20 + 1"),
        ("softmax_l(z[l] | p - w < l <= p)", "softmax_l(z[l] | p - w < l ≤ p)"),
    ],
)
def test_canonical_spelling_of_an_expression(written: str, canonical: str) -> None:
    assert format_expr(read_expr(written)) == canonical


def test_long_lines_of_a_library_are_broken() -> None:
    text = (ROOT / "specs" / "ops" / "attention.ops").read_text(encoding="utf-8")
    one_line = " ".join(text.split("# Rotates")[1].split("\n", 1)[1].split())
    printed = format_ops(parse_ops(Source("rope", one_line)))
    assert max(map(len, printed.split("\n"))) <= WIDTH
    assert "\n    else if i < rot then" in printed


def test_columns_of_the_node_table_are_aligned() -> None:
    lines = [line for line in format_spec(parse_spec(Source("mini", MINI))).split("\n") if line.startswith("  |")]
    bars = [[i for i, c in enumerate(line) if c == "|"][:6] for line in lines]
    assert len(lines) == 13
    assert all(b == bars[0] for b in bars)


def test_comments_keep_their_places() -> None:
    text = "# file\n\n# sections\n" + MINI.replace("sizes\n", "# sizes\nsizes\n  # eleven\n") + "\n# end\n"
    printed = format_spec(parse_spec(Source("mini", text)))
    assert printed.startswith("# file\n\n# sections\nmodel toy/mini")
    assert "\n\n# sizes\nsizes\n  # eleven\n  vocab = 11\n" in printed
    assert printed.endswith("\n\n# end\n")


def test_values_are_shown_as_the_page_shows_them() -> None:
    root = Call("sqrt", (Num(Fraction(5376)),))
    shown: list[Expr] = [
        Num(Fraction("1e-6")),
        Num(Fraction(16384), Sort.INDEX),
        root,
        Bin("/", Num(Fraction(1)), root, Sort.REAL),
    ]
    assert [format_value(v) for v in shown] == ["1e-06", "16384", "√5376", "1 / √5376"]
    assert [format_value(v) for v in (True, False, "gelu_pytorch_tanh")] == ["True", "False", "gelu_pytorch_tanh"]
