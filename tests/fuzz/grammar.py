"""Derivations of the grammars of specc: read from a text, drawn from the rules, written as a text.

Everything is taken from the rules that Lark has loaded, so a changed grammar changes the fuzzer with it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from random import Random
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput
from lark.grammar import Rule

from specc.grammar import grammar
from specc.parse_spec import LineEnds
from tests.fuzz.words import draw_word

FUEL = 24
"""Branchings that a drawn tree takes freely; after that it is closed by the shortest way."""


@dataclass(frozen=True)
class Node:
    """A symbol of the grammar and what it was derived to."""

    symbol: str
    kids: tuple[Node | Token, ...]


Words = Mapping[str, Sequence[str]]
"""Texts that each terminal had in files that exist."""


class Grammar:
    """The rules and terminals of one kind of file."""

    def __init__(self, name: str, text: str, **options: Any) -> None:
        self.name = name
        self.lark = Lark(text, parser="lalr", **options)
        self.terminals = {t.name: t.pattern.to_regexp() for t in self.lark.terminals}
        self.anchored = {n for n, p in self.terminals.items() if re.match(r"(\(\?\w+:)?\^", p)}
        self.rules: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for rule in self.lark.rules:
            self.rules[_name(rule.origin.name)].append(tuple(_name(s.name) for s in rule.expansion))
        self.size = self._sizes()
        engine: Any = self.lark.parser
        engine.parser.parser.callbacks = {r: partial(_node, r) for r in self.lark.rules}

    def _sizes(self) -> dict[str, int]:
        """The number of rules in the smallest tree of each symbol."""
        size = dict.fromkeys(self.terminals, 0)
        while any(symbol not in size for symbol in self.rules):
            for symbol, options in self.rules.items():
                closed = [1 + sum(size[s] for s in o) for o in options if all(s in size for s in o)]
                if closed:
                    size[symbol] = min(closed)
        return size

    def read(self, text: str) -> Node:
        """The whole derivation of a text. Raises UnexpectedInput."""
        tree: Any = self.lark.parse(text if text.endswith("\n") else text + "\n")
        assert isinstance(tree, Node)
        return tree

    def lexes(self, text: str) -> bool:
        """Whether the text is refused, if at all, for the order of its tokens."""
        try:
            self.read(text)
        except UnexpectedCharacters:
            return False
        except UnexpectedInput:
            return True
        return True

    def draw(self, symbol: str, rng: Random, words: Words) -> Node:
        """A tree of `symbol`, most of its tokens from `words`."""

        def grow(symbol: str, fuel: float) -> Node | Token:
            if symbol in self.terminals:
                return Token(symbol, self.word(symbol, rng, words))
            options = self.rules[symbol]
            costs = [sum(self.size[s] for s in o) for o in options]
            if fuel < 1:
                chosen = rng.choice([o for o, c in zip(options, costs, strict=True) if c == min(costs)])
            else:
                chosen = rng.choices(options, [1 / (1 + c + 2 * len(o)) for o, c in zip(options, costs, strict=True)])[
                    0
                ]
            parts = sum(s not in self.terminals for s in chosen)
            share = fuel if len(chosen) == 1 else (fuel - 1) / max(1, parts)
            return Node(symbol, tuple(grow(s, share) for s in chosen))

        tree = grow(symbol, FUEL)
        assert isinstance(tree, Node)
        return tree

    def draw_file(self, rng: Random, words: Words) -> Node:
        """A tree of a whole text: nearly always one item of each kind (section of a spec, definition or op)."""
        ((many, *_), *_) = self.rules["start"]
        (item,) = next(o for o in self.rules[many] if len(o) == 1)
        kinds = [kind for (kind,) in self.rules[item] for _ in range(rng.choices((0, 1, 2), (1, 60, 1))[0])]
        return Node("start", tuple(self.draw(kind, rng, words) for kind in kinds))

    def word(self, terminal: str, rng: Random, words: Words) -> str:
        known = words.get(terminal)
        return rng.choice(known) if known and rng.random() < 0.93 else draw_word(self.terminals[terminal], rng)

    def write(self, tree: Node) -> str:
        """The tokens with spaces between them; a word that begins a line does, every other line is indented."""
        parts: list[str] = []
        for token in leaves(tree):
            fresh = not parts or parts[-1].endswith("\n")
            parts.append("" if fresh and token.type in self.anchored else "  " if fresh else " ")
            parts.append(str(token))
        return "".join(parts)


def _name(symbol: str) -> str:
    return str(symbol)


def _node(rule: Rule, kids: list[Node | Token]) -> Node:
    return Node(_name(rule.origin.name), tuple(kids))


def leaves(tree: Node | Token) -> Iterator[Token]:
    if isinstance(tree, Token):
        yield tree
        return
    for kid in tree.kids:
        yield from leaves(kid)


def inner(tree: Node) -> Iterator[tuple[tuple[int, ...], Node]]:
    """Every node of a tree with the way to it."""
    pending: list[tuple[tuple[int, ...], Node]] = [((), tree)]
    while pending:
        way, node = pending.pop()
        yield way, node
        pending += [((*way, k), kid) for k, kid in enumerate(node.kids) if isinstance(kid, Node)]


def replaced(tree: Node, way: tuple[int, ...], new: Node) -> Node:
    """`tree` with `new` at the end of `way`."""
    if not way:
        return new
    kid = tree.kids[way[0]]
    assert isinstance(kid, Node)
    return Node(tree.symbol, (*tree.kids[: way[0]], replaced(kid, way[1:], new), *tree.kids[way[0] + 1 :]))


def words_of(trees: Sequence[Node]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for tree in trees:
        for token in leaves(tree):
            found[token.type].append(str(token))
    return dict(found)


@cache
def spec_grammar() -> Grammar:
    return Grammar("spec", grammar("spec"), postlex=LineEnds())


@cache
def ops_grammar() -> Grammar:
    return Grammar("ops", grammar("ops"))
