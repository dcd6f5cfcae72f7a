"""The manifest of an output folder: what was read, what was written, by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from specc import __version__
from specc.storage import read_regular

MANIFEST = "manifest.json"
JOURNAL = ".specc-journal"

Hashes = tuple[tuple[str, str], ...]
"""(name, SHA-256 in hexadecimal), sorted by name."""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def hashes(files: Mapping[str, bytes]) -> Hashes:
    return tuple((name, digest(files[name])) for name in sorted(files))


@cache
def compiler_digest() -> str:
    """One hash over the sources of the installed compiler, so that a changed compiler does not pass for the old one."""
    root = Path(__file__).parent
    found = hashlib.sha256()
    for path in sorted((*root.rglob("*.py"), *root.rglob("*.lark"))):
        name = path.relative_to(root).as_posix()
        if not name.startswith("_data/"):
            found.update(f"{name}\0{digest(path.read_bytes())}\n".encode())
    return found.hexdigest()


@dataclass(frozen=True)
class Manifest:
    """`options` and `inputs` decide what the files are. `compiler` takes no part in comparisons: a folder that another
    compiler built is as built where this one writes the same files. The next build notes this one, and so knows."""

    options: tuple[tuple[str, str], ...]
    inputs: Hashes
    files: Hashes
    version: str = __version__
    compiler: str = field(default_factory=compiler_digest, compare=False)

    @property
    def uses(self) -> tuple[str, ...]:
        """The op libraries that the spec named when it was built."""
        return tuple(name.removeprefix("use/") for name, _ in self.inputs if name.startswith("use/"))

    def text(self) -> str:
        """The file as it is written: JSON, keys sorted."""
        data = {
            "compiler": self.compiler,
            "files": dict(self.files),
            "inputs": dict(self.inputs),
            "options": dict(self.options),
            "specc": self.version,
        }
        return json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder, or None where there is none that can be read."""
    data = read_json(folder / MANIFEST)
    try:
        options, inputs, files = (_table(data[key]) for key in ("options", "inputs", "files"))
        return Manifest(options, inputs, files, str(data["specc"]), str(data["compiler"]))
    except (KeyError, TypeError, AttributeError):
        return None


def foreign_manifest(folder: Path) -> bool:
    """Whether somebody else's file has the name of the manifest: one that is neither ours nor what a power cut makes of
    ours, an empty file or a first part of it."""
    text = (read_regular(folder / MANIFEST) or b"").rstrip(b"\0")
    torn = text.startswith(HEAD) or HEAD.startswith(text)
    return not torn and read_manifest(folder) is None


HEAD = b'{\n  "compiler": "'
"""How every manifest begins."""


def read_journal(folder: Path) -> Hashes | None:
    """What an interrupted build had written or was about to write, or None where no build was interrupted."""
    data = read_json(folder / JOURNAL)
    try:
        return None if data is None else _table(data)
    except (TypeError, AttributeError):
        return ()


def read_json(path: Path) -> Any:
    """The value of a JSON file; None for no file, and for one that is torn an empty object."""
    data = read_regular(path)
    try:
        return None if data is None else json.loads(data.decode())
    except (ValueError, RecursionError):
        return {}


def _table(data: Any) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(k), str(v)) for k, v in data.items()))
