"""Folders that lead elsewhere, are somebody's own, are blocked, or cannot be locked."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from specc import storage
from specc.emit import Drift, State, drift, up_to_date, write
from specc.manifest import JOURNAL, MANIFEST
from specc.storage import LOCK, SUFFIX, read_regular, replace_file, rewrite_file
from tests.test_emit import FILES, INPUTS, OPTIONS, states, tree

NEWER = {**FILES, "README.md": "page 2\n", "triton/a.py": "a = 2\n"}


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    folder = tmp_path / "clean"
    write(folder, FILES, OPTIONS, INPUTS)
    return folder


def refused(folder: Path, why: str, files: dict[str, str] = NEWER) -> None:
    before = tree(folder) if folder.is_dir() else None
    with pytest.raises(OSError, match=why):
        write(folder, files, OPTIONS, INPUTS)
    assert (tree(folder) if folder.is_dir() else None) == before


def test_nothing_is_written_through_a_linked_output_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    refused(tmp_path / "out", "it is a link")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_nothing_is_written_or_removed_through_a_linked_folder_inside(clean: Path, tmp_path: Path) -> None:
    (clean / "triton").rename(tmp_path / "elsewhere")
    (clean / "triton").symlink_to(tmp_path / "elsewhere")
    before = tree(tmp_path / "elsewhere")
    refused(clean, "it is a link")
    assert states(clean)["triton/a.py"] is State.BLOCKED
    write(clean, {"README.md": "page\n"}, OPTIONS, INPUTS)
    assert tree(tmp_path / "elsewhere") == before


@pytest.mark.parametrize("target", ["victim", "nowhere"])
def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(clean: Path, target: str) -> None:
    victim = clean.parent / "victim"
    victim.write_text("page\n")
    (clean / "README.md").unlink()
    (clean / "README.md").symlink_to(clean.parent / target)
    assert states(clean) == {"README.md": State.BLOCKED}
    assert up_to_date(clean, OPTIONS, INPUTS) is None
    write(clean, NEWER, OPTIONS, INPUTS)
    assert not (clean / "README.md").is_symlink()
    assert victim.read_text() == "page\n" and (clean / "README.md").read_text() == "page 2\n"


def test_a_linked_manifest_is_replaced_not_followed(clean: Path) -> None:
    (clean / MANIFEST).rename(clean.parent / "victim")
    (clean / MANIFEST).symlink_to(clean.parent / "victim")
    before = (clean.parent / "victim").read_bytes()
    assert states(clean) == {MANIFEST: State.BLOCKED}
    write(clean, FILES, OPTIONS, (("spec", "01"),))
    assert (clean.parent / "victim").read_bytes() == before
    assert not (clean / MANIFEST).is_symlink()


def test_a_pipe_in_the_place_of_a_file_does_not_block(clean: Path) -> None:
    (clean / "README.md").unlink()
    os.mkfifo(clean / "README.md")
    assert states(clean) == {"README.md": State.BLOCKED}
    write(clean, FILES, OPTIONS, INPUTS)
    assert states(clean) == {}


def test_a_file_in_the_place_of_a_folder_is_refused(clean: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    refused(tmp_path / "out", "a file stands in the place of this folder")
    refused(tmp_path / "out" / "deep", "a file stands|Not a directory")
    (clean / "new").write_text("mine")
    refused(clean, "a file stands in the place of this folder", {**NEWER, "new/x.py": "x\n"})


def test_a_folder_in_the_place_of_a_file_is_refused(clean: Path) -> None:
    (clean / "README.md").unlink()
    (clean / "README.md").mkdir()
    refused(clean, "a folder stands in the place of this file")
    assert states(clean) == {"README.md": State.BLOCKED}


@pytest.mark.parametrize("text", ['{"name": "my app", "icons": []}', "[]", '{"files": 3}', "hello"])
def test_somebody_elses_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / MANIFEST).write_text(text)
    refused(tmp_path / "out", "specc did not write")
    assert states(tmp_path / "out")[MANIFEST] is State.FOREIGN


def test_a_folder_with_files_of_these_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "README.md").write_text("a checkpoint\n")
    refused(tmp_path / "out", "specc did not write")
    assert states(tmp_path / "out")["README.md"] is State.FOREIGN
    (tmp_path / "out" / "README.md").write_text(NEWER["README.md"])
    write(tmp_path / "out", NEWER, OPTIONS, INPUTS)


def test_a_new_node_does_not_replace_a_file_that_was_there(clean: Path) -> None:
    (clean / "triton" / "mine.py").write_text("mine = 1\n")
    refused(clean, "specc did not write", {**FILES, "triton/mine.py": "node = 1\n"})


def put(folder: Path, name: str, how: str) -> None:
    """Puts something in the place of a file."""
    path = folder / name
    if path.is_file():
        path.unlink()
    match how:
        case "link":
            path.symlink_to(folder.parent / "nowhere")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "huge":
            sparse(path)
        case _:
            path.write_text(how)


@pytest.mark.parametrize("name", ["README.md", "triton/new.py", MANIFEST, JOURNAL])
@pytest.mark.parametrize("how", ["link", "pipe", "folder", "huge", "", "mine\n"])
def test_checking_says_whether_a_build_is_refused(clean: Path, name: str, how: str) -> None:
    put(clean, name, how)
    files = {**NEWER, "triton/new.py": "new = 1\n"}
    found = drift(clean, files, OPTIONS, INPUTS)
    try:
        write(clean, files, OPTIONS, INPUTS)
        refused = False
    except OSError:
        refused = True
    assert any(d.refused for d in found) == refused
    if refused:
        assert name in {d.name for d in found if d.refused}
    else:
        assert states(clean, files) == {}


def test_a_name_that_is_too_long_is_refused_before_anything_is_written(clean: Path) -> None:
    refused(clean, "too long", {**NEWER, f"triton/{'x' * 253}.py": ""})
    write(clean, {**NEWER, f"triton/{'x' * 252}.py": ""}, OPTIONS, INPUTS)


def test_a_scrap_of_an_ended_build_is_named_and_goes(clean: Path) -> None:
    for folder in (clean, clean / "triton"):
        (folder / f".0123{SUFFIX}").write_text("half")
    (clean / f"mine{SUFFIX}").write_text("mine")
    assert states(clean) == {f".0123{SUFFIX}": State.INTERRUPTED, f"triton/.0123{SUFFIX}": State.INTERRUPTED}
    assert up_to_date(clean, OPTIONS, INPUTS) is None
    write(clean, FILES, OPTIONS, INPUTS)
    assert tree(clean).keys() == {*FILES, MANIFEST, f"mine{SUFFIX}"}


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_modes_follow_the_umask_everywhere(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write(tmp_path / "out", FILES, OPTIONS, INPUTS)
        write(tmp_path / "out", NEWER, OPTIONS, INPUTS)
    finally:
        os.umask(before)
    modes = {oct(p.stat().st_mode & 0o777) for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert modes == {oct(0o666 & ~umask)}


def test_a_read_only_file_of_ours_is_replaced(clean: Path) -> None:
    (clean / "README.md").chmod(0o444)
    write(clean, NEWER, OPTIONS, INPUTS)
    assert (clean / "README.md").read_text() == "page 2\n"


def test_a_diff_is_shown_without_what_a_terminal_obeys(clean: Path) -> None:
    (clean / "triton/a.py").write_text(f"a = '\x1b[31m\u202e'\r\nb = '{'x' * 5000}'\n")
    (found,) = drift(clean, FILES, OPTIONS, INPUTS)
    assert "\\x1b[31m\\u202e'\\r" in found.diff
    assert max(map(len, found.diff.splitlines())) < 300
    assert all(c.isprintable() or c == "\n" for c in found.diff)
    (clean / "triton/a.py").write_bytes(b"\xff\0" * (1 << 20))
    (found,) = drift(clean, FILES, OPTIONS, INPUTS)
    assert found.diff == "2,097,152 bytes in place of 6"
    (clean / "triton/a.py").write_text("a = 1")
    (found,) = drift(clean, FILES, OPTIONS, INPUTS)
    assert "-a = 1 (no end of line)" in found.diff.splitlines()


def test_checking_waits_for_a_build_and_makes_nothing(clean: Path, tmp_path: Path) -> None:
    assert set(states(tmp_path / "nowhere").values()) == {State.MISSING}
    assert not (tmp_path / "nowhere").exists()
    with storage.locked(clean):
        asked = threading.Thread(target=states, args=(clean,))
        asked.start()
        asked.join(0.2)
        assert asked.is_alive()
    asked.join(10)
    assert not asked.is_alive()


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"compiler": "", "specc": "", "options": {}, "inputs": {}, "files": {}}']
)
def test_a_hostile_manifest_is_read_without_harm(clean: Path, text: str) -> None:
    names = '{"a\\u0000b": "0", "\\udcff": "0", "../../x": "0", "/etc/passwd": "0"}'
    (clean / MANIFEST).write_text(text.replace('"files": {}', f'"files": {names}'))
    assert up_to_date(clean, OPTIONS, INPUTS) is None
    assert MANIFEST in states(clean)


def without_locks(patch: pytest.MonkeyPatch, files_too: bool) -> None:
    real = storage.flock

    def flock(handle: int, how: int) -> None:
        if files_too or Path(f"/proc/self/fd/{handle}").is_dir():
            raise OSError(errno.ENOTSUP if files_too else errno.EBADF, "not here")
        real(handle, how)

    patch.setattr(storage, "flock", flock)


@pytest.mark.parametrize("files_too", [False, True])
def test_a_file_system_that_locks_no_folders_is_written_too(
    tmp_path: Path, files_too: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_locks(monkeypatch, files_too)
    write(tmp_path / "out", FILES, OPTIONS, INPUTS)
    assert states(tmp_path / "out") == {}
    assert not (tmp_path / "out" / LOCK).exists()


def test_a_lock_file_keeps_two_builds_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_locks(monkeypatch, False)
    folder = tmp_path / "out"
    folder.mkdir()
    inside, most = [], []

    def build() -> None:
        for _ in range(20):
            with storage.locked(folder):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=build) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert most == [1] * 80
    assert not list(folder.iterdir())


def test_a_lock_that_fails_for_another_reason_is_an_error(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(handle: int, how: int) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(storage, "flock", flock)
    refused(clean, "broken")


def test_a_users_own_file_keeps_its_mode_and_its_links(tmp_path: Path) -> None:
    real, link = tmp_path / "real.spec", tmp_path / "link.spec"
    real.write_text("a")
    real.chmod(0o640)
    link.symlink_to(real)
    rewrite_file(link, b"b")
    assert link.is_symlink() and real.read_text() == "b" and real.stat().st_mode & 0o777 == 0o640


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    replace_file(tmp_path / "a", b"x")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert read_regular(tmp_path / "a") == b"x"
    assert [read_regular(tmp_path / n) for n in ("link", "none", "a/b", ".")] == [None] * 4


def sparse(path: Path) -> None:
    """A file of 6 GB that takes no room on the disk."""
    with path.open("wb") as file:
        file.truncate(6 << 30)


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Not enough for a file of 6 GB."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("little_memory")
def test_a_huge_file_in_the_place_of_a_generated_one_is_edited_and_replaced(clean: Path) -> None:
    sparse(clean / "README.md")
    (found,) = drift(clean, FILES, OPTIONS, INPUTS)
    assert found == Drift("README.md", State.EDITED, "6,442,450,944 bytes in place of 5")
    assert up_to_date(clean, OPTIONS, INPUTS) is None
    assert write(clean, FILES, OPTIONS, INPUTS).wrote == ("README.md",)
    assert states(clean) == {}


@pytest.mark.usefixtures("little_memory")
def test_a_huge_file_of_a_removed_node_is_kept(clean: Path) -> None:
    sparse(clean / "torch/m.py")
    assert write(clean, {"README.md": "page\n"}, OPTIONS, INPUTS).kept == ("torch/m.py",)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", [MANIFEST, JOURNAL])
def test_a_huge_manifest_or_journal_is_refused(clean: Path, name: str) -> None:
    sparse(clean / name)
    assert name in states(clean)
    assert up_to_date(clean, OPTIONS, INPUTS) is None
    with pytest.raises(OSError, match="too large") as error:
        write(clean, NEWER, OPTIONS, INPUTS)
    assert error.value.filename == str(clean / name)
    assert (clean / "README.md").read_text() == FILES["README.md"]


def test_a_folder_may_be_as_deep_as_the_system_allows(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["d"] * 1500)
    write(folder, FILES, OPTIONS, INPUTS)
    assert states(folder) == {}
    with pytest.raises(OSError, match="too long"):
        write(folder.joinpath(*["d"] * 1500), FILES, OPTIONS, INPUTS)
    subprocess.run(["rm", "-r", tmp_path / "d"], check=True)  # Python removes folders by recursion
