"""What is given on the command line or in a tile table becomes no code, no path elsewhere, and no message that a
terminal obeys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specc.cli import run
from specc.diagnostics import SpecError
from specc.targets.triton.tiles import parse_tiles
from tests.injection.inert import clean_message
from tests.injection.places import EXAMPLES, HIDDEN, MARKUP

ODD = [t for t in (*MARKUP, *HIDDEN.values(), "\udcff", "a\nb") if "\0" not in t and t]


def said(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    return out + err


@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_a_name_on_the_command_line_is_refused_in_plain_sight(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["build", f"{text}/x"], ["show", f"a/{text}"], ["fmt", f"{text}.spec"]):
        assert run([*arguments[:1], "--", *arguments[1:]]) == 2
        clean_message(said(capsys))
    tiny = str(EXAMPLES / "tiny.spec")
    assert run(["build", tiny, f"--target=x{text}"]) == 2
    assert run(["show", f"{tiny}:x{text}"]) == 2
    clean_message(said(capsys))
    assert run(["show", f"{tiny}:x{text}", "--json"]) == 2
    clean_message(said(capsys))


@pytest.mark.parametrize(
    "text",
    ["{{ 7*7 }}", "${HOME}", "`id`", "../../etc/passwd", "+x", "a\u202eb", "p\u0430y", "\udcff", "a\nb"],
    ids=ascii,
)
def test_a_spec_of_an_odd_name_leaves_nothing_elsewhere(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in" / "deep"
    folder.mkdir(parents=True)
    name = text.replace("/", "-")
    for file in ("tiny.spec", "own.ops"):
        (folder / (f"x{name}.spec" if file == "tiny.spec" else file)).write_bytes((EXAMPLES / file).read_bytes())
    status = run(["build", str(folder / f"x{name}.spec"), f"--out={tmp_path / 'out'}"])
    clean_message(said(capsys))
    made = [p for p in tmp_path.rglob("*") if p.is_file() and not p.is_relative_to(folder)]
    assert bool(made) is (status == 0)
    assert all(p.is_relative_to(tmp_path / "out" / f"x{name}") for p in made)


@pytest.mark.parametrize("text", ["a\x1bb", "a\x9bb", "a\u202eb", "a\u2028b", "a\nb", "`id`", "{{ 7*7 }}"], ids=ascii)
def test_an_output_folder_of_an_odd_name_is_shown_plainly(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, out = str(EXAMPLES / "tiny.spec"), str(tmp_path / text.replace("\0", ""))
    assert run(["build", spec, "--out", out, "--check"]) == 1
    clean_message(said(capsys))
    assert run(["build", spec, "--out", out, "--check", "--json"]) == 1
    shown = said(capsys)
    clean_message(shown)
    assert json.loads(shown)["folder"] == f"{out}/tiny"


@pytest.mark.parametrize("text", [*MARKUP, '"): __import__("os")', "sm_90\\n"], ids=ascii)
def test_no_text_of_a_tile_table_reaches_a_kernel(text: str) -> None:
    quoted = json.dumps(text)
    for table in (
        f"archs = [{quoted}]",
        f"pointwise = [{{ when = {quoted}, arch = {quoted}, TILE = 1024, warps = 4, stages = 1 }}]",
        f"pointwise = [{{ {quoted} = 1, TILE = 1024, warps = 4, stages = 1 }}]",
        f"{quoted} = [{{ TILE = 1024, warps = 4, stages = 1 }}]",
    ):
        try:
            found = parse_tiles(table, "mine.toml", ("sm_90",))
        except SpecError as error:
            clean_message(str(error))
        else:
            assert found.archs == ("sm_90",) and all(not row.when for row in found.rows)
