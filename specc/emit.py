"""The one writer of generated files.

A folder is written under a lock. Each file is replaced whole, and only where its bytes differ. A journal names what is
about to be written before the first file is; the manifest is renamed last and is the commit. Whatever happens in
between, every file is an old or a new one, `drift` says what is wrong, and the next build ends where a clean one does.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath

from specc.manifest import (
    JOURNAL,
    MANIFEST,
    Hashes,
    Manifest,
    compiler_digest,
    digest,
    hashes,
    read_journal,
    read_manifest,
)

SUFFIX = ".specc-new"
DIFF_LINES = 60
"""Longest diff of one file that `drift` gives."""


@dataclass(frozen=True)
class Written:
    """Names of files that a build wrote and removed, those of removed nodes that it kept because somebody edited them,
    and how many it left as they were."""

    wrote: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    unchanged: int


class State(StrEnum):
    """What is wrong with a generated file."""

    MISSING = "missing"
    STALE = "stale"
    EDITED = "edited by hand"
    TORN = "torn"
    EXTRA = "left of a removed node"
    INTERRUPTED = "a build was interrupted"


@dataclass(frozen=True)
class Drift:
    """One file that is not what a build would write. `diff` leads from the file to what is expected."""

    name: str
    state: State
    diff: str = ""


def write(folder: Path, files: Mapping[str, str], options: Mapping[str, str], inputs: Hashes) -> Written:
    """Makes `folder` hold `files` (names relative to it) and a manifest. Files that specc never wrote stay.

    Raises OSError; then every file is still whole, and another build repairs the folder."""
    wanted = {_safe(name): text.encode() for name, text in files.items()}
    manifest = Manifest(tuple(sorted(options.items())), inputs, hashes(wanted))
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        old, owned = read_manifest(folder), _owned(folder)
        changed = [name for name in sorted(wanted) if _read(folder / name) != wanted[name]]
        gone = [name for name in sorted(owned) if name not in wanted and (folder / name).is_file()]
        kept = tuple(name for name in gone if digest(_read(folder / name) or b"") not in owned[name])
        removed = tuple(name for name in gone if name not in kept)
        if changed or removed or old != manifest or read_journal(folder) is not None:
            _commit(folder, {name: wanted[name] for name in changed}, removed, owned, manifest)
    return Written(tuple(changed), removed, kept, len(wanted) - len(changed))


def _commit(
    folder: Path,
    changed: Mapping[str, bytes],
    removed: tuple[str, ...],
    owned: Mapping[str, tuple[str, ...]],
    manifest: Manifest,
) -> None:
    _sweep(folder)
    replace_file(folder / JOURNAL, _journal(owned, manifest))
    for name in sorted(changed):
        replace_file(folder / name, changed[name])
    for name in removed:
        (folder / name).unlink()
        _prune(folder, (folder / name).parent)
    replace_file(folder / MANIFEST, manifest.text().encode())
    (folder / JOURNAL).unlink()


def _safe(name: str) -> str:
    """`name`, when it stays inside the folder. Raises ValueError: a name that does not is a fault of specc."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or str(path) != name or name in (MANIFEST, JOURNAL):
        raise ValueError(f"{name!r} is no name for a generated file")
    return name


def _owned(folder: Path) -> dict[str, tuple[str, ...]]:
    """Files that specc wrote or was about to write, with the hashes that they then have."""
    found: dict[str, tuple[str, ...]] = {}
    manifest = read_manifest(folder)
    for name, sums in (*(manifest.files if manifest else ()), *(read_journal(folder) or ())):
        with suppress(ValueError):
            found[_safe(name)] = (*found.get(name, ()), *sums.split())
    return found


def _journal(owned: Mapping[str, tuple[str, ...]], manifest: Manifest) -> bytes:
    table = {name: " ".join(sums) for name, sums in owned.items()}
    for name, found in manifest.files:
        table[name] = f"{table[name]} {found}" if name in table else found
    return (json.dumps(table, indent=2, sort_keys=True) + "\n").encode()


def replace_file(path: Path, data: bytes) -> None:
    """Replaces a file whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}{SUFFIX}")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise


def _sweep(folder: Path) -> None:
    for left in sorted(folder.rglob(f".*{SUFFIX}")):
        left.unlink()


def _prune(folder: Path, parent: Path) -> None:
    """Removes folders that are empty now, up to the output folder."""
    with suppress(OSError):
        while parent != folder:
            parent.rmdir()
            parent = parent.parent


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One build at a time in a folder, the others wait. The lock is on the folder itself and ends with the process."""
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def up_to_date(folder: Path, options: Mapping[str, str], inputs: Hashes) -> Manifest | None:
    """The manifest of `folder`, if a build with these options and inputs by this compiler would change nothing."""
    manifest = read_manifest(folder)
    if manifest is None or (folder / JOURNAL).exists():
        return None
    found = Manifest(tuple(sorted(options.items())), inputs, manifest.files)
    same = manifest == found and manifest.compiler == compiler_digest()
    return manifest if same and all(digest(_read(folder / n) or b"") == s for n, s in manifest.files) else None


def drift(folder: Path, files: Mapping[str, str], options: Mapping[str, str], inputs: Hashes) -> tuple[Drift, ...]:
    """How `folder` differs from what `write` would leave there, by name. Writes nothing."""
    wanted = {name: text.encode() for name, text in files.items()}
    expected = Manifest(tuple(sorted(options.items())), inputs, hashes(wanted))
    owned = _owned(folder)
    found = [_compare(folder, name, wanted[name], owned.get(name, ())) for name in sorted(wanted)]
    extra = [name for name in sorted(owned) if name not in wanted and (folder / name).is_file()]
    found += [Drift(name, State.EXTRA) for name in extra]
    found.append(_manifest_drift(folder, expected))
    if read_journal(folder) is not None:
        found.append(Drift(JOURNAL, State.INTERRUPTED))
    return tuple(d for d in found if d is not None)


def _compare(folder: Path, name: str, wanted: bytes, owned: tuple[str, ...]) -> Drift | None:
    have = _read(folder / name)
    if have == wanted:
        return None
    if have is None:
        return Drift(name, State.MISSING)
    state = State.STALE if digest(have) in owned else State.TORN if wanted.startswith(have) else State.EDITED
    return Drift(name, state, _diff(name, have, wanted))


def _manifest_drift(folder: Path, expected: Manifest) -> Drift | None:
    have = _read(folder / MANIFEST)
    if have is None:
        return Drift(MANIFEST, State.MISSING)
    old = read_manifest(folder)
    if old is None:
        return Drift(MANIFEST, State.TORN)
    if old.text().encode() != have:
        return Drift(MANIFEST, State.EDITED, _diff(MANIFEST, have, old.text().encode()))
    if old != expected:
        wanted = replace(expected, compiler=old.compiler)
        return Drift(MANIFEST, State.STALE, _diff(MANIFEST, have, wanted.text().encode()))
    return None


def _diff(name: str, have: bytes, wanted: bytes) -> str:
    """A unified diff, cut after DIFF_LINES lines."""
    before, after = (b.decode("utf-8", "replace").splitlines() for b in (have, wanted))
    lines = list(difflib.unified_diff(before, after, f"{name} (as it is)", f"{name} (as built)", lineterm=""))
    rest = [f"… {len(lines) - DIFF_LINES} more lines"] if len(lines) > DIFF_LINES else []
    return "\n".join([*lines[:DIFF_LINES], *rest])
