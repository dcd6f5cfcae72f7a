"""Finding Model Specs by name: shipped ones, and those in the current folder or its `specs/`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from specc.diagnostics import Diagnostic, SpecError, nearest
from specc.inputs import read_source
from specc.resources import shipped

MODEL = re.compile(r"^model\s+(\S+)\s*@\s*([0-9.]+)", re.MULTILINE)


@dataclass(frozen=True)
class Known:
    """A spec and what its `model` line says."""

    path: Path
    key: str
    version: str


def known_models() -> tuple[Known, ...]:
    """All specs that a name can mean, the user's own first, by path."""
    found: dict[Path, Known] = {}
    for folder in (Path("."), Path("specs"), shipped("specs")):
        for path in sorted(folder.glob("*.spec")):
            head = MODEL.search(_text(path))
            if head is not None:
                found.setdefault(path.resolve(), Known(path, head[1], head[2]))
    return tuple(found.values())


def _text(path: Path) -> str:
    try:
        return read_source(path).text
    except SpecError:
        return ""


def find_model(name: str) -> Path:
    """The spec that `name` (a path, `google/gemma-4-31B`, or that with `@1.0`) means. Raises SpecError (E504)."""
    if name.endswith(".spec") or os.path.isfile(name):
        return Path(name)
    known = known_models()
    for model in known:
        if name in (model.key, f"{model.key}@{model.version}"):
            return model.path
    raise SpecError([Diagnostic("E504", f"no spec of `{name}` is here", None, nearest(name, [m.key for m in known]))])


def split_name(name: str) -> tuple[str, str | None]:
    """The model and the key of `google/gemma-4-31B@1.0:layers[5].attn.core` or `my.spec:lm_head`; for a model alone the
    key is None."""
    model, colon, key = name.partition(":")
    return (model, key) if colon else (name, None)
