"""What a build is made from: the spec, the op libraries, the templates, and the options."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from specc.diagnostics import Diagnostic, SpecError
from specc.hygiene import clean
from specc.limits import MAX_BYTES
from specc.manifest import Hashes, digest
from specc.resources import shipped
from specc.source import Source, Span, TooLong

TARGETS = ("cuda", "torch", "triton")


@dataclass(frozen=True)
class Options:
    """What a user chooses beside the spec. `tiles`: a table whose rows come before those of the shipped one."""

    targets: tuple[str, ...] = TARGETS
    tiles: Path | None = None

    def table(self) -> Mapping[str, str]:
        """The options as the manifest keeps them. Raises SpecError (E501)."""
        tiles = {} if self.tiles is None else {"tiles": digest(read_source(self.tiles).text.encode())}
        return {"targets": " ".join(self.targets), **tiles}


def read_source(path: Path, span: Span | None = None) -> Source:
    """A text of the user, named at `span`. Raises SpecError: E501 and E108 for one that cannot be read, is no UTF-8,
    or is too long, E111 to E113 for characters that mislead."""
    try:
        return clean(Source.read(path))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SpecError([Diagnostic("E501", f"cannot read `{path}`: {reason}", span)]) from error
    except TooLong as error:
        raise SpecError([Diagnostic("E108", f"`{path}` is too long", span, f"at most {MAX_BYTES} bytes")]) from error
    except UnicodeDecodeError as error:
        help_ = f"byte {error.start} is {error.object[error.start]:#04x}"
        raise SpecError([Diagnostic("E501", f"`{path}` is no UTF-8 text", span, help_)]) from error
    except ValueError as error:
        raise SpecError([Diagnostic("E501", f"cannot read `{path}`: {error}", span)]) from error


def used_file(spec: Path, name: str, span: Span | None = None) -> Path:
    """The op library that a spec names in a `use` line at `span`. Raises SpecError for what is no op library (E104), or
    lies elsewhere than beside the spec or below (E104, E501): a spec reads nothing else of its user's."""
    pure = PurePosixPath(name)
    plain = pure.as_posix() == name and "\\" not in name and not pure.is_absolute() and ".." not in pure.parts
    if not plain or pure.suffix != ".ops":
        help_ = "write the name of an `.ops` file in the folder of the spec, or below it"
        raise SpecError([Diagnostic("E104", f"`{name}` is no place of an op library", span, help_)])
    path = spec.parent / name
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(spec.parent)):
        help_ = "it is a link that leads out of the folder of the spec"
        raise SpecError([Diagnostic("E501", f"`{path}` is not read", span, help_)])
    return path


def read_inputs(path: Path, uses: Iterable[str]) -> Hashes:
    """Hashes of everything that decides what is generated from a spec that uses the op libraries `uses` (as the spec
    names them). Raises SpecError (E104, E501)."""
    mine = {"spec": read_source(path).text}
    mine |= {f"use/{name}": read_source(used_file(path, name)).text for name in uses}
    own = tuple((name, digest(text.encode())) for name, text in mine.items())
    return tuple(sorted((*own, *_shipped_inputs())))


@cache
def _shipped_inputs() -> Hashes:
    roots = {"ops": shipped("specs") / "ops", "templates": shipped("templates")}
    return tuple(
        (f"{kind}/{path.relative_to(root).as_posix()}", digest(path.read_bytes()))
        for kind, root in roots.items()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix in (".ops", ".j2", ".toml", ".cuh")
    )
