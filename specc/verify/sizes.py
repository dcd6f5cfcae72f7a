"""Small sizes for a model: every layer kind is there, and dims that differ stay different.

Sizes are taken from the spec: those written as numbers that stand in dims are free, the rest follows from them. Counts
of heads keep dividing one another as they do; of the choices that the type checker accepts, the one with most distinct
dims is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import permutations, product
from math import lcm
from typing import TypeVar

from specc import syntax as s
from specc import syntax_spec as m
from specc.api import Spec
from specc.diagnostics import Diagnostic, SpecError
from specc.ir import Model
from specc.ops import Num

COUNTS, HEADS, WIDTHS = 64, 512, 1 << 40
"""Up to which original value a size counts something, is the size of a head, or is the width of a stream."""
SMALL_COUNTS = (3, 2, 4, 5, 6, 8, 10, 12, 18, 24)
SMALL_HEADS = (16, 32, 48, 64, 80)
SMALL_WIDTHS = (40, 56, 72, 88, 97, 104, 112, 120, 136)
WINDOW = "window"
"""The constant of ops that see only the last positions."""
SMALL_WINDOW = 24
CHUNK = 64
"""Tokens in a chunk of the parallel form of a recurrence, as published code has it."""
TRIES, SPREAD = 12, 6
T = TypeVar("T")


@dataclass(frozen=True)
class Reduced:
    """A model of small sizes, what was replaced, and the lengths of texts that pass its edges."""

    spec: Spec
    sizes: tuple[tuple[str, int], ...]
    lengths: tuple[int, ...]


def reduce(spec: Spec) -> Reduced:
    """`spec` at small sizes, with one period of its layers (two layers where all are alike). Raises SpecError (E522)
    where none are found."""
    fixed = {"layers": _period(spec.model), **dict.fromkeys(_windows(spec.syntax), SMALL_WINDOW)}
    best: tuple[int, Spec, dict[str, int]] | None = None
    tried = 0
    for sizes in _choices(spec.syntax):
        if tried >= TRIES:
            break
        try:
            found = spec.reduced(**{**sizes, **fixed})
        except SpecError:
            continue
        count = _distinct(spec.model, found.model)
        tried += count > 0
        if count and (best is None or count > best[0]):
            best = count, found, sizes
    if best is None:
        raise SpecError([Diagnostic("E522", f"no small sizes fit `{spec.key}`")])
    window = SMALL_WINDOW if _windows(spec.syntax) else SMALL_WINDOW // 2
    return Reduced(best[1], tuple({**best[2], **fixed}.items()), (window + 1, CHUNK + 1))


def _period(model: Model) -> int:
    kinds = [tuple(n.variant_name for n in model.in_layer(i)) for i in range(model.layer_count)]
    for p in range(1, len(kinds)):
        if kinds[p:] == kinds[:-p]:
            return max(p, 2)
    return len(kinds)


def _windows(spec: m.SpecFile) -> list[str]:
    """Names of sizes that are the window of a node."""
    rows = spec.nodes.rows
    used = [c.value or s.Name(r.span, c.name) for r in rows for c in r.constants if c.name == WINDOW]
    names = [v.name for v in used if isinstance(v, s.Name)]
    return [n for n, _ in _numbers(spec) if n.rpartition(".")[2] in names]


def _numbers(spec: m.SpecFile) -> list[tuple[str, int]]:
    """Sizes that are written as a natural number, those of a layer class as `class.name`."""
    sizes = [(x.name, x.value) for x in (spec.sizes.sizes if spec.sizes else ())]
    sizes += [(f"{c.name}.{x.name}", x.value) for c in spec.layers.classes for x in c.sizes]
    return [(n, int(v.value)) for n, v in sizes if isinstance(v, s.Number) and v.value.denominator == 1]


def _free(spec: m.SpecFile) -> list[tuple[str, int]]:
    """Numbers that stand in a dim, through other sizes too."""
    used = {name.name for tree in _dims(spec) for name in _names(tree)}
    written = {x.name: x.value for x in (spec.sizes.sizes if spec.sizes else ())}
    written |= {x.name: x.value for c in spec.layers.classes for x in c.sizes}
    while True:
        more = {n.name for name in used & written.keys() for n in _names(written[name])} - used
        if not more:
            return [(n, v) for n, v in _numbers(spec) if n.rpartition(".")[2] in used]
        used |= more


def _dims(spec: m.SpecFile) -> Iterator[object]:
    yield spec.stream.tensor
    yield spec.states.items if spec.states else ()
    for row in spec.nodes.rows:
        yield row.weights
        yield [o for a in row.applies for o in a.outs]


def _names(tree: object) -> Iterator[s.Name]:
    if isinstance(tree, s.Name):
        yield tree
    elif isinstance(tree, tuple | list):
        for part in tree:
            yield from _names(part)
    elif isinstance(tree, s.Node):
        for f in fields(tree):
            yield from _names(getattr(tree, f.name))


def _choices(spec: m.SpecFile) -> Iterator[dict[str, int]]:
    """Assignments to try. The width of the stream stays a multiple of the counts that divide it."""
    free, stream = _free(spec), {n.name for n in _names(spec.stream.tensor)}
    counts = sorted((x for x in reversed(free) if x[1] <= COUNTS), key=lambda x: x[1])
    heads = sorted((x for x in free if COUNTS < x[1] <= HEADS), key=lambda x: x[1])
    widths = sorted((x for x in free if x[1] > HEADS), key=lambda x: x[1])
    shared = [(a, b) for a, n in widths if a in stream for b, k in counts if n % k == 0]
    for w, h, c in product(
        _some(permutations(SMALL_WIDTHS, len(widths))),
        _some(permutations(SMALL_HEADS, len(heads))),
        _some(_counts(counts, {})),
    ):
        chosen = (
            c | dict(zip((n for n, _ in heads), h, strict=True)) | dict(zip((n for n, _ in widths), w, strict=True))
        )
        if all(chosen[a] % chosen[b] == 0 for a, b in shared):
            yield chosen


def _some(found: Iterable[T]) -> list[T]:
    """A few of many, evenly spaced."""
    every = list(found)
    return every[:: max(1, len(every) // SPREAD)]


def _counts(left: Sequence[tuple[str, int]], done: Mapping[str, tuple[int, int]]) -> Iterator[dict[str, int]]:
    """Distinct small counts that divide where the original ones do. `done`: original and small one by name."""
    if not left:
        yield {name: small for name, (_, small) in done.items()}
        return
    (name, value), *rest = left
    used = [small for _, small in done.values()]
    step = lcm(1, *(small for old, small in done.values() if old < value and value % old == 0))
    for small in (1,) if value == 1 else SMALL_COUNTS:
        if small not in used and small <= value and small % step == 0:
            yield from _counts(rest, {**done, name: (value, small)})


def _distinct(full: Model, small: Model) -> int:
    """How many dims of the small model are distinct; 0 where it has one for two of the full model, or has lost one."""
    found: dict[int, int] = {1: 1}
    for a, b in zip(_lengths(full), _lengths(small), strict=True):
        if found.setdefault(b, a) != a:
            return 0
    return len(found)


def _lengths(model: Model) -> Iterator[int]:
    for node in model.nodes:
        for weight in node.weights:
            yield from weight.shape
        for _, bounds in node.bound:
            for bound in bounds:
                for tensor in (*bound.formula.inputs, *bound.formula.outputs):
                    yield from (int(d.value) for d in tensor.dims if isinstance(d, Num))
