"""Real builds in processes of their own, and what they left."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "docs" / "examples"
GEMMA = ROOT / "specs" / "gemma4.spec"

SLOW = """
import os, sys, time
real = os.replace
def slowly(*paths):
    time.sleep(float(sys.argv[1]))
    real(*paths)
os.replace = slowly
from specc.cli import run
raise SystemExit(run(sys.argv[2:]))
"""
"""A build that takes a break before each file comes into its place."""


def command(*arguments: str | Path, pause: float | None = None) -> list[str]:
    head = ["-m", "specc"] if pause is None else ["-c", SLOW, str(pause)]
    return [sys.executable, *head, *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def specc(
    *arguments: str | Path, cwd: Path | None = None, umask: int = -1, **more: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(*arguments), cwd=cwd, umask=umask, env=environment(**more), capture_output=True, timeout=120
    )


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def tiny(folder: Path, edited: bool = False) -> Path:
    """The small example; edited, other heads and another formula."""
    edits = {"tiny.spec": ("hidden = 96", "hidden = 128"), "own.ops": ("relu(gu[.., i])²", "relu(gu[.., i])³")}
    for name, edit in edits.items():
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        assert edit[0] in text
        (folder / name).write_text(text.replace(*edit) if edited else text, encoding="utf-8")
    return folder / "tiny.spec"


def gemma(folder: Path, edited: bool = False) -> Path:
    text = GEMMA.read_text(encoding="utf-8")
    assert "eps=1e-6" in text
    (folder / "gemma4.spec").write_text(text.replace("eps=1e-6", "eps=1e-5") if edited else text, encoding="utf-8")
    return folder / "gemma4.spec"


def whole(folder: Path, *versions: Mapping[str, bytes]) -> None:
    """Every file is that of one of the versions; only what specc marks as not ready may be less."""
    for name, data in tree(folder).items():
        mark = name.endswith((".specc-new", ".specc-journal"))
        assert mark or any(v.get(name) == data for v in versions), f"{name} is torn"
