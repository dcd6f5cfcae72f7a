"""Specs as they stood at a revision: `HEAD:specs/gemma4.spec`."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os.path import isfile, normpath
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from specc.diagnostics import Diagnostic, SpecError
from specc.limits import MAX_BYTES
from specc.models import find_model

REVISION = re.compile(r"(?P<revision>(?:[^-:][^:]*)?):(?P<path>[^:]+\.spec)")
LINK = b"120000"
"""Mode of a symbolic link in git."""


@dataclass(frozen=True)
class Found:
    """A spec to be read. `folder`, for one of a revision: where its files are for now."""

    path: Path
    folder: str = ""
    revision: str = ""

    def named(self, diagnostic: Diagnostic) -> Diagnostic:
        """The diagnostic with the names of files that the user knows."""
        span = diagnostic.span
        if span is not None:
            span = replace(span, source=replace(span.source, name=self._known(span.source.name)))
        return replace(diagnostic, message=self._known(diagnostic.message), span=span)

    def _known(self, text: str) -> str:
        return text.replace(f"{self.folder}/", f"{self.revision}:") if self.folder else text


@contextmanager
def found(name: str) -> Iterator[Found]:
    """The spec that `name` means: what `find_model` takes, or `REVISION:PATH` for a file of a git repository, which is
    fetched with the op libraries that it uses and is there as long as the context; without REVISION, as it is staged.
    Raises SpecError."""
    written = REVISION.fullmatch(name)
    if written is None or isfile(name):
        yield Found(find_model(name))
        return
    with _temporary() as folder:
        spec = Found(folder / _place(written["revision"], written["path"]), str(folder), written["revision"])
        try:
            _fetch(spec)
            yield spec
        except SpecError as error:
            raise SpecError(map(spec.named, error.diagnostics)) from error


@contextmanager
def _temporary() -> Iterator[Path]:
    try:
        folder = TemporaryDirectory()
    except OSError as error:
        raise _no_room("to a temporary folder", error) from error
    with folder as name:
        yield Path(name)


def _no_room(what: str, error: OSError) -> SpecError:
    reason = error.strerror or type(error).__name__
    help_ = "`TMPDIR` names another place for temporary files"
    return SpecError([Diagnostic("E502", f"cannot write {what}: {reason}", None, help_)])


def _place(revision: str, path: str) -> PurePosixPath:
    """The path from the root of the repository. Raises SpecError."""
    if PurePosixPath(path).is_absolute():
        raise _unreadable(f"{revision}:{path}", "a path at a revision starts from the current folder")
    here = _git(f"{revision}:{path}", "rev-parse", "--show-prefix").decode("utf-8", "surrogateescape").rstrip("\n")
    return PurePosixPath(normpath(PurePosixPath(here, path)))


def _fetch(spec: Found) -> None:
    """Writes a spec and the libraries that it uses below its folder, placed as in the repository. Raises SpecError."""
    from specc import pipeline

    place = PurePosixPath(spec.path.relative_to(spec.folder))
    _write(spec, place)
    for name in dict.fromkeys(line.text for line in pipeline.parse(spec.path).uses):
        _write(spec, PurePosixPath(normpath(place.parent / name)))


def _write(spec: Found, file: PurePosixPath) -> None:
    wanted = f"{spec.revision}:{file}"
    if file.is_absolute() or ".." in file.parts:
        raise _unreadable(wanted, "it is outside of the repository")
    if int(_git(wanted, "cat-file", "-s", wanted)) > MAX_BYTES:
        raise SpecError([Diagnostic("E108", f"`{wanted}` is too long", None, f"at most {MAX_BYTES} bytes")])
    if _mode(spec.revision, file) == LINK:
        raise _unreadable(wanted, "it is a link; name the file that it leads to")
    data = _git(wanted, "cat-file", "blob", wanted)
    target = Path(spec.folder, file)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    except OSError as error:
        raise _no_room(f"a copy of `{wanted}`", error) from error


def _mode(revision: str, file: PurePosixPath) -> bytes:
    """The mode of a file as git has it; without a revision, of the one that is staged. Raises SpecError."""
    staged = "ls-files", "--stage", "-z", "--", f":(top,literal){file}"
    stored = "ls-tree", "-z", "--full-tree", revision, "--", str(file)
    return _git(f"{revision}:{file}", *(stored if revision else staged)).partition(b" ")[0]


def _git(wanted: str, *arguments: str) -> bytes:
    """What git prints. Raises SpecError (E501), which says that `wanted` cannot be read, where it fails."""
    try:
        return subprocess.run(["git", *arguments], capture_output=True, check=True).stdout
    except (OSError, ValueError) as error:
        raise _unreadable(wanted, str(error)) from error
    except subprocess.CalledProcessError as error:
        raise _unreadable(wanted, error.stderr.decode("utf-8", "replace").strip()) from error


def _unreadable(wanted: str, reason: str) -> SpecError:
    return SpecError([Diagnostic("E501", f"cannot read `{wanted}`: {reason}")])
