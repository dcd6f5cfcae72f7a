"""A misspelt name is answered with the one that was meant, soon."""

from __future__ import annotations

import pytest

from specc.near import closest, edits

WIRES = ["a", "h", "h0", "h1", "hn", "logits", "q", "qn"]


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("hm", WIRES, "hn"),
        ("hh", WIRES[:4], "h"),
        ("h2", WIRES, None),
        ("head2", ["head", "head0", "heads"], "head0"),
        ("logit", WIRES, "logits"),
        ("lgoits", WIRES, "logits"),
        ("norm", ["linear", "rmsnorm"], "rmsnorm"),
        ("nrom", ["rmsnorm", "norm"], "norm"),
        ("x", WIRES, None),
        ("wholly", WIRES, None),
        ("hidden" * 20, WIRES, None),
        ("xs", [], None),
        ("d", ["D", "H", "e"], "D"),
        ("V", ["m", "v"], "v"),
        ("Q", ["Q", "k"], None),
    ],
)
def test_the_fewest_edits_decide(name: str, known: list[str], meant: str | None) -> None:
    assert closest(name, known) == meant


@pytest.mark.parametrize(
    ("a", "b", "count"),
    [("", "", 0), ("a", "", 1), ("", "abc", 3), ("ab", "ba", 1), ("kitten", "sitting", 3), ("abc", "abc", 0)],
)
def test_edits_are_counted(a: str, b: str, count: int) -> None:
    assert edits(a, b) == edits(b, a) == count


def test_a_name_among_very_many_is_found() -> None:
    assert closest("name1234x", [f"name{n:04d}" for n in range(9000)]) is not None
