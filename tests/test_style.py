"""Functions fit on a screen, files in a sitting."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("specc", "tests", "bench")
LONGEST_FILE = 400
LONGEST_FUNCTION = 60
MEDIAN_FUNCTION = 10


def files(*folders: str) -> list[Path]:
    return [p for f in folders for p in sorted((ROOT / f).rglob("*.py"))]


def functions(path: Path) -> list[tuple[str, int]]:
    """Name and number of lines of each function, nested ones among them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(n.name, (n.end_lineno or n.lineno) - n.lineno + 1) for n in found]


@pytest.mark.parametrize("path", files(*FOLDERS), ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE
    assert [f for f in functions(path) if f[1] > LONGEST_FUNCTION] == []


def test_the_median_function_is_small() -> None:
    assert median(length for path in files("specc") for _, length in functions(path)) <= MEDIAN_FUNCTION
