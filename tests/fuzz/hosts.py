"""The files that cases are made from: what specc ships, shows and tests itself with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.fuzz.grammar import Grammar, Node, Words, ops_grammar, spec_grammar, words_of
from tests.typecheck.mini import MINI

ROOT = Path(__file__).parents[2]
SHIPPED = {p.name: p.read_text(encoding="utf-8") for p in sorted((ROOT / "specs" / "ops").glob("*.ops"))}
"""The op libraries that every spec sees."""

Files = Mapping[str, str]


def _host(path: Path) -> Files:
    text = path.read_text(encoding="utf-8")
    used = [p for p in sorted(path.parent.glob("*.ops")) if f'use "{p.name}"' in text]
    return {"case.spec": text, **{p.name: p.read_text(encoding="utf-8") for p in used}}


FOLDERS = ("specs", "docs/examples", "tests/typecheck/siblings")
SMALL = {"mini": 20, "tiny": 12}
"""Those that are quick come more often."""

HOSTS: dict[str, Files] = {"mini": {"case.spec": MINI}}
"""Specs with the op libraries that they use, by name."""

HOSTS |= {p.stem: _host(p) for folder in FOLDERS for p in sorted((ROOT / folder).glob("*.spec"))}
WEIGHTS = {name: SMALL.get(name, 1) for name in HOSTS}


def grammar_of(name: str) -> Grammar:
    return spec_grammar() if name.endswith(".spec") else ops_grammar()


@cache
def tree_of(name: str, text: str) -> Node:
    return grammar_of(name).read(text)


@cache
def donors(suffix: str) -> tuple[Node, ...]:
    """Trees of all shipped files of a kind."""
    texts = [(n, t) for host in HOSTS.values() for n, t in host.items()] + list(SHIPPED.items())
    return tuple(tree_of(n, t) for n, t in texts if n.endswith(suffix))


@cache
def all_words(suffix: str) -> Words:
    return words_of(donors(suffix))
