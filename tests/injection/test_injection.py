"""Names and prose never become code: every place of a spec and library with every hostile text."""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from pathlib import Path

import pytest

from specc import pipeline
from specc.diagnostics import SpecError
from specc.inputs import Options
from specc.ir import Model
from specc.page import model_page, page_values
from tests.injection.inert import clean_message, same_code, unshadowed
from tests.injection.places import HIDDEN, LOOKALIKE_NAMES, MARKUP, NAMES, NO_NAMES, OWN, SPEC, TEXTS, WORDS, Place

HARMLESS = "harmless"


def written(folder: Path, spec: str, ops: str) -> Path:
    (folder / "tiny.spec").write_text(spec, encoding="utf-8", newline="")
    (folder / "own.ops").write_text(ops, encoding="utf-8", newline="")
    return folder / "tiny.spec"


def loaded(folder: Path, spec: str, ops: str) -> Model:
    return pipeline.load(written(folder, spec, ops))


def built(model: Model) -> dict[str, str]:
    return pipeline.files(model, pipeline.lower(model), Options())


def tensor(payload: str) -> str:
    """The name of a tensor that a row gives as `payload`."""
    return payload[1:] if payload.startswith("/") else f"model.layers.{{i}}.{payload}"


def everywhere(payload: str) -> tuple[str, str]:
    spec, ops = SPEC, OWN
    for place in TEXTS:
        spec, ops = place.fill(payload, spec, ops)
    return spec, ops


@cache
def _harmless(folder: Path) -> dict[str, str]:
    return built(loaded(folder, *everywhere(HARMLESS)))


@pytest.fixture(scope="session")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return _harmless(tmp_path_factory.mktemp("harmless"))


@pytest.mark.parametrize("payload", MARKUP, ids=ascii)
def test_a_text_stays_a_text_in_every_generated_file(payload: str, tmp_path: Path, harmless: dict[str, str]) -> None:
    model = loaded(tmp_path, *everywhere(payload))
    files = built(model)
    same_code(files, harmless)
    assert json.loads(files["config.json"]) == {"text": {"kind": payload}}
    assert model.about == payload
    assert any(p.name == tensor(payload) for n in model.nodes for w in n.weights for p in w.pieces)


@pytest.mark.parametrize("payload", MARKUP, ids=ascii)
def test_a_page_says_what_was_written(payload: str, tmp_path: Path) -> None:
    model = loaded(tmp_path, *everywhere(payload))
    page = page_values(model_page(model, pipeline.lower(model)))
    assert page["about"] == payload
    rows = [row["Checkpoint tensors"] for row in page["weights"] if row["Node"] == "attn.qkv"]  # type: ignore[attr-defined]
    assert rows == [tensor(payload)]


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("place", TEXTS, ids=lambda p: p.name)
def test_no_text_hides_anything(place: Place, name: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as error:
        loaded(tmp_path, *place.fill(HIDDEN[name]))
    clean_message(str(error.value))
    assert name in str(error.value) and error.value.diagnostics[0].code in ("E111", "E112", "E113")
    span = error.value.diagnostics[0].span
    assert span is not None and HIDDEN[name][0] in span.source.line(span.line)


@pytest.mark.parametrize("payload", [*NO_NAMES, *LOOKALIKE_NAMES], ids=ascii)
@pytest.mark.parametrize("place", NAMES, ids=lambda p: p.name)
def test_a_name_that_is_none_is_refused(place: Place, payload: str, tmp_path: Path) -> None:
    try:
        model = loaded(tmp_path, *place.fill(payload))
    except SpecError as error:
        clean_message(str(error))
        return
    same = built(model)
    for name, text in same.items():
        if name.endswith(".py"):
            unshadowed(name, text)
        assert payload.isascii() or payload not in text, name


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("place", NAMES, ids=lambda p: p.name)
def test_a_name_that_means_something_elsewhere_is_a_name_or_refused(place: Place, word: str, tmp_path: Path) -> None:
    try:
        files = built(loaded(tmp_path, *place.fill(word)))
    except SpecError as error:
        clean_message(str(error))
        return
    for name, text in files.items():
        assert name.isascii() and not name.startswith((".", "/")) and ".." not in name
        if name.endswith(".py"):
            unshadowed(name, text)
            assert text.isascii() or unicodedata.is_normalized("NFC", text)


def test_line_ends_of_another_system_change_nothing(tmp_path: Path, harmless: dict[str, str]) -> None:
    spec, ops = everywhere(HARMLESS)
    crlf = built(loaded(tmp_path, spec.replace("\n", "\r\n"), ops.replace("\n", "\r\n")))
    assert crlf == harmless
    assert built(loaded(tmp_path, "\ufeff" + spec, "\ufeff" + ops)) == harmless
