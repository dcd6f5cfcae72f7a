"""The tables beside the grammars are those of the grammars."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specc import grammar
from specc.parse import parse_ops
from specc.parse_spec import parse_spec
from specc.source import Source

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("name", grammar.PARTS)
def test_stored_tables_are_those_of_the_grammar_under_any_hash_seed(name: str) -> None:
    program = f"from specc.grammar import tables; print(tables({name!r}), end='')"
    for seed in ("1", "2"):
        made = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        )
        told = "run `python -m specc.grammar` after a change of a grammar"
        assert made.stdout.decode() == grammar.place(name).read_text(encoding="utf-8"), told


@pytest.mark.parametrize("name", grammar.PARTS)
def test_tables_of_another_grammar_or_lark_are_not_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert grammar._stored(name) is not None
    monkeypatch.setattr(grammar.lark, "__version__", "0.0.1")
    assert grammar._stored(name) is None


def test_a_parser_from_tables_reads_as_one_from_its_grammar_does(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [Source.read(p) for p in sorted((ROOT / "specs").rglob("*.spec")) + sorted((ROOT / "specs").rglob("*.ops"))]
    by_tables = [_read(t) for t in texts]
    monkeypatch.setattr(grammar, "_stored", lambda name: None)
    assert by_tables == [_read(t) for t in texts]


def _read(source: Source) -> object:
    from specc import parse
    from specc import parse_spec as spec

    parse._ops_parser.cache_clear()
    spec._spec_parser.cache_clear()
    return parse_spec(source) if source.name.endswith(".spec") else parse_ops(source)
