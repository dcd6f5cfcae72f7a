"""The one writer of generated files.

A folder is written under a lock. Each file is replaced whole, and only where its bytes differ. A journal names what is
about to be written before the first file is; the manifest is renamed last and is the commit. Whatever happens in
between, every file is an old or a new one, `drift` says what is wrong, and the next build ends where a clean one does.

A file belongs to specc when the manifest or the journal names it: such files are replaced, edited or not. Everything
else is somebody's own, and a build that would have to replace it is refused before it writes anything. The last build
into a folder decides what it holds, be it of another spec of that name or with other options.
"""

from __future__ import annotations

import difflib
import errno
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath

from specc.echo import visible
from specc.manifest import (
    JOURNAL,
    MANIFEST,
    Hashes,
    Manifest,
    compiler_digest,
    digest,
    foreign_manifest,
    hashes,
    read_journal,
    read_manifest,
)
from specc.storage import LOCK, locked, make_folder, prune, read_regular, replace_file, scraps, settled, unwritable

DIFF_LINES = 60
"""Longest diff of one file that `drift` gives."""
DIFF_WIDTH = 240
"""Longest line of it."""
DIFF_BYTES = 1 << 20
"""Largest file that is compared line by line."""

Owned = Mapping[str, tuple[str, ...]]
"""Files that specc wrote or was about to write, with the hashes that they then have."""


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
    FOREIGN = "not written by specc, and in the way"
    BLOCKED = "something other than a file that can be read and replaced"
    TORN = "torn"
    EXTRA = "left of a removed node"
    INTERRUPTED = "a build was interrupted"


@dataclass(frozen=True)
class Drift:
    """One file that is not what a build would write. `diff` leads from the file to what is expected."""

    name: str
    state: State
    diff: str = ""
    refused: bool = False
    """Whether a build would be refused because of it."""


def write(folder: Path, files: Mapping[str, str], options: Mapping[str, str], inputs: Hashes) -> Written:
    """Makes `folder` hold `files` (names relative to it) and a manifest. Files that specc never wrote stay.

    Raises OSError; then every file is still whole, and another build repairs the folder."""
    wanted = {_safe(name): text.encode() for name, text in files.items()}
    manifest = Manifest(tuple(sorted(options.items())), inputs, hashes(wanted))
    _refuse_first(unwritable(folder, name) for name in (*sorted(wanted), JOURNAL, MANIFEST))
    make_folder(folder)
    with locked(folder):
        old, owned = read_manifest(folder), _owned(folder)
        changed = [name for name in sorted(wanted) if _read(folder / name) != wanted[name]]
        _refuse_first(_foreign(folder, name, owned) for name in (*changed, MANIFEST))
        gone = [name for name in sorted(owned) if name not in wanted and _stands(folder, name)]
        kept = tuple(name for name in gone if digest(_read(folder / name) or b"") not in owned[name])
        removed = tuple(name for name in gone if name not in kept)
        noted = old == manifest and old.compiler == manifest.compiler
        if changed or removed or not noted or _interrupted(folder, owned):
            _commit(folder, {name: wanted[name] for name in changed}, removed, owned, manifest)
    return Written(tuple(changed), removed, kept, len(wanted) - len(changed))


def _read(path: Path) -> bytes | None:
    """The bytes of a file; None where there is nothing that specc can have written."""
    try:
        return read_regular(path)
    except OSError as error:
        if error.errno == errno.EFBIG:
            return None
        raise


def _commit(
    folder: Path, changed: Mapping[str, bytes], removed: tuple[str, ...], owned: Owned, manifest: Manifest
) -> None:
    for left in scraps(folder, owned):
        if left.name != LOCK:
            os.unlink(left)
    replace_file(folder / JOURNAL, _journal(owned, manifest))
    for name in sorted(changed):
        replace_file(folder / name, changed[name])
    for name in removed:
        os.unlink(folder / name)
    for name in sorted(owned.keys() - dict(manifest.files).keys()):
        prune(folder, (folder / name).parent)
    replace_file(folder / MANIFEST, manifest.text().encode())
    os.unlink(folder / JOURNAL)


def _safe(name: str) -> str:
    """`name`, when it stays inside the folder. Raises ValueError: a name that does not is a fault of specc."""
    path = PurePosixPath(name)
    inside = not path.is_absolute() and ".." not in path.parts and path.parts and str(path) == name
    if not inside or name in (MANIFEST, JOURNAL, LOCK) or not name.isprintable() or "\\" in name:
        raise ValueError(f"{name!r} is no name for a generated file")
    return name


def _refuse_first(errors: Iterable[OSError | None]) -> None:
    for error in errors:
        if error is not None:
            raise error


def _foreign(folder: Path, name: str, owned: Owned) -> OSError | None:
    """Why the file that stands at `name` may not be replaced: specc did not write it."""
    if name == MANIFEST:
        mine = not foreign_manifest(folder)
    else:
        mine = name in owned or not os.path.lexists(folder / name) or _torn_manifest(folder)
    return None if mine else OSError(errno.EEXIST, "specc did not write the file that is there", str(folder / name))


def _torn_manifest(folder: Path) -> bool:
    """Whether there is a manifest of ours that no longer tells what is."""
    return os.path.lexists(folder / MANIFEST) and read_manifest(folder) is None and not foreign_manifest(folder)


def _stands(folder: Path, name: str) -> bool:
    """Whether there is something of ours to remove."""
    return unwritable(folder, name) is None and os.path.lexists(folder / name)


def _owned(folder: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    manifest = read_manifest(folder)
    for name, sums in (*(manifest.files if manifest else ()), *(read_journal(folder) or ())):
        with suppress(ValueError):
            found[_safe(name)] = tuple(dict.fromkeys((*found.get(name, ()), *sums.split())))
    return found


def _journal(owned: Owned, manifest: Manifest) -> bytes:
    table = {name: " ".join(sums) for name, sums in owned.items()}
    for name, found in manifest.files:
        table[name] = f"{table[name]} {found}" if name in table else found
    return (json.dumps(table, indent=2, sort_keys=True) + "\n").encode()


def _interrupted(folder: Path, owned: Iterable[str]) -> bool:
    return read_journal(folder) is not None or bool(scraps(folder, owned))


def up_to_date(folder: Path, options: Mapping[str, str], inputs: Hashes) -> Manifest | None:
    """The manifest of `folder`, if a build with these options and inputs by this compiler would change nothing, and
    not be refused."""
    try:
        manifest = read_manifest(folder)
        if manifest is None or _interrupted(folder, _owned(folder)):
            return None
        found = Manifest(tuple(sorted(options.items())), inputs, manifest.files)
        same = manifest == found and manifest.compiler == compiler_digest()
        places = {PurePosixPath(name).parent: name for name, _ in (*manifest.files, (MANIFEST, ""))}
        same = same and not any(unwritable(folder, name) for name in places.values())
        whole = same and all(digest(read_regular(folder / _safe(n)) or b"") == found for n, found in manifest.files)
    except (OSError, ValueError):  # a file that cannot be read, a manifest with an impossible name
        return None
    return manifest if whole else None


def drift(folder: Path, files: Mapping[str, str], options: Mapping[str, str], inputs: Hashes) -> tuple[Drift, ...]:
    """How `folder` differs from what `write` would leave there, by name. Writes nothing."""
    wanted = {name: text.encode() for name, text in files.items()}
    expected = Manifest(tuple(sorted(options.items())), inputs, hashes(wanted))
    with settled(folder):
        try:
            return _drift(folder, wanted, expected)
        except OSError as error:
            return (Drift(_inside(folder, error.filename), State.BLOCKED, error.strerror or "", refused=True),)


def _inside(folder: Path, name: str | None) -> str:
    path = Path(name or folder)
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()


def _drift(folder: Path, wanted: Mapping[str, bytes], expected: Manifest) -> tuple[Drift, ...]:
    owned = _owned(folder)
    found = [_compare(folder, name, wanted[name], owned) for name in sorted(wanted)]
    found += [Drift(n, State.EXTRA) for n in sorted(owned) if n not in wanted and _stands(folder, n)]
    found.append(_manifest_drift(folder, expected))
    found += [Drift(_inside(folder, str(p)), State.INTERRUPTED) for p in scraps(folder, owned)]
    error = unwritable(folder, JOURNAL)
    if read_journal(folder) is not None:
        found.append(Drift(JOURNAL, State.INTERRUPTED))
    elif error is not None and os.path.lexists(folder / JOURNAL):
        found.append(Drift(JOURNAL, State.BLOCKED, error.strerror or "", True))
    return tuple(d for d in found if d is not None)


def _compare(folder: Path, name: str, wanted: bytes, owned: Owned) -> Drift | None:
    error = unwritable(folder, name)
    foreign = _foreign(folder, name, owned) is not None
    try:
        have = None if error else read_regular(folder / name)
    except OSError as unreadable:
        if unreadable.errno == errno.EFBIG:
            size = _sizes((folder / name).stat().st_size, len(wanted))
            return Drift(name, State.FOREIGN if foreign else State.EDITED, size, foreign)
        have, error = None, unreadable
    if have == wanted:
        return None
    if have is None:
        blocked = error is not None or os.path.lexists(folder / name)
        why = error.strerror or "" if error else "it is no file"
        refused = error is not None or foreign
        return Drift(name, State.BLOCKED, why, refused) if blocked else Drift(name, State.MISSING)
    if digest(have) in owned.get(name, ()):
        state = State.STALE
    elif foreign:
        state = State.FOREIGN
    else:
        state = State.TORN if wanted.startswith(have.rstrip(b"\0")) else State.EDITED
    return Drift(name, state, _diff(name, have, wanted), foreign)


def _manifest_drift(folder: Path, expected: Manifest) -> Drift | None:
    have = read_regular(folder / MANIFEST)
    if have is None:
        refused = unwritable(folder, MANIFEST) is not None
        return Drift(MANIFEST, State.BLOCKED if os.path.lexists(folder / MANIFEST) else State.MISSING, "", refused)
    old = read_manifest(folder)
    if old is None:
        foreign = foreign_manifest(folder)
        return Drift(MANIFEST, State.FOREIGN if foreign else State.TORN, "", foreign)
    text = old.text().encode("utf-8", "surrogatepass")
    if text != have:
        return Drift(MANIFEST, State.EDITED, _diff(MANIFEST, have, text))
    if old != expected:
        wanted = replace(expected, compiler=old.compiler)
        return Drift(MANIFEST, State.STALE, _diff(MANIFEST, have, wanted.text().encode()))
    return None


def _diff(name: str, have: bytes, wanted: bytes) -> str:
    """A unified diff that a terminal can show, cut after DIFF_LINES lines and DIFF_WIDTH columns."""
    if len(have) > DIFF_BYTES:
        return _sizes(len(have), len(wanted))
    before, after = map(_lines, (have, wanted))
    lines = list(difflib.unified_diff(before, after, f"{name} (as it is)", f"{name} (as built)", lineterm=""))
    rest = [f"… {len(lines) - DIFF_LINES} more lines"] if len(lines) > DIFF_LINES else []
    return "\n".join(_cut(visible(line)) for line in [*lines[:DIFF_LINES], *rest])


def _sizes(have: int, wanted: int) -> str:
    return f"{have:,} bytes in place of {wanted:,}"


def _lines(data: bytes) -> list[str]:
    *lines, last = data.decode("utf-8", "replace").split("\n")
    return [*lines, f"{last} (no end of line)"] if last else lines


def _cut(line: str) -> str:
    return line if len(line) <= DIFF_WIDTH else f"{line[:DIFF_WIDTH]}…"
