"""Whatever the input, the answer is clean diagnostics or a valid build."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz.campaign import outcome, report, run_seeds
from tests.fuzz.cases import KINDS, Case, case
from tests.fuzz.judge import Stage

PARTS, SIZE = 20, 100
"""The cases of every run: PARTS tests of SIZE seeds, so that processes can share them."""

SLOW_PARTS, SLOW_SIZE = 40, 500

LEAST = {"lexed": 0.6, "parsed": 0.4, "checked": 0.08, "lowered": 0.06, "built": 0.06}
"""The share of cases that must come so far, or the fuzzer has got stuck."""

CORPUS = Path(__file__).parent / "corpus"


Record = Callable[[str, object], None]


def hold(seeds: range, record: Record) -> None:
    figures = run_seeds(seeds)
    record("fuzz", figures.table())
    assert not figures.failures, report(figures)
    total = figures.outcomes.total()
    assert {s: figures.reached(s) / total for s in LEAST if figures.reached(s) < LEAST[s] * total} == {}


@pytest.mark.parametrize("part", range(PARTS))
def test_cases_are_answered_cleanly(part: int, record_property: Record) -> None:
    hold(range(part * SIZE, (part + 1) * SIZE), record_property)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLOW_PARTS))
def test_many_more_cases_are_answered_cleanly(part: int, record_property: Record) -> None:
    first = PARTS * SIZE + part * SLOW_SIZE
    hold(range(first, first + SLOW_SIZE), record_property)


def test_a_case_is_the_same_each_time() -> None:
    assert [case(seed) for seed in range(40)] == [case(seed) for seed in range(40)]
    assert {case(seed).kind for seed in range(200)} == set(KINDS)


def kept(path: Path) -> Case:
    """An input that once crashed: one file, or a folder with all of a case; `arguments` has one a line."""
    if path.is_dir():
        files = {p.name: p.read_bytes() for p in sorted(path.iterdir())}
        arguments = files.pop("arguments", b"").decode("utf-8", "surrogateescape").splitlines()
        return Case(path.name, files, tuple(arguments))
    return Case(path.name, {("case.spec" if path.suffix == ".spec" else "own.ops"): path.read_bytes()})


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda p: p.name)
def test_what_once_crashed_is_answered_cleanly(path: Path) -> None:
    assert outcome(kept(path)) in {s.name.lower() for s in Stage} | {"exit 0", "exit 1", "exit 2"}
