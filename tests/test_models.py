from __future__ import annotations

from pathlib import Path

import pytest

from specc.diagnostics import SpecError
from specc.models import find_model, known_models, split_name

HEAD = "model {key} @ {version}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "specs").mkdir()
    (tmp_path / "mine.spec").write_text("# first\n" + HEAD.format(key="me/mine", version="2.1"))
    (tmp_path / "specs" / "other.spec").write_text(HEAD.format(key="me/other", version="1.0"))
    (tmp_path / "specs" / "broken.spec").write_bytes(b"\xff")
    (tmp_path / "notes.spec").write_text("nothing\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_specs_here_and_shipped_ones_are_known_and_broken_ones_are_passed_over() -> None:
    found = [(m.key, m.version) for m in known_models()]
    assert found[:2] == [("me/mine", "2.1"), ("me/other", "1.0")]
    assert ("google/gemma-4-31B", "1.0") in found


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["me/mine", "me/mine@2.1", "mine.spec"])
def test_a_model_is_found_by_key_version_and_path(name: str) -> None:
    assert find_model(name) == Path("mine.spec")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("name", "help_"), [("me/mime", "me/mine"), ("me/mine@2.0", "me/mine")])
def test_an_unknown_model_is_a_message_with_a_suggestion(name: str, help_: str) -> None:
    with pytest.raises(SpecError, match=f"E504.*\n.*`{help_}`"):
        find_model(name)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("google/gemma-4-31B", ("google/gemma-4-31B", None)),
        ("google/gemma-4-31B@1.0:layers[5].attn.core", ("google/gemma-4-31B@1.0", "layers[5].attn.core")),
        ("a/b.spec:lm_head", ("a/b.spec", "lm_head")),
    ],
)
def test_a_name_is_a_model_and_perhaps_a_node(name: str, parts: tuple[str, str | None]) -> None:
    assert split_name(name) == parts
