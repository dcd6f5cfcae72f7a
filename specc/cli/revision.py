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
from specc.models import find_model

REVISION = re.compile(r"(?P<revision>(?:[^-:][^:]*)?):(?P<path>[^:]+\.spec)")
USE = re.compile(r'^[ \t]*use[ \t]+"([^"\n]+)"', re.MULTILINE)


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
    with TemporaryDirectory() as folder:
        spec = Found(_fetch(written["revision"], written["path"], Path(folder)), folder, written["revision"])
        try:
            yield spec
        except SpecError as error:
            raise SpecError(map(spec.named, error.diagnostics)) from error


def _fetch(revision: str, path: str, folder: Path) -> Path:
    """Writes a spec and the libraries that it uses below `folder`, placed as in the repository. Raises SpecError."""
    here = _git(f"{revision}:{path}", "rev-parse", "--show-prefix").decode().strip()
    spec = PurePosixPath(normpath(PurePosixPath(here, path)))
    text = _write(revision, spec, folder).decode("utf-8", "replace")
    for name in dict.fromkeys(USE.findall(text)):
        _write(revision, PurePosixPath(normpath(spec.parent / name)), folder)
    return folder / spec


def _write(revision: str, file: PurePosixPath, folder: Path) -> bytes:
    if file.is_absolute() or ".." in file.parts:
        raise _unreadable(f"{revision}:{file}", "it is outside of the repository")
    data = _git(f"{revision}:{file}", "cat-file", "blob", f"{revision}:{file}")
    target = folder / file
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return data


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
