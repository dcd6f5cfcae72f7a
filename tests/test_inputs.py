"""A spec reads op libraries in its folder, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from specc import pipeline
from specc.diagnostics import SpecError
from specc.inputs import Options, read_inputs, used_file
from specc.manifest import MANIFEST
from tests.typecheck.mini import MINI

SECRET = "TOKEN = %very-secret"
ELSEWHERE = (
    "../home/.env",
    "../home/a.ops",
    "lib/../../home/a.ops",
    ".env",
    "a.txt",
    "./a.ops",
    "lib//a.ops",
    "..\\\\a.ops",
)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    for folder, name in (("home", ".env"), ("home", "a.ops"), ("work", ".env"), ("work", "a.txt")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(SECRET)
    (tmp_path / "work" / "mini.spec").write_text(MINI)
    return tmp_path / "work" / "mini.spec"


def using(spec: Path, name: str) -> str:
    spec.write_text(MINI.replace('about "A toy."', f'use "{name}"'))
    with pytest.raises(SpecError) as caught:
        pipeline.build(spec, spec.parent / "out", Options())
    (found,) = caught.value.diagnostics
    assert found.span is not None and (found.span.line, found.span.column) == (2, 5)
    assert "secret" not in str(caught.value)
    assert not (spec.parent / "out").exists()
    return found.code


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_text_that_is_no_op_library_beside_the_spec_is_not_read(spec: Path, name: str) -> None:
    assert using(spec, name) == "E104"


def test_an_absolute_path_is_not_read(spec: Path) -> None:
    assert using(spec, str(spec.parent.parent / "home" / "a.ops")) == "E104"


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_out_of_the_folder_is_not_followed(spec: Path, what: str) -> None:
    home = spec.parent.parent / "home"
    (spec.parent / "a").symlink_to(home) if what == "folder" else (spec.parent / "a.ops").symlink_to(home / "a.ops")
    assert using(spec, "a/a.ops" if what == "folder" else "a.ops") == "E501"


def test_a_link_in_a_circle_is_no_file(spec: Path) -> None:
    (spec.parent / "a.ops").symlink_to("a.ops")
    assert using(spec, "a.ops") == "E501"


def test_a_library_below_the_folder_is_read(spec: Path) -> None:
    (spec.parent / "lib").mkdir()
    (spec.parent / "lib" / "a.ops").write_text("def twice(x) = 2·x\n")
    (spec.parent / "b.ops").symlink_to("lib/a.ops")
    assert used_file(spec, "b.ops") == spec.parent / "b.ops"
    spec.write_text(MINI.replace('about "A toy."', 'use "lib/a.ops"'))
    assert "twice" in {d.name for d in pipeline.load(spec).library.defs}


def test_a_manifest_cannot_name_what_a_spec_cannot(spec: Path) -> None:
    folder = pipeline.build(spec, spec.parent / "out", Options(("torch",))).folder
    manifest = folder / MANIFEST
    manifest.write_text(manifest.read_text().replace('"inputs": {', '"inputs": {"use/../home/.env": "0",', 1))
    with pytest.raises(SpecError):
        read_inputs(spec, ["../home/.env"])
    assert pipeline.up_to_date(spec, folder, Options(("torch",))) is None
