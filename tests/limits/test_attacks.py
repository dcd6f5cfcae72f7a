"""Whatever a text says, and however much of it, the answer is a message: soon, in little memory, and no traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.limits.attacks import KINDS
from tests.limits.run import MEGABYTES, SECONDS, Answer, answer, answers
from tests.typecheck.mini import MINI

LONGEST_ANSWER = 100_000
"""Characters that a terminal gets to see."""


def laid_out(files: dict[str, str | bytes], folder: Path) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def assert_refused(found: Answer, code: str) -> None:
    assert found.status == 2, found.out[-2000:]
    assert f"error[{code}]: " in found.out
    assert "Traceback" not in found.out
    assert len(found.out) < LONGEST_ANSWER
    assert max(map(len, found.out.split("\n"))) < 1_000
    assert found.seconds < SECONDS
    assert found.megabytes < MEGABYTES


ALONE = (
    "ten megabytes", "a line of five megabytes", "a million digits", "10000 brackets", "an exponent", "words", "layers",
    "layer classes that overlap", "rows and groups", "functions of functions", "lets of lets", "tiles: keys",
)  # fmt: skip
"""Attacks that get a process each; the others share one for each kind."""


@pytest.mark.parametrize("name", ALONE)
def test_what_is_far_too_large_is_refused(name: str, tmp_path: Path) -> None:
    attack = next(a for kind in KINDS.values() for a in kind if a.name == name)
    assert_refused(answer(laid_out(attack.files, tmp_path), *attack.command), attack.code)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_too_large_is_refused(kind: str, tmp_path: Path) -> None:
    attacks = {a.name: a for a in KINDS[kind] if a.name not in ALONE}
    assert len(attacks) + sum(a.name in ALONE for a in KINDS[kind]) == len(KINDS[kind]), "two attacks of one name"
    folders = {name: tmp_path / str(n) for n, name in enumerate(attacks)}
    for name, folder in folders.items():
        folder.mkdir()
        laid_out(attacks[name].files, folder)
    found = answers({name: (folders[name], attacks[name].command) for name in attacks}, tmp_path)
    assert list(found) == list(attacks), "the process ended early"
    for name, attack in attacks.items():
        print(f"{kind}: {name}: {found[name].seconds:.2f} s")
        if attack.code:
            assert_refused(found[name], attack.code)
        else:
            assert found[name].status == 0, f"{name}: {found[name].out[-2000:]}"


@pytest.mark.parametrize("what", ["pipe", "link to a device"])
def test_what_is_no_file_is_not_read(what: str, tmp_path: Path) -> None:
    spec = tmp_path / "x.spec"
    if what == "pipe":
        os.mkfifo(spec)
    else:
        spec.symlink_to("/dev/zero")
    assert_refused(answer(tmp_path, "build", "x.spec", "--out", "out"), "E501")


@pytest.mark.parametrize("file", ["own.ops", "t.toml"])
def test_no_file_beside_the_spec_is_read_from_a_pipe(file: str, tmp_path: Path) -> None:
    (tmp_path / "x.spec").write_text(MINI.replace('about "A toy."', 'use "own.ops"' if file == "own.ops" else ""))
    os.mkfifo(tmp_path / file)
    tiles = ("--tiles", file) if file == "t.toml" else ()
    assert_refused(answer(tmp_path, "build", "x.spec", "--out", "out", *tiles), "E501")


def test_a_pipe_among_the_specs_of_a_folder_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.spec")
    (tmp_path / "b.spec").write_text("#" * 1_000_000)
    found = answer(tmp_path, "list")
    assert found.status == 0, found.out
    assert found.seconds < SECONDS
