"""Changes to trees and to bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from random import Random

from lark import Token

from tests.fuzz.grammar import Grammar, Node, Words, inner, replaced

EDGES = ("0", "1", "2", "3", "7", "64", "65", "1025", "0.5", "1e-6", "1e9", "1e20", "0.1", "1099511627776", "1e400")
"""Numbers at which something changes."""

Way = tuple[int, ...]


def mutate_tree(grammar: Grammar, tree: Node, donors: Sequence[Node], words: Words, rng: Random) -> Node:
    """`tree` with one place changed."""
    places: dict[str, list[tuple[Way, Node]]] = defaultdict(list)
    for way, node in inner(tree):
        places[node.symbol].append((way, node))
    if rng.random() < 0.4:
        return _mutate_token(grammar, tree, words, rng)
    symbol = rng.choice([s for s in places if s != "start"])
    way, node = rng.choice(places[symbol])
    match rng.choice(("draw", "draw", "own", "donor", "donor", "shrink", "grow", "swap")):
        case "draw":
            return replaced(tree, way, grammar.draw(symbol, rng, words))
        case "own":
            return replaced(tree, way, rng.choice(places[symbol])[1])
        case "donor":
            found = [n for _, n in inner(rng.choice(donors)) if n.symbol == symbol]
            return replaced(tree, way, rng.choice(found)) if found else tree
        case "shrink":
            below = [n for w, n in inner(node) if w and n.symbol == symbol]
            return replaced(tree, way, rng.choice(below)) if below else tree
        case "grow":
            above = [n for w, n in places[symbol] if w == way[: len(w)] and w != way]
            return replaced(tree, way, rng.choice(above)) if above else tree
    return _swapped(tree, (way, node), rng.choice(places[symbol]))


def _mutate_token(grammar: Grammar, tree: Node, words: Words, rng: Random) -> Node:
    """One token written as another one of its kind."""
    spots = [(way, k) for way, node in inner(tree) for k, kid in enumerate(node.kids) if isinstance(kid, Token)]
    way, at = rng.choice(spots)
    node = next(n for w, n in inner(tree) if w == way)
    token = node.kids[at]
    assert isinstance(token, Token)
    number = token.type == "NUMBER" and rng.random() < 0.7
    text = rng.choice(EDGES) if number else grammar.word(token.type, rng, words)
    return replaced(tree, way, Node(node.symbol, (*node.kids[:at], Token(token.type, text), *node.kids[at + 1 :])))


def _swapped(tree: Node, one: tuple[Way, Node], two: tuple[Way, Node]) -> Node:
    """Two nodes in each other's place, unless one holds the other."""
    n = min(len(one[0]), len(two[0]))
    if one[0][:n] == two[0][:n]:
        return tree
    return replaced(replaced(tree, one[0], two[1]), two[0], one[1])


HOSTILE = [
    s.encode("utf-8", "surrogatepass")
    for s in (
        "\0", "\x1b[31m", "\r", "\r\n", "\u2028", "\u202e", "\u2066", "\u200b", "\ufeff", "\x0b", "\x85", "\ud800",
        "ａ", "а", "ı", "ﬁ", "𝟙", "²", "٣", '"""', "'''", "\\", '\\"', "*/", "{{ 7*7 }}", "{% raw %}", "#",
        "|", "../", "\t", "/", "e99999999", "(" * 40, "√(", "[[", "𝓍", "e\u0301", "\U0010ffff", "$", "`", "@",
        "if", "\n\n", "model ",
    )
]  # fmt: skip


def mutate_bytes(data: bytes, other: bytes, rng: Random) -> bytes:
    """`data` with one accident: bits flipped, bytes lost or doubled, cut off, spliced with `other`, a hostile text."""
    return rng.choice(ACCIDENTS)(data, other, rng)


def _flip(data: bytes, other: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data)) if data else 0
    return data[:at] + bytes(b ^ (1 << rng.randrange(8)) for b in data[at : at + 1]) + data[at + 1 :]


def _replace(data: bytes, other: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _drop(data: bytes, other: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 1, 2, 5, 40)) :]


def _double(data: bytes, other: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    end = at + rng.choice((1, 2, 5, 40, 400))
    return data[:end] + data[at:end] * rng.choice((1, 1, 1, 30)) + data[end:]


def _cut(data: bytes, other: bytes, rng: Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _splice(data: bytes, other: bytes, rng: Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _hostile(data: bytes, other: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(HOSTILE) + data[at + rng.choice((0, 0, 1)) :]


def _lines(data: bytes, other: bytes, rng: Random) -> bytes:
    """Two lines in each other's place."""
    lines = data.split(b"\n")
    one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[two] = lines[two], lines[one]
    return b"\n".join(lines)


ACCIDENTS: tuple[Callable[[bytes, bytes, Random], bytes], ...] = (
    _flip, _replace, _drop, _double, _cut, _splice, _hostile, _hostile, _hostile, _lines,
)  # fmt: skip
