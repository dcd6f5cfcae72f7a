"""Builds on a disk that is full, and into a folder that cannot be written."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from specc import pipeline
from specc.inputs import Options
from tests.builds.disks import limited, on_disk, space, unprivileged
from tests.builds.runs import command, environment, tiny, tree, whole


@pytest.fixture
def versions(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A spec, an older build of it with fewer files, and a clean one."""
    old, new = tmp_path / "old", tmp_path / "new"
    spec = tiny(tmp_path, edited=True)
    pipeline.build(spec, old, Options(targets=("torch",)))
    tiny(tmp_path)
    pipeline.build(spec, new, Options())
    return spec, old, new


def refused(errors: str, why: str) -> None:
    assert "error[E502]: cannot write" in errors and why in errors, errors
    assert "Traceback" not in errors


def checked(spec: Path, out: Path, clean: Path) -> None:
    """`--check` names what is wrong, and the next build repairs it."""
    states = {str(d.state) for d in pipeline.drift(spec, out, Options())}
    assert "a build was interrupted" in states
    pipeline.build(spec, out, Options())
    assert tree(out) == tree(clean)
    assert not pipeline.drift(spec, out, Options())


@pytest.mark.parametrize("older", [False, True])
def test_a_full_disk_is_an_error_and_leaves_whole_files(
    versions: tuple[Path, Path, Path], older: bool, tmp_path: Path
) -> None:
    spec, old, new = versions
    left = tmp_path / "left"
    if space() is None:
        if older:
            shutil.copytree(old, left)
        done = subprocess.run(
            limited(4000, "build", spec, "--out", left), env=environment(), capture_output=True, timeout=120
        )
        status, errors, why = done.returncode, done.stderr.decode(), "File too large"
    else:
        status, errors, why = full(spec, old if older else None, left, tmp_path), "", "No space left"
        errors = (left / "errors").read_text()
        (left / "errors").unlink()
    assert status == 2
    refused(errors, why)
    whole(left, tree(old), tree(new))
    assert not [n for n in tree(left) if n.endswith(".specc-new")]
    checked(spec, left, new)


def full(spec: Path, old: Path | None, left: Path, tmp_path: Path) -> int:
    """Builds on a disk that is too small, copies what is there to `left` and gives the status."""
    disk = tmp_path / "disk"
    disk.mkdir()
    left.mkdir()
    room = 120 if old is None else 60 + sum(-(-len(d) // 4096) * 4 for d in tree(old).values())
    before = f"cp -r '{old}'/. '{disk}'/;" if old else ""
    run = shlex.join(command("build", spec, "--out", disk))
    after = f"code=0; {run} 2>'{left}/errors' || code=$?; cp -r '{disk}'/. '{left}'/; exit $code"
    done = on_disk(disk, before + after, f"{room}k")
    return done.returncode


def test_a_read_only_file_system_is_an_error_and_is_checked(versions: tuple[Path, Path, Path], tmp_path: Path) -> None:
    spec, old, _ = versions
    if space() is None:
        return refused_by_modes(spec, old)
    disk = tmp_path / "disk"
    disk.mkdir()
    build, check = (shlex.join(command("build", spec, "--out", disk, *more)) for more in ((), ("--check",)))
    script = f"cp -r '{old}'/. '{disk}'/; mount -o remount,ro '{disk}'; {check} && exit 9; {build}"
    done = on_disk(disk, script, "8m")
    assert done.returncode == 2 and b"stale" in done.stdout
    refused(done.stderr.decode(), "Read-only file system")
    script = f"mount -o remount,ro '{disk}'; {check} >'{tmp_path}/report'; test $? = 1; {build}"
    done = on_disk(disk, script.replace(f"{check} >", f"! {check} >").replace("; test $? = 1", ""), "8m")
    assert done.returncode == 2 and "missing" in (tmp_path / "report").read_text()
    refused(done.stderr.decode(), "Read-only file system")
    return None


def refused_by_modes(spec: Path, old: Path) -> None:
    before = tree(old)
    folders = [old, *(p for p in old.rglob("*") if p.is_dir())]
    for folder in (spec.parent, *spec.parent.parents):
        if folder.owner() != "root" and folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o005)
    for folder in folders:
        folder.chmod(0o555)
    try:
        done = subprocess.run(
            unprivileged("build", spec, "--out", old), env=environment(), capture_output=True, timeout=120
        )
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert done.returncode == 2
    refused(done.stderr.decode(), "Permission denied")
    assert tree(old) == before
