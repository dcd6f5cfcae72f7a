"""Files on a disk that fills up, cannot be written, is shared, or leads elsewhere.

What is written here outlives the end of the process at any moment. It is not synced to the disk, so a power cut may
tear it: a generated file can be made again, every build and every `--check` compares each file with its hash and so
finds what was torn, while waiting for the disk at every file takes some fifty times as long as writing it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_SH, flock
from pathlib import Path, PurePosixPath

SUFFIX = ".specc-new"
"""Ending of a file that is not whole yet."""
LOCK = ".specc-lock"
"""Lock file, where a folder cannot be locked. It is there as long as a build runs."""
UNSUPPORTED = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
"""How file systems say that they do not lock this; NFS takes exclusive locks on files open for writing only."""


def replace_file(path: Path, data: bytes, mode: int | None = None) -> None:
    """Replaces a file whole, by way of a new one beside it. A link is replaced, not followed. `mode` is what the umask
    leaves of rw-rw-rw- unless given.

    Raises OSError, which names `path`; then nothing is left behind."""
    temporary = path.with_name(f".{os.urandom(8).hex()}{SUFFIX}")
    try:
        make_folder(path.parent)
        _create(temporary, data, mode)
        os.replace(temporary, path)
    except BaseException as error:  # a keyboard interrupt too: what is not whole goes
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _create(path: Path, data: bytes, mode: int | None) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        if mode is not None:
            os.fchmod(handle, mode)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
    finally:
        os.close(handle)  # some file systems report a full disk here


def rewrite_file(path: Path, data: bytes) -> None:
    """Replaces a file of the user: links to it still lead to it, and it keeps its mode. Raises OSError."""
    real = path.resolve()
    replace_file(real, data, stat.S_IMODE(real.stat().st_mode))


def read_regular(path: Path) -> bytes | None:
    """The bytes of a file; None where there is none, and for a link, a pipe and the like. Raises OSError for one that
    cannot be read; EFBIG for one of more than LARGEST bytes."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            return None
        raise
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        data = b"" if found.st_size > LARGEST else file.read(LARGEST + 1)
    if max(found.st_size, len(data)) > LARGEST:
        raise OSError(errno.EFBIG, "the file is too large", str(path))
    return data


LARGEST = 1 << 24
"""Most bytes of a file that specc wrote."""


def make_folder(path: Path) -> None:
    """Makes a folder and all above it that are missing; `Path.mkdir` goes up by recursion. Raises OSError."""
    if not os.path.isdir(path):
        for folder in (*reversed(path.parents), path):
            folder.mkdir(exist_ok=True)


def unwritable(folder: Path, name: str) -> OSError | None:
    """Why `name` cannot become a file below `folder`: a link would lead elsewhere, a file stands where a folder must
    be or the reverse, or the name is too long."""
    path = PurePosixPath(name)
    for part in (*reversed(path.parents), path):
        place, last = folder / part, part == path
        if len(os.fsencode(place.name)) > NAME_MAX:
            return OSError(errno.ENAMETOOLONG, "the name of a file is too long", str(place))
        try:
            kind = place.lstat().st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            return error
        if last and stat.S_ISDIR(kind):
            return OSError(errno.EISDIR, "a folder stands in the place of this file", str(place))
        if not last and stat.S_ISLNK(kind):
            return OSError(errno.ELOOP, "it is a link, and may lead elsewhere", str(place))
        if not last and not stat.S_ISDIR(kind):
            return OSError(errno.ENOTDIR, "a file stands in the place of this folder", str(place))
    return None


NAME_MAX = 255
"""Longest name of a file, in bytes, on every common file system."""


def scraps(folder: Path, names: Iterable[str]) -> tuple[Path, ...]:
    """What a build that was ended left in `folder` and in the folders of the files `names`."""
    places = {folder, *((folder / name).parent for name in names)}
    found = [Path(entry.path) for place in sorted(places) for entry in _entries(place)]
    return tuple(p for p in found if p.name == LOCK or (p.name.startswith(".") and p.name.endswith(SUFFIX)))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted((e for e in entries if e.is_file(follow_symlinks=False)), key=lambda e: e.name)
    except OSError:
        return []


def prune(folder: Path, parent: Path) -> None:
    """Removes `parent` and the folders above it, up to `folder`, as far as they are empty. Raises OSError."""
    while parent != folder:
        try:
            os.rmdir(parent)
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY, errno.ENOTDIR):
                return
            raise
        parent = parent.parent


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One build at a time in a folder; others wait. The lock ends with the process.

    It is on the folder itself, and on a file in it where folders cannot be locked. Where nothing can, two builds at
    once may leave files of both; the next build and `--check` see that by the hashes. Raises OSError."""
    handle = _acquire(folder, os.O_RDONLY, LOCK_EX)
    if handle is not None:
        try:
            yield
        finally:
            os.close(handle)
        return
    file = folder / LOCK
    handle = _acquire(file, os.O_RDWR | os.O_CREAT, LOCK_EX)
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(file)
        if handle is not None:
            os.close(handle)


@contextmanager
def settled(folder: Path) -> Iterator[None]:
    """Waits for a build that is under way in `folder`, and keeps others out meanwhile. Writes nothing; does nothing
    where there is no such folder or it cannot be locked."""
    try:
        handle = _acquire(folder, os.O_RDONLY, LOCK_SH)
    except OSError:
        handle = None
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _acquire(path: Path, flags: int, how: int) -> int | None:
    """A handle that holds the lock on what stands at `path`, or None where that cannot be locked."""
    while True:
        handle = os.open(path, flags | os.O_NOFOLLOW, 0o666)
        try:
            flock(handle, how)
            if _stands(handle, path):
                handle, held = -1, handle
                return held
        except OSError as error:
            if error.errno in UNSUPPORTED:
                return None
            raise
        finally:
            if handle >= 0:
                os.close(handle)


def _stands(handle: int, path: Path) -> bool:
    """Whether the open file is still the one at `path`: it may have gone while we waited for its lock."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False
