"""What surrounds the nodes of a Model Spec: the rounding profile and the published configuration."""

from __future__ import annotations

from specc import syntax as s
from specc import syntax_spec as m
from specc.diagnostics import Collector, nearest
from specc.ir import LayerClass, Profile, Role
from specc.ops import Library, Named, Num, walk
from specc.typecheck.sizes import Frame, layers_text
from specc.typecheck.values import Meanings, attempt, evaluate, mistake, table

TYPES = ("bfloat16", "float16", "float32", "float64")
ACCUMULATOR = "float32"
"""What kernels compute in."""
STORED = (Role.WEIGHT, Role.ACTIVATION, Role.CACHE, Role.ACCUMULATOR)
"""Roles that a profile gives a type; an index is an integer."""
WORDS: dict[str, object] = {"True": True, "False": False, "None": None}


def check_profile(profile: m.Profile, library: Library, report: Collector) -> Profile:
    """The rounding profile; mistakes go to `report` (E270)."""
    types: dict[Role, str] = {}
    for line in profile.storage:
        role = attempt(report, _role, line.role, line)
        if line.type not in TYPES:
            report.error("E270", f"unknown type `{line.type}`", line.span, nearest(line.type, TYPES))
        elif role is not None and role in types:
            report.error("E204", f"the type of `{role}` is given twice", line.span)
        elif role is Role.ACCUMULATOR and line.type != ACCUMULATOR:
            message = f"the accumulator is {ACCUMULATOR}, the only type that is supported, not {line.type}"
            report.error("E270", message, line.span, f"write `{role} {ACCUMULATOR}`")
            types[role] = ACCUMULATOR
        elif role is not None:
            types[role] = line.type
    for role in STORED:
        if role not in types:
            report.error("E270", f"the profile gives no type for `{role}`", profile.span)
    rounds = []
    for r in profile.rounds:
        found = attempt(report, _round, r, library)
        if found is not None:
            rounds.append(found)
    return Profile(tuple(types.items()), tuple(rounds))


def _role(name: str, node: s.Node) -> Role:
    names = [str(r) for r in STORED]
    if name not in names:
        raise mistake("E270", f"unknown role `{name}`", node.span, nearest(name, names))
    return Role(name)


def _round(r: m.Round, library: Library) -> tuple[str, str, Role]:
    role = _role(r.role, r)
    if r.target == "softmax":
        return "softmax", "", role
    name, _, part = r.target.partition(".")
    ops = {o.name: o for o in library.ops}
    if name not in ops:
        raise mistake("E270", f"unknown op `{name}`", r.span, nearest(name, [*ops, "softmax"]))
    op = ops[name]
    lets = [n.name for q in op.equations for n in walk(q.expr) if isinstance(n, Named)]
    known = list(dict.fromkeys([p.name for p in op.params if p.kind == "real"] + lets))
    if part not in known:
        raise mistake("E270", f"`{name}` has no constant or `let` named `{part}`", r.span, nearest(part, known))
    return name, part, role


def check_config(config: m.Config | None, frame: Frame, report: Collector) -> tuple[tuple[str, object], ...]:
    """The published configuration as JSON values by dotted key; mistakes go to `report` (E271)."""
    found: dict[str, object] = {}
    for entry in config.entries if config else ():
        inside = next((k for k in found if entry.key.startswith(f"{k}.") or k.startswith(f"{entry.key}.")), None)
        if entry.key in found or inside is not None:
            report.error(
                "E204",
                f"`{entry.key}` is given twice",
                entry.span,
                f"`{inside}` stands already" if inside else "",
            )
            continue
        names = frame.outside.names
        found[entry.key] = attempt(report, _json, entry.value, names, frame)
    return tuple(found.items())


def _json(value: m.Value, names: Meanings, frame: Frame) -> object:
    match value:
        case m.Text():
            return value.value
        case m.ListValue():
            return [_json(v, names, frame) for v in value.items]
        case m.Each():
            return _each(value, names, frame)
        case s.Name(_, name) if name in WORDS:
            return WORDS[name]
    number = evaluate(value, table(names))
    if not isinstance(number, Num):
        raise mistake("E271", "expected a number with an exact value, a text, or a list", value.span)
    return int(number.value) if number.value.denominator == 1 else float(number.value)


def _each(each: m.Each, names: Meanings, frame: Frame) -> list[object]:
    classes: dict[str, LayerClass] = {c.name: c for c in frame.classes}
    result: dict[int, object] = {}
    for name, value in each.choices:
        if name not in classes and name != "all":
            raise mistake("E212", f"no layer class `{name}`", each.span, nearest(name, [*classes, "all"]))
        layers = classes[name].layers if name != "all" else tuple(range(frame.layer_count))
        if any(i in result for i in layers):
            raise mistake("E271", f"`{name}` gives a second value to {layers_text(layers)}", each.span)
        result |= dict.fromkeys(layers, _json(value, names, frame))
    missing = tuple(i for i in range(frame.layer_count) if i not in result)
    if missing and all(c.layers for c in frame.classes):
        raise mistake("E271", f"no value for {layers_text(missing)}", each.span)
    return [result.get(i) for i in range(frame.layer_count)]
