"""Spec Keys name nodes."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specc.diagnostics import SpecError
from specc.ir import Model
from specc.library import load_library
from specc.parse_spec import parse_spec
from specc.source import Source
from specc.spec_key import SpecKey, format_key, parse_key, resolve
from specc.typecheck.model import check_model
from tests.typecheck.mini import MINI


@cache
def mini() -> Model:
    return check_model(parse_spec(Source("mini.spec", MINI)), load_library())


WORDS = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True)
KEYS = st.builds(
    SpecKey,
    st.lists(WORDS, min_size=1, max_size=3).map(".".join),
    st.none() | st.just("*") | st.integers(0, 9999),
    st.just("google/gemma-4-31B"),
    st.sampled_from(["1.0", "2"]),
)


@given(KEYS)
def test_a_key_is_read_back_as_it_was_written(key: SpecKey) -> None:
    assert parse_key(str(key)) == key


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("toy/mini@1.0:layers[*].core", ["local", "full"]),
        ("layers[*].core", ["local", "full"]),
        ("core", ["local", "full"]),
        ("layers[3].core", ["full"]),
        ("toy/mini@1.0:layers[0].core", ["local"]),
        ("layers[2].add", ["all"]),
        ("toy/mini@1.0:head", [None]),
    ],
)
def test_a_key_names_the_variants_of_a_node(text: str, classes: list[str | None]) -> None:
    assert [n.layer_class for n in resolve(mini(), text)] == classes


def test_a_node_has_a_key_in_all_its_layers_and_in_one() -> None:
    core, head = mini().variants("core")[1], mini().variants("head")[0]
    assert format_key(mini(), core) == "toy/mini@1.0:layers[*].core"
    assert format_key(mini(), core, 3) == "toy/mini@1.0:layers[3].core"
    assert format_key(mini(), head) == "toy/mini@1.0:head"
    assert resolve(mini(), format_key(mini(), core, 3)) == [core]


@pytest.mark.parametrize(
    ("text", "code", "message", "help_"),
    [
        ("layers[x].core", "E280", "is no Spec Key", "layers[*].attn.core"),
        ("toy/mini:core", "E280", "is no Spec Key", "layers[*].attn.core"),
        ("", "E280", "is no Spec Key", ""),
        ("cor", "E281", "has no node `cor`", "did you mean `core`?"),
        ("toy/mini@2.0:core", "E282", "key of another model", "toy/mini@1.0"),
        ("layers[4].core", "E283", "there is no layer 4", "layers are 0 to 3"),
        ("layers[1].norm", "E283", "`norm` does not stand in layer 1", "local: 0, 2"),
        ("layers[*].head", "E283", "outside the layers", "write `head`"),
    ],
)
def test_a_key_that_names_nothing_is_refused(text: str, code: str, message: str, help_: str) -> None:
    with pytest.raises(SpecError) as caught:
        resolve(mini(), text)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert message in found.message
    assert help_ in found.help
