"""What surrounds the nodes of a Model Spec: the rounding profile and the published configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from specc import syntax as s
from specc import syntax_spec as m
from specc.diagnostics import Collector, SpecError, nearest
from specc.instantiate import Value
from specc.ir import LayerClass, NodeVariant, Profile, Role
from specc.limits import MAX_CONFIG
from specc.ops import Expr, Library, Named, Num, walk
from specc.passes.constants import fold_constants_in
from specc.typecheck.sizes import Frame, layers_text
from specc.typecheck.values import Meanings, Table, as_real, attempt, decimal, evaluate, mistake

TYPES = ("bfloat16", "float16", "float32", "float64")
ACCUMULATOR = "float32"
"""What kernels compute in."""
STORED = (Role.WEIGHT, Role.ACTIVATION, Role.CACHE, Role.ACCUMULATOR)
"""Roles that a profile gives a type; an index is an integer."""
WORDS: dict[str, object] = {"True": True, "False": False, "None": None}


def check_profile(profile: m.Profile, library: Library, tensors: Collection[str], report: Collector) -> Profile:
    """The rounding profile, which may name some of `tensors` (wires and states); mistakes go to `report` (E270)."""
    types: dict[Role, str] = {}
    kept: list[str] = []
    for line in profile.storage:
        if line.role in tensors and line.role not in [str(r) for r in STORED]:
            _keep(line, kept, report)
            continue
        role = attempt(report, _role, s.Name(line.span, line.role))
        if line.type.name not in TYPES:
            help_ = nearest(line.type.name, TYPES)
            report.error("E270", f"unknown type `{line.type.name}`", line.type.span, help_)
            types |= {} if role is None else {role: ACCUMULATOR}
        elif role is not None and role in types:
            report.error("E204", f"the type of `{role}` is given twice", line.span)
        elif role is Role.ACCUMULATOR and line.type.name != ACCUMULATOR:
            message = f"the accumulator is {ACCUMULATOR}, the only type that is supported, not {line.type.name}"
            report.error("E270", message, line.type.span, f"write `{role} {ACCUMULATOR}`")
            types[role] = ACCUMULATOR
        elif role is not None:
            types[role] = line.type.name
    for role in STORED:
        if role not in types:
            report.error("E270", f"the profile gives no type for `{role}`", profile.span)
    rounds: dict[str, tuple[str, str, Role]] = {}
    for r in profile.rounds:
        found = attempt(report, _round, r, library)
        if r.target.name in rounds:
            report.error("E204", f"the rounding of `{r.target.name}` is given twice", r.span)
        elif found is not None:
            rounds[r.target.name] = found
    return Profile(tuple(types.items()), tuple(rounds.values()), tuple(kept))


def _keep(line: m.Storage, kept: list[str], report: Collector) -> None:
    """A wire or state that is stored in the accumulator's type (E204, E270)."""
    if line.role in kept:
        report.error("E204", f"the type of `{line.role}` is given twice", line.span)
    elif line.type.name != ACCUMULATOR:
        message = f"`{line.role}` is stored as its role says, or in the accumulator's type, not in {line.type.name}"
        report.error("E270", message, line.type.span, f"write `{line.role} {ACCUMULATOR}`")
    kept.append(line.role)


def _role(written: s.Name) -> Role:
    names = [str(r) for r in STORED]
    if written.name not in names:
        raise mistake("E270", f"unknown role `{written.name}`", written.span, nearest(written.name, names))
    return Role(written.name)


def _round(r: m.Round, library: Library) -> tuple[str, str, Role]:
    role, at = _role(r.role), r.target.span
    if r.target.name == "softmax":
        return "softmax", "", role
    name, _, part = r.target.name.partition(".")
    ops = {o.name: o for o in library.ops}
    if name not in ops:
        raise mistake("E270", f"unknown op `{name}`", at.part(0), nearest(name, [*ops, "softmax"]))
    op = ops[name]
    lets = [n.name for q in op.equations for n in walk(q.expr) if isinstance(n, Named)]
    known = list(dict.fromkeys([p.name for p in op.params if p.kind == "real"] + lets))
    if part not in known:
        raise mistake("E270", f"`{name}` has no constant or `let` named `{part}`", at.part(-1), nearest(part, known))
    return name, part, role


@dataclass(frozen=True)
class _Known:
    """What names mean in a configuration: `words` have no arithmetic, `names` are numbers, and constants of `failed`
    nodes are not known because of a mistake that is reported already."""

    words: Mapping[str, object]
    names: Meanings
    failed: tuple[str, ...]
    frame: Frame

    def find(self, name: s.Name) -> Expr:
        """Raises SpecError, an empty one for a constant of a failed node."""
        owner = "." + name.name.rpartition(".")[0]
        if name.name not in self.names and any(owner.endswith(f".{path}") for path in self.failed):
            raise SpecError([])
        return Table(self.names, tuple(self.words))(name)


def check_config(
    config: m.Config | None, frame: Frame, nodes: Iterable[NodeVariant], failed: Iterable[str], report: Collector
) -> tuple[tuple[str, object], ...]:
    """The published configuration as JSON values by dotted key; mistakes go to `report` (E271). `failed`: paths of
    nodes that have mistakes."""
    found: dict[str, object] = {}
    if config and sum(values_in(e.value, frame.layer_count) for e in config.entries) > MAX_CONFIG:
        report.error("E271", "the configuration has too many values", config.span, f"at most {MAX_CONFIG}")
        return ()
    constants = node_constants(nodes)
    names = {k: v for k, v in constants.items() if isinstance(v, Expr)} | dict(frame.outside.names)
    known = _Known(WORDS | {k: v for k, v in constants.items() if k not in names}, names, tuple(failed), frame)
    objects: dict[str, str] = {}  # the first entry in each
    for entry in config.entries if config else ():
        parts = entry.key.split(".")
        around = [".".join(parts[:n]) for n in range(1, len(parts))]
        inside = next((key for key in around if key in found), objects.get(entry.key))
        if entry.key in found or inside is not None:
            report.error(
                "E204",
                f"`{entry.key}` is given twice",
                entry.span,
                f"`{inside}` stands already" if inside else "",
            )
            continue
        found[entry.key] = attempt(report, _json, entry.value, known)
        for name in around:
            objects.setdefault(name, entry.key)
    return tuple(found.items())


def node_constants(nodes: Iterable[NodeVariant]) -> dict[str, Value | None]:
    """Constants by `node.constant` where all variants of the node agree, and by `class.node.constant`; an optional one
    that is not given is None."""
    found: dict[str, Value | None] = {}
    apart: set[str] = set()
    for node in nodes:
        values = dict.fromkeys(p.name for p in node.op.params if p.optional) | dict(node.constants)
        for name, value in values.items():
            key = f"{node.path}.{name}"
            if node.layer_class is not None:
                found[f"{node.layer_class}.{key}"] = value
            if found.setdefault(key, value) != value:
                apart.add(key)
    return {k: v for k, v in found.items() if k not in apart}


def _json(value: m.Value, known: _Known) -> object:
    match value:
        case m.Text():
            return value.value
        case m.ListValue():
            return [_json(v, known) for v in value.items]
        case m.Each():
            return _each(value, known)
        case s.Name(_, name) if name in known.words:
            return known.words[name]
    exact = evaluate(value, known.find)
    number = fold_constants_in(as_real(exact))
    if not isinstance(number, Num):
        raise mistake("E271", "expected a number, a text, or a list", value.span)
    try:
        whole = number.value.denominator == 1 and not decimal(exact)
        return int(number.value) if whole else float(number.value)
    except OverflowError:
        raise mistake("E271", "this number is too large", value.span) from None


def values_in(value: m.Value, layers: int) -> int:
    """How many JSON values `value` becomes, at most."""
    match value:
        case m.ListValue(_, items):
            return 1 + sum(values_in(v, layers) for v in items)
        case m.Each(_, choices):
            return layers * max(values_in(v, layers) for _, v in choices)
    return 1


def _each(each: m.Each, known: _Known) -> list[object]:
    frame = known.frame
    classes: dict[str, LayerClass] = {c.name: c for c in frame.classes}
    result: dict[int, object] = {}
    for written, value in each.choices:
        name = written.name
        if name not in classes and name != "all":
            raise mistake("E212", f"no layer class `{name}`", written.span, nearest(name, [*classes, "all"]))
        layers = classes[name].layers if name != "all" else tuple(range(frame.layer_count))
        if any(i in result for i in layers):
            raise mistake("E271", f"`{name}` gives a second value to {layers_text(layers)}", written.span)
        result |= dict.fromkeys(layers, _json(value, known))
    missing = tuple(i for i in range(frame.layer_count) if i not in result)
    if missing and all(c.layers for c in frame.classes):
        raise mistake("E271", f"no value for {layers_text(missing)}", each.span)
    return [result.get(i) for i in range(frame.layer_count)]
