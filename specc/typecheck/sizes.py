"""Named sizes, the shape domain, and the layers of a Model Spec."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from specc import syntax as s
from specc import syntax_spec as m
from specc.diagnostics import Collector, SpecError, nearest
from specc.format_expr import format_expr
from specc.ir import Domain, LayerClass
from specc.limits import MAX_CLASS_WORK, MAX_DEPTH, MAX_GROUPS, MAX_LAYERS, MAX_SIZE
from specc.ops import Expr, Num, Size
from specc.typecheck.measure import height, operations
from specc.typecheck.values import (
    RUNTIME,
    Meanings,
    Sizes,
    attempt,
    condition,
    evaluate,
    mistake,
    natural,
    number,
    table,
)

RESERVED = ("L", "i", "layers", "π", "pi", "True", "False", "None")


@dataclass(frozen=True)
class Group:
    """Layers on which the same layer classes hold, and what names mean there; no layers: outside of them."""

    classes: tuple[str, ...]
    layers: tuple[int, ...]
    names: Meanings = field(compare=False)

    def __str__(self) -> str:
        return layers_text(self.layers)


@dataclass(frozen=True)
class Frame:
    """Everything that is said before the first node."""

    domain: tuple[Domain, ...]
    page: int
    sizes: tuple[tuple[str, Fraction], ...]
    layer_count: int
    classes: tuple[LayerClass, ...]
    groups: tuple[Group, ...]
    outside: Group


def layers_text(layers: tuple[int, ...]) -> str:
    """`layer 5`, `layers 5, 11, …, 59`."""
    if len(layers) == 1:
        return f"layer {layers[0]}"
    shown = [str(x) for x in layers] if len(layers) < 5 else [str(layers[0]), str(layers[1]), "…", str(layers[-1])]
    return "layers " + ", ".join(shown)


class Names:
    """Sizes by name, evaluated when first asked for, so that they may refer to each other."""

    def __init__(self, spec: m.SpecFile, report: Collector) -> None:
        self.report = report
        self.written: dict[str, m.Size] = {}
        self.done: dict[str, Expr | None] = {r.name: Size(r.name) for r in spec.domain.ranges if r.name in RUNTIME}
        self.active: list[str] = []
        self.depth = 0
        count = m.Size(spec.layers.count.span, (), "layers", spec.layers.count)
        self._add("layers", count)
        for size in spec.sizes.sizes if spec.sizes else ():
            self._declare(size, "")
        for cls in spec.layers.classes:
            for size in cls.sizes:
                self._declare(size, f"{cls.name}.")

    def _declare(self, size: m.Size, prefix: str) -> None:
        if size.name in RESERVED or size.name in RUNTIME:
            self.report.error("E204", f"`{size.name}` has a meaning of its own", size.span, "choose another name")
        elif prefix and size.name in self.written:
            self.report.error("E204", f"`{size.name}` is a size of all layers already", size.span)
        else:
            self._add(prefix + size.name, size)

    def _add(self, key: str, size: m.Size) -> None:
        if key in self.written:
            first = self.written[key].span
            self.report.error("E204", f"size `{key}` is given twice", size.span, f"first at {first!r}")
        else:
            self.written[key] = size

    def value(self, key: str) -> Expr | None:
        """The value of a size, or None where it has a mistake, which is then reported."""
        if key not in self.done:
            self.active.append(key)
            self.depth += height(self.written[key].value)
            self.done[key] = attempt(self.report, self._evaluate, key)
            self.depth -= height(self.written[key].value)
            self.active.pop()
        return self.done[key]

    def _evaluate(self, key: str) -> Expr:
        size = self.written[key]
        if self.depth > MAX_DEPTH:
            message = f"size `{key}`, written out with the sizes that lead to it, is nested too deeply"
            raise mistake("E107", message, size.span, f"at most {MAX_DEPTH} levels")
        prefix = key.rsplit(".", 1)[0] + "." if "." in key else ""
        value = evaluate(size.value, lambda name: self._find(name, prefix))
        if not isinstance(value, Num):
            raise mistake("E202", f"size `{key}` has no exact value", size.value.span, "write it where it is used")
        if value.value > MAX_SIZE:
            raise mistake("E206", f"size `{key}` is too large", size.value.span, f"at most {MAX_SIZE}")
        return value

    def _find(self, name: s.Name, prefix: str) -> Expr:
        key = prefix + name.name if prefix + name.name in self.written else name.name
        if key in self.active:
            raise mistake("E205", f"size `{key}` is defined by itself", name.span)
        if key not in self.written:
            runtime = {k: v for k, v in self.done.items() if isinstance(v, Size)}
            return table(runtime | dict.fromkeys(self.written, number(1)))(name)
        value = self.value(key)
        if value is None:
            raise SpecError([])
        return value

    def all(self) -> Sizes:
        """Every name, in the order of the text."""
        found = Sizes(self.done | {key: self.value(key) for key in self.written})
        for key, size in self.written.items():
            value = found[key]
            if value is not None and key != "layers":
                found.define(key, value, size.span)
        return found


def check_frame(spec: m.SpecFile, report: Collector) -> Frame:
    """Sizes, domain and layers; mistakes go to `report`."""
    domain, page = _domain(spec, report)
    names = Names(spec, report)
    known = names.all()
    counted = _layer_count(spec.layers, known, report)
    classes = _classes(spec.layers, counted, known, report)
    count = counted or 1
    sizes = tuple(
        (x.name, v.value) for x in (spec.sizes.sizes if spec.sizes else ()) if isinstance(v := known.get(x.name), Num)
    )
    return Frame(
        domain,
        page,
        sizes,
        count,
        classes,
        _groups(count, classes, known, spec, report),
        Group((), (), known),
    )


def _domain(spec: m.SpecFile, report: Collector) -> tuple[tuple[Domain, ...], int]:
    found: dict[str, Domain] = {}
    for r in spec.domain.ranges:
        if r.name not in RUNTIME:
            report.error("E221", f"`{r.name}` is no run-time size", r.span, nearest(r.name, RUNTIME))
        elif r.name in found:
            report.error("E204", f"the range of `{r.name}` is given twice", r.span)
        else:
            found[r.name] = attempt(report, _range, r) or Domain(r.name, 1, 1, r.unit)
    page = spec.domain.page
    size = attempt(report, natural, page.value, _nameless, "the page size") if page else 1
    return tuple(found.values()), size or 1


def _nameless(name: s.Name) -> Expr:
    raise mistake("E201", f"`{name.name}` means nothing here", name.span, "ranges and the page size are numbers")


def _range(r: m.Range) -> Domain:
    low = natural(r.low, _nameless, f"the least `{r.name}`", least=0)
    high = natural(r.high, _nameless, f"the greatest `{r.name}`", least=0)
    if low > high:
        raise mistake("E220", f"the domain of `{r.name}` is empty: {low} > {high}", r.span)
    return Domain(r.name, low, high, r.unit)


def _layer_count(layers: m.Layers, known: Meanings, report: Collector) -> int | None:
    """The number of layers, None where it has a mistake."""
    if known["layers"] is None:
        return None
    count = attempt(report, natural, layers.count, table(known), "the number of layers")
    if count is not None and count > MAX_LAYERS:
        report.error("E210", f"{count} layers", layers.count.span, f"at most {MAX_LAYERS}")
        return MAX_LAYERS
    return count


def _classes(layers: m.Layers, counted: int | None, known: Meanings, report: Collector) -> tuple[LayerClass, ...]:
    found: dict[str, LayerClass] = {}
    count = counted or 1
    work = count * sum(operations(cls.where) for cls in layers.classes)
    if work > MAX_CLASS_WORK:
        message = (
            f"the layer classes take {work} operations to tell: those of all predicates, for each of {count} layers"
        )
        raise mistake("E210", message, layers.span, f"at most {MAX_CLASS_WORK}")
    for cls in layers.classes:
        if cls.name in found or cls.name == "all":
            report.error("E204", f"layer class `{cls.name}` is given twice", cls.span)
            continue
        members = attempt(report, _members, cls, count, known)
        if members == () and counted is not None:
            report.error("E211", f"no layer is `{cls.name}`", cls.where.span, f"there are layers 0 to {count - 1}")
        sizes = tuple((x.name, known.get(f"{cls.name}.{x.name}")) for x in cls.sizes)
        exact = tuple((n, v.value) for n, v in sizes if isinstance(v, Num))
        found[cls.name] = LayerClass(cls.name, cls.label, format_expr(cls.where), members or (), exact)
    return tuple(found.values())


def _members(cls: m.LayerClass, count: int, known: Meanings) -> tuple[int, ...]:
    names = dict(known)
    lookup = table(names)
    found = []
    for i in range(count):
        names["i"] = number(i)
        if condition(cls.where, lookup):
            found.append(i)
    return tuple(found)


def _groups(
    count: int,
    classes: tuple[LayerClass, ...],
    known: Sizes,
    spec: m.SpecFile,
    report: Collector,
) -> tuple[Group, ...]:
    sets = [frozenset(c.layers) for c in classes]
    members: dict[tuple[int, ...], list[int]] = {}
    for i in range(count):
        members.setdefault(tuple(n for n, layers in enumerate(sets) if i in layers), []).append(i)
    if len(members) > MAX_GROUPS:
        message = f"the layer classes overlap in {len(members)} ways"
        raise mistake("E210", message, spec.layers.span, f"at most {MAX_GROUPS}")
    groups = []
    for numbers, layers in members.items():
        held = [classes[n] for n in numbers]
        names = Sizes(known)
        for cls in held:
            _take(names, cls, known, tuple(layers), spec, report)
        groups.append(Group(tuple(c.name for c in held), tuple(layers), names))
    return tuple(groups)


def _take(
    names: Sizes,
    cls: LayerClass,
    known: Sizes,
    layers: tuple[int, ...],
    spec: m.SpecFile,
    report: Collector,
) -> None:
    for name, value in cls.sizes:
        if name not in known and names.get(name, number(value)) != number(value):
            span = next(c.span for c in spec.layers.classes if c.name == cls.name)
            others = "let only one of the classes of these layers give it"
            report.error("E213", f"`{name}` has two values in {layers_text(layers)}", span, others)
            names[name] = None
        else:
            names[name] = known[f"{cls.name}.{name}"]
            found = known.definition(f"{cls.name}.{name}")
            if found is not None:
                names.define(name, *found)
