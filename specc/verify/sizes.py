"""Small sizes for a model: every layer kind is there, and dims that differ stay different.

Sizes are taken from the spec: those written as numbers that stand in dims are free, the rest follows from them. Counts
that stand in one node keep dividing one another as they do. Of the choices that the type checker accepts, the one is
taken where fewest values meet that differ at full size: dims, constants, quotients of counts, roots of head sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice, permutations, product
from math import lcm, sqrt
from typing import TypeVar

from specc import syntax as s
from specc import syntax_spec as m
from specc.api import Spec
from specc.diagnostics import Diagnostic, SpecError
from specc.ir import Model, NodeVariant
from specc.ops import Num
from specc.passes.constants import fold_constants_in
from specc.typecheck.values import as_real

COUNTS, HEADS, WIDTHS = 64, 512, 1 << 40
"""Up to which original value a size counts something, is the size of a head, or is the width of a stream."""
SMALL_COUNTS = (2, 3, 4, 5, 6, 8, 9, 10, 12, 14, 15, 16, 18, 20, 21, 24, 30, 35, 45)
SMALL_ANYWAY = 6
"""A count above 1 may become this, also where it is smaller."""
SMALL_HEADS = (28, 32, 80, 56, 16, 20)
"""The first are no squares: 1 / √D is not 1 over a count."""
SMALL_WIDTHS = (60, 72, 84, 97, 40, 56, 88, 104, 112, 120, 136)
WINDOW = "window"
"""The constant of ops that see only the last positions."""
SMALL_WINDOW = 24
CHUNK = 64
"""Tokens in a chunk of the parallel form of a recurrence, as published code has it."""
ATTEMPTS, TRIES, SPREAD = 200, 24, 6
"""How many choices are given to the type checker, how many that it takes are compared, and how many of a kind."""
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
    best: tuple[tuple[int, int], Spec, dict[str, int]] | None = None
    tried = 0
    for sizes in islice(_choices(spec.syntax, fixed.values()), ATTEMPTS):
        if tried >= TRIES or (best is not None and best[0][0] == 0):
            break
        try:
            found = spec.reduced(**{**sizes, **fixed})
        except SpecError:
            continue
        count = _distinct(spec.model, found.model)
        if not count:
            continue
        tried += 1
        score = -_cost(meeting(spec.model, found.model)), count
        if best is None or score > best[0]:
            best = score, found, sizes
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
    return [(n, int(v.value)) for n, v in sizes if isinstance(v, s.Number) and not v.decimal]


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


def _choices(spec: m.SpecFile, fixed: Collection[int]) -> Iterator[dict[str, int]]:
    """Assignments to try. The width of the stream stays a multiple of the counts that divide it."""
    free, stream = _free(spec), {n.name for n in _names(spec.stream.tensor)}
    counts = sorted((x for x in reversed(free) if x[1] <= COUNTS), key=lambda x: x[1])
    heads = sorted((x for x in free if COUNTS < x[1] <= HEADS), key=lambda x: x[1])
    widths = sorted((x for x in free if x[1] > HEADS), key=lambda x: x[1])
    shared = [(a, b) for a, n in widths if a in stream for b, k in counts if n % k == 0]
    kinds = (
        _some(permutations(SMALL_WIDTHS, len(widths))),
        list(permutations(SMALL_HEADS, len(heads))),
        _best_counts(spec, counts, fixed),
    )
    for i, j, k in sorted(product(*(range(len(kind)) for kind in kinds)), key=sum):
        w, h, c = kinds[0][i], kinds[1][j], kinds[2][k]
        chosen = (
            c | dict(zip((n for n, _ in heads), h, strict=True)) | dict(zip((n for n, _ in widths), w, strict=True))
        )
        if all(chosen[a] % chosen[b] == 0 for a, b in shared):
            yield chosen


def _some(found: Iterable[T]) -> list[T]:
    """A few of many, evenly spaced."""
    every = list(found)
    return every[:: max(1, len(every) // SPREAD)]


def _best_counts(spec: m.SpecFile, counts: Sequence[tuple[str, int]], fixed: Collection[int]) -> list[dict[str, int]]:
    """The few where fewest values meet: counts, quotients of those in one node, what stays, 2 for halves."""
    rows = [{n.name for n in _names([c.value or s.Name(r.span, c.name) for c in r.constants])} for r in spec.nodes.rows]
    short = {n: n.rpartition(".")[2] for n, _ in counts}
    joined = {
        (a, b) for a, n in counts for b, k in counts if n > k and n % k == 0 for r in rows if {short[a], short[b]} <= r
    }

    def score(small: dict[str, int]) -> tuple[int, int]:
        pairs = [(float(n), float(small[a])) for a, n in counts]
        pairs += [(full[a] / full[b], small[a] / small[b]) for a, b in joined]
        return _cost(_met([*kept, *((0.0, float(n)) for n in fixed), *pairs])), sum(small.values())

    full = dict(counts)
    values = [c.value.value for r in spec.nodes.rows for c in r.constants if isinstance(c.value, s.Number)]
    kept = [(2.0, 2.0), *((float(v), float(v)) for v in values)]
    return sorted(_counts(counts, {}, joined), key=score)[: 2 * SPREAD]


def _counts(
    left: Sequence[tuple[str, int]], done: Mapping[str, int], joined: Collection[tuple[str, str]]
) -> Iterator[dict[str, int]]:
    """Distinct small counts; of two that are `joined`, the second divides the first."""
    if not left:
        yield dict(done)
        return
    (name, value), *rest = left
    step = lcm(1, *(small for other, small in done.items() if (name, other) in joined))
    for small in (1,) if value == 1 else SMALL_COUNTS:
        if small not in done.values() and small <= max(value, SMALL_ANYWAY) and small % step == 0:
            yield from _counts(rest, {**done, name: small}, joined)


def _distinct(full: Model, small: Model) -> int:
    """How many dims of the small model are distinct; 0 where it has one for two of the full model, or has lost one, or
    where a value of the configuration is no longer whole."""
    if any(type(a) is int and type(b) is float for (_, a), (_, b) in zip(full.config, small.config, strict=True)):
        return 0
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


def meeting(full: Model, small: Model) -> dict[float, set[float]]:
    """Values that are one in the small model and differ in the full one, by the small one. Compared are the number of
    layers, dims, constants (or 1 over them), quotients of counts in one node, and roots of sizes of heads."""
    pairs = [(float(full.layer_count), float(small.layer_count))]
    pairs += [(float(a), float(b)) for a, b in zip(_lengths(full), _lengths(small), strict=True)]
    for large, little in zip(full.nodes, small.nodes, strict=True):
        own = list(zip(_constants(large), _constants(little), strict=True))
        pairs += [(max(a, 1 / a), max(b, 1 / b)) for a, b in own]
        counts = [(a, b) for a, b in own if 1 < a <= COUNTS and a.is_integer()]
        pairs += [(a / c, b / d) for a, b in counts for c, d in counts if c < a and (a / c).is_integer()]
    return _met([*pairs, *((sqrt(a), sqrt(b)) for a, b in pairs if COUNTS < a <= HEADS)])


def _met(pairs: Iterable[tuple[float, float]]) -> dict[float, set[float]]:
    found: dict[float, set[float]] = {}
    for a, b in pairs:
        found.setdefault(round(b, 9), set()).add(round(a, 9))
    return {b: values for b, values in found.items() if len(values) > 1}


def _cost(met: Mapping[float, Collection[float]]) -> int:
    return sum(len(values) - 1 for values in met.values())


def _constants(node: NodeVariant) -> Iterator[float]:
    """Numbers that are not 0."""
    for _, value in node.constants:
        number = value if isinstance(value, str | bool) else fold_constants_in(as_real(value))
        if isinstance(number, Num) and number.value:
            yield abs(float(number.value))
