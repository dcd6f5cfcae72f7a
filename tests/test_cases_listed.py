"""The table of cases in the documents and the tests that hold them name each other."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> list[str]:
    """Rows of the tables under "The cases", without their heads."""
    section = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8").split("\n## The cases\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [line for line in lines if not line.startswith(("| - ", "| The fault "))]


@cache
def named_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_"))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.split("|")[1].strip())
def test_a_case_has_its_fault_its_value_and_tests_that_exist(row: str) -> None:
    fault, value, held = (cell.strip() for cell in row.strip("|").split("|"))
    assert fault and value
    named = NAMED.findall(held)
    assert named and len(named) == held.count("::")
    assert [f"{path}::{name}" for path, name in named if name not in named_in(path)] == []


def test_every_case_that_is_tested_is_listed() -> None:
    named = {f"{path}::{name}" for row in rows() for path, name in NAMED.findall(row)}
    files = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "tests" / "cases").glob("test_*.py"))
    tested = [
        f"{path}::{name}" for path in [*files, "tests/evidence/test_offsets.py"] for name in sorted(named_in(path))
    ]
    assert [t for t in tested if t not in named] == []
