"""Mistakes that an implementation can have made, as models: one change of the spec each, in one node or in all that are
alike. Of the likely kinds first: what a row says, which wire is read, then terms of formulas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

from specc import pipeline
from specc import syntax as s
from specc import syntax_spec as m
from specc.api import Spec
from specc.diagnostics import SpecError
from specc.ir import Application, Model, NodeVariant, Phase, WireRead, WireWrite
from specc.library import load_library
from specc.ops import Expr, Library
from specc.typecheck.model import check_model
from specc.verify.mutate import Mutant, node_changes, order_changes, row_changes, written_before
from specc.verify.rebind import Binder

VARIANTS = Path(__file__).parent / "variants.ops"
KNOWN = {"eps": ("1e-5", "1e-6", "1e-8", "1e-12"), "theta": ("10000", "500000", "1000000")}
"""Values that published models have, by constant."""


LIKELY = ("op", "pieces")
"""Kinds that come before others of their source."""


@dataclass(frozen=True)
class Hypothesis:
    """A changed model. `rows`: numbers of the rows that were changed, none for a change of the layers themselves."""

    mutant: Mutant
    nodes: tuple[str, ...]
    rows: tuple[int, ...]

    def __str__(self) -> str:
        return f"{', '.join(f'`{n}`' for n in self.nodes)}: {self.mutant.kind} {self.mutant.text}"


@dataclass(frozen=True)
class _Change:
    """New nodes by number. `op` is that of the first before the change."""

    kind: str
    op: str
    text: str
    new: Mapping[int, NodeVariant]


def hypotheses(spec: Spec, standing: Callable[[int], bool]) -> Iterator[Hypothesis]:
    """Each that changes a row whose number is `standing`. Those that no model can have are left out."""
    library, model = _library(spec), spec.model
    sources: tuple[Callable[[], Iterator[_Change]], ...] = (
        lambda: _row_changes(spec, library),
        lambda: _model_changes(model, ("wire", "also")),
        lambda: _model_changes(model, ("term",)),
    )
    for n, source in enumerate(sources):
        for change in _joined(list(source()), model):
            if any(map(standing, change.new)):
                yield _hypothesis(change, model)
        if n == 0:
            yield from _of_layers(spec, library)


def _library(spec: Spec) -> Library:
    """The ops of the spec and the variants; without these where the spec has one of the same name."""
    try:
        return load_library([*pipeline.used_files(spec.path, spec.syntax), VARIANTS])
    except SpecError:
        return pipeline.libraries(spec.path, spec.syntax)


def _name(node: NodeVariant) -> str:
    return node.path if node.layer_class in ("all", None) else f"{node.path}[{node.layer_class}]"


def _hypothesis(change: _Change, model: Model) -> Hypothesis:
    changed = replace(model, nodes=tuple(change.new.get(k, n) for k, n in enumerate(model.nodes)))
    names = tuple(_name(model.nodes[k]) for k in sorted(change.new) if model.nodes[k].op.name == change.op)
    return Hypothesis(Mutant(change.kind, names[0], change.text, changed), names, tuple(sorted(change.new)))


def _joined(changes: Iterable[_Change], model: Model) -> Iterator[_Change]:
    """The same change in all rows of an op, in all rows of a node, and each alone; those of most rows first."""
    groups: dict[tuple[tuple[str, str, int], object], list[_Change]] = {}
    again: Counter[object] = Counter()
    for change in changes:
        rows = tuple(sorted(change.new))
        again[(rows, change.kind, change.text)] += 1
        what = change.kind, change.text, again[(rows, change.kind, change.text)]
        path = model.nodes[next(iter(change.new))].path
        for like in (("op", change.op), ("path", path), ("rows", rows)):
            groups.setdefault((what, like), []).append(change)
    seen: set[object] = set()
    for (what, _), found in sorted(groups.items(), key=lambda g: (g[1][0].kind not in LIKELY, -len(g[1]))):
        joint = _joint(found)
        if joint is not None and (key := (what, tuple(sorted(joint.new)))) not in seen:
            seen.add(key)
            yield joint


def _joint(found: list[_Change]) -> _Change | None:
    """All at once; None where two change the same row."""
    rows = [k for change in found for k in change.new]
    if len(set(rows)) < len(rows):
        return None
    return replace(found[0], new={k: row for change in found for k, row in change.new.items()})


def _model(syntax: m.SpecFile, library: Library) -> Model | None:
    try:
        return check_model(syntax, library)
    except SpecError:
        return None


def _row_changes(spec: Spec, library: Library) -> Iterator[_Change]:
    same, binder = _same_names(spec.syntax), Binder(spec.syntax, spec.model, library)
    for k, row in enumerate(spec.syntax.nodes.rows):
        near = [c for c in row_changes(row, spec.syntax, library) if c[0] != "pieces"]
        for kind, text, changed in (*near, *_swapped(row), *_constants(row, same)):
            if kind != "op" or _alike(library, row.op.name, changed.op.name):
                node = binder.node(k, changed)
                if node is not None:
                    yield _Change(kind, row.op.name, text, {k: node})


def _alike(library: Library, one: str, other: str) -> bool:
    """Whether the ops take tensors of the same ranks. An op is compared by its form for prefill."""
    forms = [library.op(op.prefill) if op.prefill else op for op in (library.op(one), library.op(other))]
    first, second = ([(len(t.dims), t.sort) for t in (*op.inputs, *op.outputs)] for op in forms)
    return forms[0] != forms[1] and first == second


def _same_names(spec: m.SpecFile) -> dict[str, tuple[str, ...]]:
    """Numbers that constants of one name have, in any row or layer class, beside those of published models."""
    found: dict[str, dict[str, None]] = {name: dict.fromkeys(texts) for name, texts in KNOWN.items()}
    values = [(x.name, x.value) for c in spec.layers.classes for x in c.sizes]
    values += [(c.name, c.value) for row in spec.nodes.rows for c in row.constants if c.value is not None]
    for name, value in values:
        if isinstance(value, s.Number):
            texts = found.setdefault(name, {})
            if all(Fraction(t) != value.value for t in texts):
                texts[value.text] = None
    return {name: tuple(texts) for name, texts in found.items()}


def _constants(row: m.Row, same: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str, m.Row]]:
    """Values that stand elsewhere for a constant, 1, its reciprocal and square, and none."""
    for k, constant in enumerate(row.constants):
        old = constant.value or s.Name(constant.span, constant.name)
        span, one = old.span, s.Number(old.span, Fraction(1), "1")
        values: list[tuple[str, s.Expr]] = [
            (f"-> {t}", s.Number(span, Fraction(t), t)) for t in same.get(constant.name, ())
        ]
        values += [
            ("-> 1", one),
            ("-> 1 / it", s.Binary(span, "/", one, old)),
            ("-> its square", s.Binary(span, "·", old, old)),
        ]
        for text, value in values:
            new = (*row.constants[:k], replace(constant, value=value), *row.constants[k + 1 :])
            yield "constant", f"{constant.name} {text}", replace(row, constants=new)
        yield (
            "constant",
            f"{constant.name} left out",
            replace(row, constants=row.constants[:k] + row.constants[k + 1 :]),
        )


def _swapped(row: m.Row) -> Iterator[tuple[str, str, m.Row]]:
    """Two pieces of a weight in each other's place."""
    for k, weight in enumerate(row.weights):
        if not isinstance(weight.value, tuple):
            continue
        for a, b in combinations(range(len(weight.value)), 2):
            pieces = list(weight.value)
            pieces[a], pieces[b] = pieces[b], pieces[a]
            new = (*row.weights[:k], replace(weight, value=tuple(pieces)), *row.weights[k + 1 :])
            yield "pieces", f"`{pieces[b].name}` and `{pieces[a].name}` swapped", replace(row, weights=new)


def _of_layers(spec: Spec, library: Library) -> Iterator[Hypothesis]:
    """Which layers are of a class, and the order of two rows."""
    layers = spec.syntax.layers
    changed: list[tuple[str, str, str, m.SpecFile]] = []
    for text, step in (("counted from 1", "+"), ("counted from -1", "-")):
        classes = tuple(replace(c, where=_shifted(c.where, step)) for c in layers.classes)
        syntax = replace(spec.syntax, layers=replace(layers, classes=classes))
        changed += [("layers", "layers", text, syntax)] if classes else []
    changed += list(order_changes(spec.syntax))
    for kind, node, text, syntax in changed:
        model = _model(replace(syntax, config=None), library)
        if model is not None:
            yield Hypothesis(Mutant(kind, node, text, model), (node,), ())


def _shifted(tree: Any, step: str) -> Any:
    """With `i + 1`, or `i - 1`, for the number of the layer."""
    if isinstance(tree, s.Name):
        return s.Binary(tree.span, step, tree, s.Number(tree.span, Fraction(1), "1")) if tree.name == "i" else tree
    if isinstance(tree, tuple):
        return tuple(_shifted(x, step) for x in tree)
    if isinstance(tree, s.Node):
        parts = {f.name: _shifted(getattr(tree, f.name), step) for f in fields(tree) if f.name != "span"}
        return replace(tree, **parts)
    return tree


def _model_changes(model: Model, kinds: tuple[str, ...]) -> Iterator[_Change]:
    for k, node in enumerate(model.nodes):
        before = written_before(model, node)
        if "also" in kinds:
            yield from _also(model, k, before)
            yield from _later(model, k, before)
        for kind, text, changed in node_changes(node, Phase.PREFILL, before):
            if kind in kinds:
                yield _Change(kind, node.op.name, text, {k: changed})


def _also(model: Model, k: int, before: Mapping[str, tuple[Expr, ...]]) -> Iterator[_Change]:
    """Node `k` applied to one more wire, in the place of which all later nodes read the result."""
    node = model.nodes[k]
    use, own = node.applications[-1], {r.wire for a in node.applications for r in a.reads}
    if not use.reads or len(use.writes) != 1 or use.reads[0].state is not None:
        return
    read, ahead = use.reads[0].wire, _ahead(model, node)
    for wire in (w for w, dims in before.items() if w not in own and dims == before.get(read)):
        made = f"{wire} by {node.path}"
        views = tuple((made, dims) for _, dims in use.writes[0].views)
        more = replace(use, reads=_reading(use.reads, read, wire), writes=(WireWrite(use.writes[0].operand, views),))
        bounds = node.phase(Phase.PREFILL)
        bound = replace(bounds[-1], reads=_reading(bounds[-1].reads, read, wire))
        new = {k: replace(node, applications=(*node.applications, more), bound=((Phase.PREFILL, (*bounds, bound)),))}
        for n, other in enumerate(model.nodes):
            beside = other.layers is not None and node.layers is not None and set(other.layers) & set(node.layers)
            if (
                n != k
                and beside
                and other.path not in ahead
                and any(r.wire == wire for a in other.applications for r in a.reads)
            ):
                if not set(other.layers or ()) <= set(node.layers or ()):
                    break
                new[n] = _rewired(other, wire, made)
        else:
            yield _Change("also", node.op.name, f"`{wire}` goes through it too", new)


def _ahead(model: Model, node: NodeVariant) -> set[str]:
    """Paths of the nodes that stand before `node` in evaluation."""
    nodes = model.in_layer(node.layers[0]) if node.layers else model.outside(node.outside_order)
    return {n.path for n in nodes[: nodes.index(node)]}


def _later(model: Model, k: int, before: Mapping[str, tuple[Expr, ...]]) -> Iterator[_Change]:
    """Node `k` reading a wire that is written after it in the order of the page, and does not need it."""
    node = model.nodes[k]
    if not node.layers:
        return
    nodes = model.in_layer(node.layers[0])
    behind = _behind(nodes, node)
    views = [v for n in nodes if n is not node for a in n.applications for w in a.writes for v in w.views]
    for read in (r for a in node.applications for r in a.reads if r.wire in before):
        for wire, dims in views:
            if wire not in before and wire not in behind and dims == before[read.wire]:
                changed = _rewired(node, read.wire, wire)
                yield _Change("wire", node.op.name, f"{read.operand}: {read.wire} -> {wire}", {k: changed})


def _behind(nodes: Iterable[NodeVariant], node: NodeVariant) -> set[str]:
    """Wires that depend on what `node` gives."""
    found: set[str] = set()
    for other in nodes:
        if other is node or any(r.wire in found for a in other.applications for r in a.reads):
            found |= {wire for a in other.applications for w in a.writes for wire, _ in w.views}
    return found


def _reading(reads: tuple[WireRead, ...], old: str, new: str) -> tuple[WireRead, ...]:
    return tuple(replace(r, wire=new) if r.wire == old and r.wire != r.state else r for r in reads)


def _rewired(node: NodeVariant, old: str, new: str) -> NodeVariant:
    """`node` with wire `new` read for `old`."""
    uses: tuple[Application, ...] = tuple(replace(a, reads=_reading(a.reads, old, new)) for a in node.applications)
    bounds = tuple((p, tuple(replace(b, reads=_reading(b.reads, old, new)) for b in bs)) for p, bs in node.bound)
    return replace(node, applications=uses, bound=bounds)
