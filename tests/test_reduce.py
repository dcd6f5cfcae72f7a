"""A reduced model is the same spec with other sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from specc.diagnostics import SpecError
from specc.formula_text import dims_text, expr_text
from specc.ir import Model, Phase
from specc.library import load_library
from specc.parse_spec import parse_spec
from specc.reduce import reduce_spec
from specc.source import Source
from specc.syntax_spec import SpecFile
from specc.typecheck.model import check_model

GEMMA = Path(__file__).parent.parent / "specs" / "gemma4.spec"
SMALL = {
    "hidden": 48,
    "vocab": 97,
    "inter": 36,
    "heads": 4,
    "layers": 6,
    "kv_heads": 2,
    "sliding.D": 8,
    "global__D": 16,
}


def gemma() -> SpecFile:
    return parse_spec(Source.read(GEMMA))


def reduced(**sizes: int) -> Model:
    return check_model(reduce_spec(gemma(), {**SMALL, **sizes}), load_library())


def test_what_is_written_in_terms_of_a_size_follows_it() -> None:
    model = reduced(window=5)
    rope, core = model.variants("attn.rope")[1], model.variants("attn.core")[0]
    assert [expr_text(v) for _, v in rope.constants if not isinstance(v, str | bool)] == [
        "16",
        "2",
        "16",
        "16",
        "1000000",
    ]
    assert dict(model.config)["text_config.sliding_window"] == 5
    assert dims_text(core.phase(Phase.DECODE)[0].formula.tensor("k").dims) == "[B, S, 2, 8]"
    assert model.layer_count == 6
    assert expr_text(dict(model.variants("embed")[0].constants)["mul"]) == "√48"  # type: ignore[arg-type]


def test_parameters_are_counted_anew() -> None:
    norms = 6 * 4 * 48 + 48
    heads = 5 * 2 * 8 + 1 * 2 * 16
    attention = 5 * (48 * 8 * 8 + 48 * 4 * 8) + (48 * 6 * 16 + 48 * 4 * 16)
    assert reduced().parameter_count == 97 * 48 + norms + heads + attention + 6 * (3 * 48 * 36) + 6


def test_nothing_replaced_is_the_same_spec() -> None:
    assert reduce_spec(gemma(), {}) == gemma()


@pytest.mark.parametrize(
    ("sizes", "code", "message", "help_"),
    [
        ({"hiden": 4}, "E290", "no size `hiden`", "did you mean `hidden`?"),
        ({"local.D": 4}, "E290", "no size `local.D`", "`global.D`"),
        ({"hidden": 0}, "E291", "`hidden` is to be a positive integer, not 0", ""),
        ({"hidden": True}, "E291", "not True", ""),
    ],
)
def test_sizes_that_cannot_be_replaced_are_refused(sizes: dict[str, int], code: str, message: str, help_: str) -> None:
    with pytest.raises(SpecError) as caught:
        reduce_spec(gemma(), sizes)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert message in found.message
    assert help_ in found.help


def test_a_size_that_does_not_divide_is_found_by_the_checker() -> None:
    with pytest.raises(SpecError) as caught:
        reduced(global__D=12)
    assert any(d.code == "E202" and "`active` is 1.5" in d.message for d in caught.value.diagnostics)
