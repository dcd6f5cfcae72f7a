"""`specc build` of several specs at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from specc import library
from specc.cli import run
from specc.parse import parse_ops
from specc.source import Source
from specc.syntax import OpsFile

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def specc(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """`specc build ARGUMENTS --out tmp/out`: exit status, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = run(["build", *map(str, arguments), "--out", str(tmp_path / "out")])
        out, err = capsys.readouterr()
        return status, out, err

    return call


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """The small example under two names, and one of the second name elsewhere."""
    (tmp_path / "own.ops").write_text((EXAMPLES / "own.ops").read_text())
    text = (EXAMPLES / "tiny.spec").read_text()
    (tmp_path / "one.spec").write_text(text)
    (tmp_path / "two.spec").write_text(text.replace("inter = ", "inter = 2·"))
    return tmp_path / "one.spec", tmp_path / "two.spec"


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_specs_built_together_give_what_each_gives_alone(specc: Run, two: tuple[Path, Path]) -> None:
    out = two[0].parent / "out"
    assert specc(two[1])[0] == specc(two[0])[0] == 0
    alone = tree(out)
    (two[0].parent / "out").rename(two[0].parent / "before")
    status, text, _ = specc(*two)
    assert status == 0
    assert [line.split(":")[0] for line in text.splitlines()] == [f"{out}/one", f"{out}/two"]
    assert tree(out) == alone


def test_the_shipped_ops_are_read_once(specc: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for kept in (library._shipped_library, library._shipped_files):
        kept.cache_clear()
    read: list[str] = []

    def parse(source: Source) -> OpsFile:
        read.append(source.name)
        return parse_ops(source)

    monkeypatch.setattr(library, "parse_ops", parse)
    assert specc("Qwen/Qwen3-0.6B", "ibm-granite/granite-3.3-8b-instruct", "--target", "torch")[0] == 0
    assert len(read) == len(set(read)) > 0


def test_a_mistake_in_one_spec_leaves_the_others_built(specc: Run, two: tuple[Path, Path]) -> None:
    two[0].write_text(two[0].read_text().replace("layers ", "layers 0·", 1))
    status, text, err = specc(*two)
    assert status == 2
    assert "one.spec" in err and "two.spec" not in err
    assert text.startswith(f"{two[0].parent}/out/two: ")


def test_check_tells_of_each_and_fails_for_any(specc: Run, two: tuple[Path, Path]) -> None:
    specc(*two)
    assert specc(*two, "--check")[0] == 0
    (two[0].parent / "out" / "two" / "config.json").write_text("[]\n")
    status, text, _ = specc(*two, "--check")
    assert status == 1
    assert "one: as built" in text and "two: 1 file not as built" in text


def test_the_report_of_several_lists_them(specc: Run, two: tuple[Path, Path]) -> None:
    report = json.loads(specc(*two, "--json")[1])
    assert report["ok"] is True
    assert [Path(one["folder"]).name for one in report["specs"]] == ["one", "two"]


def test_the_report_of_several_has_what_was_built_and_what_is_wrong(specc: Run, two: tuple[Path, Path]) -> None:
    two[0].write_text(two[0].read_text().replace("layers ", "layers 0·", 1))
    status, text, err = specc(*two, "--json")
    report = json.loads(text)
    assert (status, err, report["ok"]) == (2, "", False)
    assert {error["file"] for error in report["errors"]} == {str(two[0])}
    (built,) = report["specs"]
    assert built["ok"] is True and Path(built["folder"]).name == "two" and built["wrote"] == built["files"]


def test_a_spec_named_twice_is_built_once(specc: Run, two: tuple[Path, Path]) -> None:
    again = two[0].parent / "." / ".." / two[0].parent.name / "one.spec"
    assert specc(two[0], again, two[0])[1].count("written") == 1


def test_two_specs_of_one_name_are_refused_before_anything_is_written(specc: Run, two: tuple[Path, Path]) -> None:
    other = two[0].parent / "sub" / "one.spec"
    other.parent.mkdir()
    other.write_text(two[0].read_text())
    status, _, err = specc(two[0], other)
    assert status == 2 and "E503" in err and "would both be built into" in err
    assert not (two[0].parent / "out").exists()


@pytest.mark.parametrize("option", [("--watch",), ("--dump-stage", "model")])
def test_what_is_for_one_spec_takes_one(specc: Run, two: tuple[Path, Path], option: tuple[str, ...]) -> None:
    status, _, err = specc(*two, *option)
    assert status == 2 and "take one spec" in err


def test_a_link_that_leads_to_itself_is_a_message(specc: Run, tmp_path: Path) -> None:
    for name in ("loop.spec", "sub/loop.spec"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(tmp_path / name)
    status, text, err = specc(tmp_path / "loop.spec")
    assert (status, text) == (2, "") and "error[E501]: cannot read" in err
    status, _, err = specc(tmp_path / "loop.spec", tmp_path / "sub" / ".." / "loop.spec")
    assert status == 2 and "error[E50" in err


def test_a_folder_that_is_gone_is_a_message(
    specc: Run, two: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    status, _, err = specc("one.spec", "../one.spec", "./sub/two.spec")
    assert status == 2 and "error[E50" in err
    assert run(["build", str(two[0]), "--target", "torch"]) == 2
    assert run(["list"]) == 0
