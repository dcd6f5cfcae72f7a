"""What a build is made from: the spec, the op libraries, the templates, and the options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from specc.diagnostics import Diagnostic, SpecError
from specc.hygiene import clean
from specc.limits import MAX_BYTES
from specc.manifest import Hashes, digest
from specc.resources import shipped
from specc.source import Source, TooLong

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


def read_source(path: Path) -> Source:
    """A text of the user. Raises SpecError: E501 and E108 for one that cannot be read, is no UTF-8, or is too long,
    E111 to E113 for characters that mislead."""
    try:
        return clean(Source.read(path))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SpecError([Diagnostic("E501", f"cannot read `{path}`: {reason}")]) from error
    except TooLong as error:
        raise SpecError([Diagnostic("E108", f"`{path}` is too long", None, f"at most {MAX_BYTES} bytes")]) from error
    except UnicodeDecodeError as error:
        help_ = f"byte {error.start} is {error.object[error.start]:#04x}"
        raise SpecError([Diagnostic("E501", f"`{path}` is no UTF-8 text", None, help_)]) from error
    except ValueError as error:
        raise SpecError([Diagnostic("E501", f"cannot read `{path}`: {error}")]) from error


def read_inputs(path: Path, uses: Iterable[str]) -> Hashes:
    """Hashes of everything that decides what is generated from a spec that uses the op libraries `uses` (as the spec
    names them). Raises SpecError (E501)."""
    mine = {"spec": read_source(path).text}
    mine |= {f"use/{name}": read_source(path.parent / name).text for name in uses}
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
