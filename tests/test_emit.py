from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from specc import emit
from specc.emit import State, drift, up_to_date, write
from specc.manifest import JOURNAL, MANIFEST, digest, read_manifest

FILES = {"README.md": "page\n", "triton/a.py": "a = 1\n", "triton/b.py": "b = 1\n", "torch/m.py": "m = √2\n"}
OPTIONS = {"targets": "torch triton"}
INPUTS = (("spec", "00"),)


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def states(folder: Path, files: dict[str, str] = FILES) -> dict[str, State]:
    return {d.name: d.state for d in drift(folder, files, OPTIONS, INPUTS)}


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    folder = tmp_path / "clean"
    write(folder, FILES, OPTIONS, INPUTS)
    return folder


def test_a_first_build_writes_every_file_and_a_sorted_manifest(clean: Path) -> None:
    assert tree(clean).keys() == {*FILES, MANIFEST}
    manifest = read_manifest(clean)
    assert manifest is not None
    assert manifest.files == tuple((n, digest(FILES[n].encode())) for n in sorted(FILES))
    assert states(clean) == {}


def test_a_second_build_touches_nothing(clean: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in sorted(clean.rglob("*"))}
    done = write(clean, FILES, OPTIONS, INPUTS)
    assert (done.wrote, done.removed, done.unchanged) == ((), (), len(FILES))
    assert {p: p.stat().st_mtime_ns for p in sorted(clean.rglob("*"))} == before


def test_only_the_changed_file_is_written(clean: Path) -> None:
    kept = (clean / "triton/b.py").stat().st_ino
    done = write(clean, {**FILES, "triton/a.py": "a = 2\n"}, OPTIONS, INPUTS)
    assert done.wrote == ("triton/a.py",)
    assert (clean / "triton/b.py").stat().st_ino == kept


def test_files_of_removed_nodes_go_with_their_folders_and_foreign_ones_stay(clean: Path) -> None:
    (clean / "notes.txt").write_text("mine")
    done = write(clean, {n: t for n, t in FILES.items() if not n.startswith("torch/")}, OPTIONS, INPUTS)
    assert done.removed == ("torch/m.py",)
    assert not (clean / "torch").exists()
    assert (clean / "notes.txt").read_text() == "mine"


def test_a_removed_nodes_file_that_somebody_edited_is_kept_and_named(clean: Path) -> None:
    (clean / "torch/m.py").write_text("my work\n")
    done = write(clean, {"README.md": "page\n"}, OPTIONS, INPUTS)
    assert done.kept == ("torch/m.py",)
    assert (clean / "torch/m.py").read_text() == "my work\n"


@pytest.mark.parametrize(
    ("text", "state"), [(None, State.MISSING), ("a = 9\n", State.EDITED), ("a =", State.TORN), ("", State.TORN)]
)
def test_drift_names_what_is_wrong_with_a_file(clean: Path, text: str | None, state: State) -> None:
    path = clean / "triton/a.py"
    path.unlink() if text is None else path.write_text(text)
    assert states(clean) == {"triton/a.py": state}
    write(clean, FILES, OPTIONS, INPUTS)
    assert states(clean) == {}


def test_drift_tells_stale_files_from_edited_ones(clean: Path) -> None:
    newer = {**FILES, "triton/a.py": "a = 2\n"}
    assert states(clean, newer) == {"triton/a.py": State.STALE, MANIFEST: State.STALE}


def test_drift_shows_a_readable_diff(clean: Path) -> None:
    (clean / "triton/a.py").write_text("a = 7\n")
    (found,) = drift(clean, FILES, OPTIONS, INPUTS)
    assert found.diff.splitlines() == [
        "--- triton/a.py (as it is)", "+++ triton/a.py (as built)", "@@ -1 +1 @@", "-a = 7", "+a = 1",
    ]  # fmt: skip


def test_drift_names_files_that_a_removed_node_left(clean: Path) -> None:
    fewer = {n: t for n, t in FILES.items() if n != "torch/m.py"}
    assert states(clean, fewer) == {"torch/m.py": State.EXTRA, MANIFEST: State.STALE}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": 3}'])
def test_a_torn_manifest_is_seen_and_mended(clean: Path, text: str) -> None:
    before = tree(clean)
    (clean / MANIFEST).write_text(text)
    assert states(clean) == {MANIFEST: State.TORN}
    assert up_to_date(clean, OPTIONS, INPUTS) is None
    write(clean, FILES, OPTIONS, INPUTS)
    assert tree(clean) == before


class Killed(BaseException):
    """Stands for the end of the process: no handler of the writer runs after it."""


@pytest.mark.parametrize("moment", range(12))
@pytest.mark.parametrize("after", [False, True])
def test_a_build_that_is_killed_leaves_whole_files_and_is_repaired(
    clean: Path, tmp_path: Path, moment: int, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = {"README.md": "page 2\n", "triton/a.py": "a = 2\n", "triton/c.py": "c = 1\n"}
    whole = {t.encode() for t in (*FILES.values(), *newer.values())}
    folder = tmp_path / "killed"
    write(folder, FILES, OPTIONS, INPUTS)
    _kill_at(moment, after, monkeypatch)
    try:
        write(folder, newer, OPTIONS, INPUTS)
        died = False
    except Killed:
        died = True
    monkeypatch.undo()
    for name, data in tree(folder).items():
        assert data in whole or name in (MANIFEST, JOURNAL) or name.endswith(emit.SUFFIX)
    assert not died or states(folder, newer)
    write(folder, newer, OPTIONS, INPUTS)
    other = tmp_path / "other"
    write(other, newer, OPTIONS, INPUTS)
    assert tree(folder) == tree(other)
    assert states(folder, newer) == {}


def _kill_at(moment: int, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends the process before or after its `moment`-th change of the folder."""
    count = 0

    def counted(real):  # type: ignore[no-untyped-def]
        def call(*arguments, **named):  # type: ignore[no-untyped-def]
            nonlocal count
            count += 1
            if count == moment + 1 and not after:
                raise Killed
            result = real(*arguments, **named)
            if count == moment + 1:
                raise Killed
            return result

        return call

    monkeypatch.setattr(os, "replace", counted(os.replace))
    monkeypatch.setattr(Path, "unlink", counted(Path.unlink))
    monkeypatch.setattr(Path, "write_bytes", counted(Path.write_bytes))


def test_files_of_a_killed_build_go_when_the_next_build_does_not_want_them(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(clean)
    _kill_at(5, True, monkeypatch)
    with pytest.raises(Killed):
        write(clean, {**FILES, "triton/x.py": "x\n", "README.md": "2\n"}, OPTIONS, INPUTS)
    monkeypatch.undo()
    write(clean, FILES, OPTIONS, INPUTS)
    assert tree(clean) == before


def test_a_full_disk_is_an_error_and_leaves_no_scraps(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    before = tree(clean)
    with pytest.raises(OSError, match="No space left"):
        write(clean, {**FILES, "README.md": "3\n"}, OPTIONS, INPUTS)
    assert tree(clean) == before


def test_up_to_date_believes_hashes_only(clean: Path) -> None:
    assert up_to_date(clean, OPTIONS, INPUTS) is not None
    assert up_to_date(clean, {"targets": "torch"}, INPUTS) is None
    assert up_to_date(clean, OPTIONS, (("spec", "01"),)) is None
    (clean / "triton/a.py").write_text("a = 3\n")
    assert up_to_date(clean, OPTIONS, INPUTS) is None


def test_up_to_date_does_not_believe_another_compiler(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit, "compiler_digest", lambda: "another")
    assert up_to_date(clean, OPTIONS, INPUTS) is None


@pytest.mark.parametrize("name", ["../x", "/x", "a/../b", "./a", "", "manifest.json", ".specc-journal"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no name for a generated file"):
        write(tmp_path / "out", {name: ""}, OPTIONS, INPUTS)


@pytest.mark.parametrize("name", ["../victim", "triton/../../victim"])
def test_a_forged_manifest_removes_nothing_outside(clean: Path, name: str) -> None:
    victim = clean.parent / "victim"
    victim.write_text("x")
    text = (clean / MANIFEST).read_text().replace('"files": {', f'"files": {{"{name}": "{digest(b"x")}", ')
    (clean / MANIFEST).write_text(text)
    write(clean, FILES, OPTIONS, INPUTS)
    assert victim.read_text() == "x"


def test_two_builds_at_once_do_not_mix(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    one, two = ({f"triton/{n}.py": f"{v}\n" for n in range(20)} for v in ("one", "two"))
    threads = [threading.Thread(target=write, args=(folder, f, OPTIONS, INPUTS)) for f in (one, two) * 5]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {data for name, data in tree(folder).items() if name != MANIFEST} in ({b"one\n"}, {b"two\n"})
    assert sorted(tree(folder)) == sorted([*one, MANIFEST])
