"""Whatever the text, the answer is a model or diagnostics, never a traceback."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specc.codes import CODES
from specc.diagnostics import SpecError
from specc.library import load_library
from specc.parse import parse_ops
from specc.parse_spec import parse_spec
from specc.source import Source
from specc.syntax_spec import SpecFile
from specc.typecheck.model import check_model
from specc.typecheck.ops import check_library
from tests.syntax_trees import ops_files, spec_files
from tests.typecheck.mini import MINI

TOKENS = re.findall(r"\s+|\w+|[^\w\s]", MINI)
FUZZ = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def settle(text: str) -> None:
    """Checks `text`; anything but SpecError is a failure."""
    try:
        check_model(parse_spec(Source("fuzz.spec", text)), load_library())
    except SpecError as error:
        assert error.diagnostics
        for found in error.diagnostics:
            assert found.code in CODES
            assert found.span is not None
            found.render()


@st.composite
def edited_tokens(draw: st.DrawFn) -> str:
    tokens = list(TOKENS)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(tokens) - 1))
        match draw(st.sampled_from(["drop", "copy", "swap"])):
            case "drop":
                tokens[at] = ""
            case "copy":
                tokens[at] = draw(st.sampled_from(TOKENS))
            case _:
                other = draw(st.integers(0, len(tokens) - 1))
                tokens[at], tokens[other] = tokens[other], tokens[at]
    return "".join(tokens)


@given(edited_tokens())
@FUZZ
def test_a_spec_with_tokens_moved_about_is_answered(text: str) -> None:
    settle(text)


@given(st.text(max_size=60), st.integers(0, len(MINI)))
@FUZZ
def test_a_spec_with_junk_in_it_is_answered(junk: str, at: int) -> None:
    settle(MINI[:at] + junk + MINI[at:])


@given(spec_files)
@settings(FUZZ, max_examples=40)
def test_a_spec_of_any_form_is_answered(tree: SpecFile) -> None:
    try:
        check_model(tree, load_library())
    except SpecError as error:
        assert error.diagnostics


@pytest.mark.parametrize(
    "text",
    [
        "√(" * 3000 + "x" + ")" * 3000,
        "+".join(["x"] * 3000),
        "-" * 3000 + "x",
        "if x < 1 then " * 999 + "x" + " else x" * 999,
    ],
    ids=["roots", "sum", "minus", "if"],
)
def test_a_text_that_nests_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="E107"):
        parse_ops(Source("deep.ops", f"def f(x) = {text}"))


def test_a_deep_text_within_the_limit_goes_through_every_stage() -> None:
    text = "def f(x) = " + "+".join(["x"] * 120)
    assert len(check_library([parse_ops(Source("deep.ops", text))]).defs) == 1
    settle(MINI.replace("r=0.5", "r=" + "(1+" * 60 + "1" + ")" * 60))


@given(ops_files())
@FUZZ
def test_a_library_of_any_form_is_answered(tree: object) -> None:
    try:
        check_library([tree])  # type: ignore[list-item]
    except SpecError as error:
        assert error.diagnostics
