"""One case for each seed: files and, for a command, its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.fuzz.command import draw_arguments
from tests.fuzz.grammar import words_of
from tests.fuzz.hosts import HOSTS, SHIPPED, WEIGHTS, all_words, donors, grammar_of, tree_of
from tests.fuzz.mutate import mutate_bytes, mutate_tree


@dataclass(frozen=True)
class Case:
    """`files` by name: `case.spec` and the op libraries; one with the name of a shipped library stands for that one.

    With `arguments` the case is a command that runs where the files are."""

    kind: str
    files: dict[str, bytes]
    arguments: tuple[str, ...] = ()


def case(seed: int) -> Case:
    """The case of a seed, the same in every process."""
    rng = Random(seed)
    kind = rng.choices(list(KINDS), [share for _, share in KINDS.values()])[0]
    return KINDS[kind][0](kind, rng)


def _host(rng: Random) -> dict[str, str]:
    return dict(HOSTS[rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]])


def _bytes(files: dict[str, str]) -> dict[str, bytes]:
    return {name: text.encode("utf-8", "surrogatepass") for name, text in files.items()}


def _drawn_spec(kind: str, rng: Random) -> Case:
    grammar = grammar_of("case.spec")
    return Case(kind, _bytes({"case.spec": grammar.write(grammar.draw_file(rng, all_words(".spec")))}))


def _drawn_ops(kind: str, rng: Random) -> Case:
    grammar = grammar_of("own.ops")
    return Case(kind, _bytes({"own.ops": grammar.write(grammar.draw_file(rng, all_words(".ops")))}))


def _mutated(files: dict[str, str], name: str, rng: Random) -> dict[str, str]:
    """Up to three places of one file changed; names mostly those of the file."""
    grammar, suffix = grammar_of(name), name[name.rindex(".") :]
    tree = tree_of(name, files[name])
    own = words_of([tree])
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        words = own if rng.random() < 0.8 else all_words(suffix)
        tree = mutate_tree(grammar, tree, donors(suffix), words, rng)
    return files | {name: grammar.write(tree)}


def _mutated_spec(kind: str, rng: Random) -> Case:
    return Case(kind, _bytes(_mutated(_host(rng), "case.spec", rng)))


def _mutated_ops(kind: str, rng: Random) -> Case:
    """An op library of a spec changed: its own, or a shipped one."""
    files = _host(rng)
    own = [n for n in files if n.endswith(".ops")]
    name = rng.choice(own) if own and rng.random() < 0.6 else rng.choice(list(SHIPPED))
    files.setdefault(name, SHIPPED.get(name, ""))
    return Case(kind, _bytes(_mutated(files, name, rng)))


def _byte_level(kind: str, rng: Random) -> Case:
    files = _bytes(_host(rng))
    name = rng.choice(list(files))
    others = [data for host in HOSTS.values() for data in _bytes(dict(host)).values()]
    for _ in range(rng.choice((1, 1, 2, 4))):
        files[name] = mutate_bytes(files[name], rng.choice(others), rng)
    return Case(kind, files)


def _command(kind: str, rng: Random) -> Case:
    return Case(kind, {}, draw_arguments(rng))


KINDS: dict[str, tuple[Callable[[str, Random], Case], int]] = {
    "drawn spec": (_drawn_spec, 10),
    "drawn ops": (_drawn_ops, 10),
    "mutated spec": (_mutated_spec, 30),
    "mutated ops": (_mutated_ops, 20),
    "bytes": (_byte_level, 20),
    "command": (_command, 10),
}
"""Kinds of cases and their shares."""
