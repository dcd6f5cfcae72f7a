from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from specc import emit
from specc.emit import State, drift, up_to_date, write
from specc.manifest import JOURNAL, MANIFEST, compiler_digest, digest, read_manifest
from specc.storage import SUFFIX

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


@pytest.mark.parametrize("text", ["", "\0" * 512, "{", '{\n  "compiler": "ab', '{\n  "compiler": "ab",\n  "files": 3}'])
def test_a_torn_manifest_is_seen_and_mended(clean: Path, text: str) -> None:
    before = tree(clean)
    (clean / MANIFEST).write_text(text)
    assert states(clean) == {MANIFEST: State.TORN}
    assert up_to_date(clean, OPTIONS, INPUTS) is None
    write(clean, FILES, OPTIONS, INPUTS)
    assert tree(clean) == before


NEWER = {"README.md": "page 2\n", "triton/a.py": "a = 2\n", "triton/c.py": "c = 1\n", "new/d/e.py": "e = 1\n"}
CALLS = ("open", "write", "close", "replace", "unlink", "mkdir", "rmdir")
"""What the writer asks of the operating system and what can fail or be the last thing that it does."""


def at_call(moment: int, act: Callable[[], None], after: bool, patch: pytest.MonkeyPatch) -> None:
    """Does `act` before or after the `moment`-th call of the operating system. A file is closed even where
    that fails."""
    counter = count()

    def counted(real, after):  # type: ignore[no-untyped-def]
        def call(*arguments, **named):  # type: ignore[no-untyped-def]
            mine = next(counter)
            if mine == moment and not after:
                act()
            try:
                return real(*arguments, **named)
            finally:
                if mine == moment and after:
                    act()

        return call

    for name in CALLS:
        patch.setattr(os, name, counted(getattr(os, name), after or name == "close"))


def killed(folder: Path, moment: int, after: bool, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Builds NEWER in a process that ends at its `moment`-th call; whether it did."""
    child = os.fork()
    if child == 0:
        leave = os._exit
        try:
            at_call(moment, lambda: leave(9), after, monkeypatch)
            write(folder, NEWER, OPTIONS, INPUTS)
            leave(0)
        finally:
            leave(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9)
    return code == 9


def whole(folder: Path) -> None:
    """Every file is an old or a new one; only what has our ending may be less."""
    known = {t.encode() for t in (*FILES.values(), *NEWER.values())}
    for name, data in tree(folder).items():
        assert data in known or name in (MANIFEST, JOURNAL) or name.endswith(SUFFIX), name
    for name in (MANIFEST, JOURNAL):
        if (folder / name).exists():
            json.loads((folder / name).read_text())


def repaired(folder: Path, files: dict[str, str]) -> None:
    """A build ends where one into a new folder does."""
    write(folder, files, OPTIONS, INPUTS)
    with TemporaryDirectory() as other:
        write(Path(other), files, OPTIONS, INPUTS)
        assert everything(folder) == everything(Path(other))
    assert states(folder, files) == {}
    assert up_to_date(folder, OPTIONS, INPUTS) is not None


def everything(folder: Path) -> dict[str, bytes | None]:
    """Files, and folders as None."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))
    }


def done(folder: Path) -> bool:
    """Whether `folder` holds what a build of NEWER leaves, and nothing else."""
    return tree(folder).keys() == {*NEWER, MANIFEST} and states(folder, NEWER) == {}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("then", [NEWER, FILES], ids=["goes on", "goes back"])
def test_a_build_that_is_killed_at_any_call_leaves_whole_files_and_is_repaired(
    tmp_path: Path, after: bool, then: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for moment in count():
        folder = tmp_path / str(moment)
        write(folder, FILES, OPTIONS, INPUTS)
        if not killed(folder, moment, after, monkeypatch):
            break
        whole(folder)
        assert done(folder) or states(folder, NEWER)
        repaired(folder, then)
    assert moment > 40


FAULTS = [OSError(n, os.strerror(n)) for n in (errno.ENOSPC, errno.EACCES, errno.EIO)]


@pytest.mark.parametrize("fault", [*FAULTS, KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("after", [False, True])
def test_a_call_that_fails_ends_the_build_leaves_no_scraps_and_is_repaired(
    tmp_path: Path, fault: BaseException, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fired = []

    def fail() -> None:
        fired.append(moment)
        raise fault

    raised = 0
    for moment in count():
        folder = tmp_path / str(moment)
        write(folder, FILES, OPTIONS, INPUTS)
        with monkeypatch.context() as patch:
            at_call(moment, fail, after, patch)
            try:
                write(folder, NEWER, OPTIONS, INPUTS)
            except type(fault):
                raised += 1
        if len(fired) <= moment:
            break
        whole(folder)
        assert done(folder) or states(folder, NEWER)
        repaired(folder, NEWER)
    assert raised > 20


def test_a_short_write_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, bytes(data)[:2]))
    write(tmp_path / "out", FILES, OPTIONS, INPUTS)
    monkeypatch.undo()
    assert states(tmp_path / "out") == {}


def test_what_fails_is_named_by_the_file_that_was_to_be_written(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="full") as error:
        write(clean, NEWER, OPTIONS, INPUTS)
    assert error.value.filename == str(clean / JOURNAL)


def test_up_to_date_believes_hashes_only(clean: Path) -> None:
    assert up_to_date(clean, OPTIONS, INPUTS) is not None
    assert up_to_date(clean, {"targets": "torch"}, INPUTS) is None
    assert up_to_date(clean, OPTIONS, (("spec", "01"),)) is None
    (clean / "triton/a.py").write_text("a = 3\n")
    assert up_to_date(clean, OPTIONS, INPUTS) is None


def test_a_build_by_another_compiler_that_writes_the_same_files_is_noted_once(clean: Path) -> None:
    manifest = clean / MANIFEST
    ours = manifest.read_text()
    manifest.write_text(ours.replace(compiler_digest(), "0" * 64))
    assert up_to_date(clean, OPTIONS, INPUTS) is None and states(clean) == {}
    assert write(clean, FILES, OPTIONS, INPUTS).wrote == ()
    assert manifest.read_text() == ours
    assert up_to_date(clean, OPTIONS, INPUTS) is not None


def test_up_to_date_does_not_believe_another_compiler(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit, "compiler_digest", lambda: "another")
    assert up_to_date(clean, OPTIONS, INPUTS) is None


@pytest.mark.parametrize(
    "name",
    ["../x", "/x", "a/../b", "./a", "", "a//b", "a\\b", "a\0b", "a\nb", "\udcff", "manifest.json", ".specc-journal"],
)
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
