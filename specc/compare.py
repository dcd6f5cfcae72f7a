"""What differs in meaning between two models, by Spec Key.

Comments, layout, the order of rows and names of `let`s carry no meaning, nor do ops that no node uses. What follows
from something else that is told, such as the shape of a wire from a changed size, is not told again of a node that is
named anyway.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest

from specc.compare_nodes import (
    WIRE,
    Pair,
    application_texts,
    constant_texts,
    op_lines,
    pair_nodes,
    place,
    same_values,
    shapes,
    weight_texts,
)
from specc.formula_text import dims_text, number_text
from specc.ir import LayerClass, Model, NodeVariant, Role
from specc.ops import Sort
from specc.page.tables import few
from specc.spec_key import format_key


class Kind(StrEnum):
    """What a change is about. RENAMED: `name` says what, `old` and `new` are its names."""

    MODEL = "model"
    DOMAIN = "domain"
    SIZE = "size"
    LAYERS = "layers"
    INPUT = "input"
    STREAM = "stream"
    OUTPUT = "output"
    STATE = "state"
    PROFILE = "profile"
    CONFIG = "config"
    RENAMED = "renamed"
    NODE = "node"
    OP = "op"
    CONSTANT = "constant"
    WIRES = "wires"
    SHAPE = "shape"
    WEIGHT = "weight"
    FORMULA = "formula"


@dataclass(frozen=True)
class Change:
    """One difference. `key`: the full Spec Key of a node, or `model@version` for what stands around the nodes; that of
    the old model, but for what is added. `variant`: the layer class, where a node has several variants."""

    key: str
    kind: Kind
    name: str
    old: str | None
    """None for what is added. A formula has one line for each line that differs."""
    new: str | None
    """None for what is removed."""
    variant: str | None = None
    same_value: bool = False
    """Whether `old` and `new` are forms of one real number, as `1/√2` and `√2/2`; they may be rounded differently."""


class Effect(StrEnum):
    REWRITTEN = "rewritten"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True)
class Touched:
    """A generated file whose text differs."""

    name: str
    effect: Effect


def compare_files(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[Touched, ...]:
    """Files whose texts differ, by name."""
    changed = (name for name in sorted({*old, *new}) if old.get(name) != new.get(name))
    effects = ((n, Effect.ADDED if n not in old else Effect.REMOVED if n not in new else None) for n in changed)
    return tuple(Touched(name, effect or Effect.REWRITTEN) for name, effect in effects)


def compare(old: Model, new: Model) -> tuple[Change, ...]:
    """Every difference in meaning: first what surrounds the nodes, then the nodes in the order of the new page, each
    removed one where it stood. Empty for models that mean the same."""
    classes = _renamed_classes(old, new)
    pairs = pair_nodes(old.nodes, new.nodes, classes)
    paths = {p.old.path: p.new.path for p in pairs if p.old is not None and p.new is not None}
    around = list(_around(old, new, classes))
    nodes = [list(_node(_Place((old, new), p, classes, paths))) for p in pairs]
    sizes = Kind.SIZE, Kind.CONSTANT
    told = {(c.old, c.new) for c in (*around, *(c for found in nodes for c in found)) if c.kind in sizes}
    for pair, found in zip(pairs, nodes, strict=True):
        found += _shapes(_Place((old, new), pair, classes, paths), told, bool(found))
    return (*around, *(c for found in nodes for c in found))


def _renamed_classes(old: Model, new: Model) -> dict[str, str]:
    """Old names of layer classes that have another name now, by their layers."""
    before, after = ({c.name: c.layers for c in m.classes} for m in (old, new))
    return {
        name: other
        for name, layers in before.items()
        for other, theirs in after.items()
        if name not in after and other not in before and layers == theirs
    }


def _table(key: str, kind: Kind, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
    """Differences of two tables; an entry that goes while just one of the same value comes is renamed."""
    gone, come = ([n for n in a if n not in b] for a, b in ((old, new), (new, old)))
    renamed: dict[str, str] = {}
    for name in gone:
        same = [n for n in come if new[n] == old[name]]
        if len(same) == 1 and [old[n] for n in gone].count(old[name]) == 1:
            renamed[name] = same[0]
    for name in old:
        if name in renamed:
            yield Change(key, Kind.RENAMED, str(kind), name, renamed[name])
        elif old[name] != new.get(name):
            yield Change(key, kind, name, old[name], new.get(name))
    for name in come:
        if name not in renamed.values():
            yield Change(key, kind, name, None, new[name])


def _around(old: Model, new: Model, classes: Mapping[str, str]) -> Iterator[Change]:
    key = f"{old.key}@{old.version}"
    yield from (Change(key, Kind.RENAMED, "layers", *pair) for pair in classes.items())
    tables = (
        (Kind.MODEL, _head),
        (Kind.DOMAIN, _domain),
        (Kind.SIZE, _sizes),
        (Kind.LAYERS, _layers),
        (Kind.INPUT, _inputs),
        (Kind.STREAM, _stream),
        (Kind.OUTPUT, _outputs),
        (Kind.STATE, _states),
        (Kind.PROFILE, _profile),
        (Kind.CONFIG, _config),
    )
    for kind, read in tables:
        before, after = read(old, classes), read(new, {})
        if kind is Kind.LAYERS:
            before |= {classes.get(c.name, c.name): text for c in old.classes if (text := _alike(c, new, classes))}
        yield from _table(key, kind, before, after)


def _alike(old: LayerClass, new: Model, classes: Mapping[str, str]) -> str | None:
    """The text of the class of this name in `new`, if it holds on the same layers: how a predicate is put is no
    difference."""
    name = classes.get(old.name, old.name)
    return next((_layer_class(c) for c in new.classes if c.name == name and c.layers == old.layers), None)


def _head(model: Model, _: Mapping[str, str]) -> dict[str, str]:
    found = {"key": model.key, "version": model.version, "class": model.official_class, "about": model.about}
    return {name: text for name, text in found.items() if text}


def _domain(model: Model, _: Mapping[str, str]) -> dict[str, str]:
    ranges = {d.name: f"[{d.low}, {d.high}] {d.unit}".rstrip() for d in model.domain}
    return ranges | {"page": str(model.page)}


def _sizes(model: Model, classes: Mapping[str, str]) -> dict[str, str]:
    found = {name: number_text(value) for name, value in model.sizes}
    for c in model.classes:
        found |= {f"{classes.get(c.name, c.name)}.{name}": number_text(value) for name, value in c.sizes}
    return found


def _layers(model: Model, classes: Mapping[str, str]) -> dict[str, str]:
    found = {"count": str(model.layer_count)}
    for c in model.classes:
        name = classes.get(c.name, c.name)
        found[name] = _layer_class(c)
        if c.label:
            found[f"label of {name}"] = c.label
    return found


def _layer_class(c: LayerClass) -> str:
    return f"where {c.predicate} ({len(c.layers)}: {few(c.layers)})"


def _inputs(model: Model, _: Mapping[str, str]) -> dict[str, str]:
    return {t.name: dims_text(t.dims) + (": index" if t.sort is Sort.INDEX else "") for t in model.inputs}


def _stream(model: Model, _: Mapping[str, str]) -> dict[str, str]:
    s = model.stream
    return {"name": s.name, "shape": dims_text(s.dims), "first": s.first, "next": s.next}


def _outputs(model: Model, _: Mapping[str, str]) -> dict[str, str]:
    return {"": ", ".join(model.outputs)}


def _states(model: Model, classes: Mapping[str, str]) -> dict[str, str]:
    return {f"{s.name} ({classes.get(c, c)})": dims_text(dims) for s in model.states for c, dims in s.dims}


def _profile(model: Model, _: Mapping[str, str]) -> dict[str, str]:
    found = {str(role): kind for role, kind in model.profile.types}
    found |= dict.fromkeys(model.profile.kept, str(Role.ACCUMULATOR))
    for op, part, role in sorted(model.profile.rounds):
        name = f"round {op}.{part}" if part else f"round {op}"
        found[name] = f"{found[name]}, {role}" if name in found else str(role)
    return found


def _config(model: Model, _: Mapping[str, str]) -> dict[str, str]:
    return {key: json.dumps(value, ensure_ascii=False) for key, value in model.config}


@dataclass(frozen=True)
class _Place:
    """A pair of variants with what its changes need. `classes`, `paths`: names that are others now."""

    models: tuple[Model, Model]
    pair: Pair
    classes: Mapping[str, str]
    paths: Mapping[str, str]

    def change(self, kind: Kind, name: str, old: str | None, new: str | None) -> Change:
        model, node = self.models[0], self.pair.old
        if node is None:
            model, node = self.models[1], self.pair.new
        assert node is not None
        variant = node.layer_class if len(model.variants(node.path)) > 1 else None
        return Change(format_key(model, node), kind, name, old, new, variant)

    def table(self, kind: Kind, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
        return (self.change(c.kind, c.name, c.old, c.new) for c in _table("", kind, old, new))


def _node(p: _Place) -> Iterator[Change]:
    old, new = p.pair.old, p.pair.new
    if old is None or new is None:
        texts = None if old is None else _row(old, p.classes), None if new is None else _row(new, {})
        yield p.change(Kind.NODE, "", *texts)
        return
    if old.path != new.path:
        yield p.change(Kind.RENAMED, "node", old.path, new.path)
    where = place(old, p.classes), place(new, {})
    if where[0] != where[1]:
        yield p.change(Kind.LAYERS, "", *where)
    if old.op.name != new.op.name:
        yield p.change(Kind.OP, "", old.op.name, new.op.name)
    yield from _formulas(p, old, new)
    forms = same_values(old, new)
    for change in _entries(p, Kind.CONSTANT, constant_texts(old), constant_texts(new)):
        yield replace(change, same_value=change.name in forms)
    yield from _entries(p, Kind.WIRES, application_texts(old), application_texts(new))
    yield from _weights(p, old, new)


def _row(node: NodeVariant, classes: Mapping[str, str]) -> str:
    """A row in short, for a node that comes or goes."""
    constants = ", ".join(f"{name}={text}" for name, text in constant_texts(node).items())
    wires = "; ".join(f"{label}: {text}" if label else text for label, text in application_texts(node).items())
    return " | ".join(x for x in (node.op.name, place(node, classes), constants, wires) if x)


def _formulas(p: _Place, old: NodeVariant, new: NodeVariant) -> Iterator[Change]:
    """For each op of the node, in both its phases, that is defined otherwise: the lines that differ."""
    before, after = ({b.op.name: b.op for _, bound in n.bound for b in bound} for n in (old, new))
    for name in (n for n in before if n in after and before[n] != after[n]):
        mine, theirs = op_lines(before[name]), op_lines(after[name])
        gone = [line for line in mine if line not in theirs]
        come = [line for line in theirs if line not in mine]
        if gone or come:
            yield p.change(Kind.FORMULA, name, "\n".join(gone) or None, "\n".join(come) or None)


def _entries(p: _Place, kind: Kind, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield p.change(kind, name, old.get(name), new.get(name))


def _weights(p: _Place, old: NodeVariant, new: NodeVariant) -> Iterator[Change]:
    before, after = weight_texts(old, p.paths), weight_texts(new, {})
    same = {n: tuple(x == y for x, y in zip(before[n], after[n], strict=True)) for n in before if n in after}
    texts = ({n: _weight(w, same.get(n, (False, False))) for n, w in t.items()} for t in (before, after))
    yield from p.table(Kind.WEIGHT, *texts)


def _weight(weight: tuple[str, str], same: tuple[bool, ...]) -> str:
    """Its shape and its source, as far as they differ."""
    parts = [text for text, is_same in zip(weight, same, strict=True) if not is_same]
    return " = ".join(parts)


def _shapes(p: _Place, told: Collection[tuple[str | None, str | None]], named: bool) -> Iterator[Change]:
    """Tensors of another shape. Where each dim differs as a size or constant that is told does, it is enough that the
    node is `named` by another change, or by what it reads."""
    if p.pair.old is None or p.pair.new is None:
        return
    before, after = shapes(p.pair.old), shapes(p.pair.new)
    for name in (n for n in before if n in after and before[n] != after[n]):
        follows = all(a == b or (a, b) in told for a, b in zip_longest(before[name], after[name]))
        if not follows or not (named or name.startswith(WIRE)):
            yield p.change(Kind.SHAPE, name, *(f"[{', '.join(dims[name])}]" for dims in (before, after)))
