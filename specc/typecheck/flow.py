"""Who writes and who reads each wire: order of evaluation, and everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from specc import syntax_spec as m
from specc.diagnostics import Collector, nearest
from specc.near import closest
from specc.source import Span
from specc.typecheck.rows import NO_OUTPUT
from specc.typecheck.sizes import Group, layers_text

Rows = tuple[m.Row, ...]


@dataclass(frozen=True)
class Flow:
    """Rows in an order of evaluation: before the layers, in each group of layers, after the layers."""

    before: Rows
    inside: tuple[Rows, ...]
    after: Rows


def stands_in(row: m.Row, group: Group) -> bool:
    return row.layers.name == "all" or row.layers.name in group.classes


def check_flow(spec: m.SpecFile, groups: tuple[Group, ...], report: Collector) -> Flow:
    """Orders the rows of `spec`; mistakes go to `report` (E234, E250 to E255)."""
    checker = _Checker(spec, groups, report)
    clean = checker.names()
    checker.duplicates()
    classes = [c.name for c in spec.layers.classes]
    placed = all(any(c in g.classes for g in groups) for c in classes)
    if clean and placed and all(r.layers.name in ("-", "all", *classes) for r in spec.nodes.rows):
        checker.reads()
        checker.unread()
    ordered = tuple(checker.order(rows) for rows in checker.inside)
    return Flow(checker.order(checker.before), ordered, checker.order(checker.after))


@dataclass
class _Places:
    """Layers in which the same mistake was found at one place."""

    span: Span
    layers: list[int] = field(default_factory=list)


class _Checker:
    def __init__(self, spec: m.SpecFile, groups: tuple[Group, ...], report: Collector) -> None:
        self.spec, self.groups, self.report = spec, groups, report
        self.states = {d.tensor.name for d in spec.states.items} if spec.states else set()
        self.inputs = {d.tensor.name for d in spec.inputs.items} if spec.inputs else set()
        self.stream = spec.stream.tensor.name
        rows = spec.nodes.rows
        self.idle = {o.wire for r in rows for o in self.outs(r)} - self._read(rows)
        self.meant: set[str] = set()
        self.inside = tuple(tuple(r for r in rows if r.layers.name != "-" and stands_in(r, g)) for g in groups)
        outside = tuple(r for r in rows if r.layers.name == "-")
        late = self._late(outside)
        self.before = tuple(r for r in outside if r.path not in late)
        self.after = tuple(r for r in outside if r.path in late)

    def _read(self, rows: Rows) -> set[str]:
        """The wires that something reads."""
        ends = (self.spec.stream.first, self.spec.stream.next, *self.spec.output.names)
        return {a.wire for r in rows for a in self.args(r)} | {name.name for name in ends}

    def _late(self, outside: Rows) -> set[str]:
        """Paths of the rows that need the stream as the last layer leaves it."""
        wires, late = {self.stream}, set[str]()
        for _ in outside:
            for row in outside:
                if row.path not in late and any(a.wire in wires for a in self.args(row)):
                    late.add(row.path)
                    wires |= {o.wire for o in self.outs(row)}
        return late

    def args(self, row: m.Row) -> Iterator[m.Arg]:
        """The arguments that read a wire."""
        return (a for apply in row.applies for a in apply.args if a.wire not in self.states)

    def outs(self, row: m.Row) -> Iterator[m.Out]:
        """The results that are wires."""
        return (o for a in row.applies for o in a.outs if o.wire != NO_OUTPUT and o.wire not in self.states)

    def written(self, rows: Iterable[m.Row]) -> dict[str, m.Row]:
        taken = {*self.inputs, self.stream}
        return {o.wire: row for row in rows for o in self.outs(row) if o.wire not in taken}

    def names(self) -> bool:
        """E254: a name is written once, and is not the name of something else. Gives whether this is so."""
        before = len(self.report.found)
        taken = dict.fromkeys(self.inputs, "an input") | dict.fromkeys(self.states, "a state")
        if self.stream in taken:
            self.report.error("E254", f"`{self.stream}` is {taken[self.stream]} already", self.spec.stream.tensor.span)
        taken[self.stream] = "the stream"
        outside = (*self.before, *self.after)
        outer = self.written(outside)
        for rows in (outside, *self.inside):
            seen: dict[str, m.Row] = {}
            for row, out in ((r, o) for r in rows for o in self.outs(r)):
                if out.wire in taken:
                    self.report.error("E254", f"`{out.wire}` is {taken[out.wire]}", out.span, "choose another name")
                elif out.wire in seen and (seen[out.wire] is row or seen[out.wire].path != row.path):
                    other = f"`{seen[out.wire].path}`" if seen[out.wire] is not row else "the same row"
                    self.report.error("E254", f"`{out.wire}` is written by {other} too", out.span)
                elif rows is not outside and out.wire in outer:
                    self.report.error("E254", f"`{out.wire}` is written outside the layers too", out.span)
                seen[out.wire] = row
        return len(self.report.found) == before

    def duplicates(self) -> None:
        """E234: one variant of a node in a layer."""
        found: dict[int, _Places] = {}
        paths: dict[int, str] = {}
        for rows, layers in (
            (self.before + self.after, (-1,)),
            *zip(self.inside, (g.layers for g in self.groups), strict=True),
        ):
            seen: set[str] = set()
            for row in rows:
                if row.path in seen:
                    found.setdefault(id(row), _Places(row.span)).layers.extend(layers)
                    paths[id(row)] = row.path
                seen.add(row.path)
        for key, place in found.items():
            where = "outside the layers" if place.layers == [-1] else f"in {layers_text(tuple(sorted(place.layers)))}"
            self.report.error(
                "E234", f"a second `{paths[key]}` {where}", place.span, "one variant of a node in a layer"
            )

    def reads(self) -> None:
        """E250, E251, E255: what is read was written."""
        before, after = self.written(self.before), self.written(self.after)
        everywhere = self.written(r for rows in self.inside for r in rows)
        for row, arg in ((r, a) for r in (*self.before, *self.after) for a in self.args(r)):
            known = {**before, **after}
            if arg.wire not in known and arg.wire not in self.inputs and arg.wire != self.stream:
                self._outside(arg.wire, row.path, arg.place, known, everywhere)
        missing: dict[int, tuple[_Places, str, str]] = {}
        for rows, group in zip(self.inside, self.groups, strict=True):
            here = self.written(rows)
            for row, arg in ((r, a) for r in rows for a in self.args(r)):
                wire = arg.wire
                if wire not in here and wire not in before and wire not in self.inputs and wire != self.stream:
                    missing.setdefault(id(arg), (_Places(arg.place), wire, row.path))[0].layers.extend(group.layers)
        for place, wire, reader in missing.values():
            self._missing(wire, reader, place, everywhere, (*before, *everywhere, *self.inputs, self.stream))
        self._next(everywhere)
        self._ends(before, {**before, **after}, everywhere)

    def _next(self, everywhere: Mapping[str, m.Row]) -> None:
        """What the stream becomes is a wire of each layer."""
        name = self.spec.stream.next
        pairs = zip(self.inside, self.groups, strict=True)
        layers = [i for rows, group in pairs if name.name not in self.written(rows) for i in group.layers]
        if layers:
            self._missing(name.name, "stream", _Places(name.span, layers), everywhere, everywhere)

    def _ends(self, before: Mapping[str, m.Row], outside: Mapping[str, m.Row], everywhere: Mapping[str, m.Row]) -> None:
        first = self.spec.stream.first
        if first.name in everywhere:
            message = f"`{first.name}` is a wire of the layers, the stream begins before them"
            self.report.error("E255", message, first.span, f"`{everywhere[first.name].path}` stands in the layers")
        elif first.name not in before:
            self._unwritten(first.name, "stream", first.span, before)
        for name in self.spec.output.names:
            if name.name not in outside and name.name != self.stream:
                self._outside(name.name, "output", name.span, (*outside, self.stream), everywhere)

    def _outside(
        self, wire: str, reader: str, span: Span, known: Iterable[str], everywhere: Mapping[str, m.Row]
    ) -> None:
        """A wire is read outside of the layers that nothing writes there."""
        if wire in everywhere:
            help_ = f"only the stream `{self.stream}` leaves the layers"
            self.report.error("E255", f"`{wire}` is a wire of the layers, `{reader}` stands outside", span, help_)
        else:
            self._unwritten(wire, reader, span, known)

    def _unwritten(self, wire: str, reader: str, span: Span, known: Iterable[str]) -> None:
        what = "no row writes" if wire in self.inputs or wire == self.stream else "nothing writes"
        if wire in self.written(self.before):
            what = "no row of the layers writes"
        known = tuple(known)
        idle = self.idle.intersection(known)
        meant = closest(wire, idle)
        self.meant |= {meant} if meant else set()
        help_ = nearest(wire, idle if meant else known)
        self.report.error("E250", f"`{reader}` reads `{wire}`, which {what}", span, help_)

    def _missing(
        self,
        wire: str,
        reader: str,
        place: _Places,
        everywhere: Mapping[str, m.Row],
        known: Iterable[str],
    ) -> None:
        layers = layers_text(tuple(sorted(place.layers)))
        if wire not in everywhere:
            self._unwritten(wire, reader, place.span, known)
        else:
            writer = everywhere[wire].path
            message = f"`{reader}` reads `{wire}`, which nothing writes in {layers}"
            self.report.error("E251", message, place.span, f"`{writer}` has no variant for these layers")

    def unread(self) -> None:
        """E253: what is written is read, or was meant where something else is read."""
        outside = {a.wire for r in (*self.before, *self.after) for a in self.args(r)}
        outside |= {self.spec.stream.first.name} | {n.name for n in self.spec.output.names} | self.meant
        inside = [{a.wire for r in rows for a in self.args(r)} | {self.spec.stream.next.name} for rows in self.inside]
        late = self.written(self.after)
        whole = self.spec.stream.first.name in self.written(self.before)
        for row, out in ((r, o) for r in (*(self.before if whole else ()), *self.after) for o in self.outs(r)):
            if out.wire not in outside and (out.wire in late or not any(out.wire in wires for wires in inside)):
                help_ = f"{_unread_help(row, out)}, or name it under `output`"
                self.report.error("E253", f"nothing reads `{out.wire}`", out.span, help_)
        found: dict[int, tuple[_Places, str, str]] = {}
        for rows, read, group in zip(self.inside, inside, self.groups, strict=True):
            for row, out in ((r, o) for r in rows for o in self.outs(r) if o.wire not in read | outside):
                unread = _Places(out.span), out.wire, _unread_help(row, out)
                found.setdefault(id(out), unread)[0].layers.extend(group.layers)
        for place, wire, help_ in found.values():
            where = layers_text(tuple(sorted(place.layers)))
            self.report.error("E253", f"nothing reads `{wire}` in {where}", place.span, help_)

    def order(self, rows: Rows) -> Rows:
        """`rows` so that each stands after those it reads from; a cycle is reported (E252) and cut."""
        writers = self.written(rows)
        done: list[m.Row] = []
        active: list[m.Row] = []

        def visit(row: m.Row) -> None:
            if any(r is row for r in done):
                return
            active.append(row)
            for arg in self.args(row):
                writer = writers.get(arg.wire)
                if writer is not None and any(r is writer for r in active):
                    start = next(i for i, r in enumerate(active) if r is writer)
                    self._cycle(active[start:], arg)
                elif writer is not None:
                    visit(writer)
            active.pop()
            done.append(row)

        for row in rows:
            visit(row)
        return tuple(done)

    def _cycle(self, rows: list[m.Row], arg: m.Arg) -> None:
        path = " -> ".join(f"`{r.path}`" for r in [*rows[1:], *rows[:1]]) if len(rows) > 1 else f"`{rows[0].path}`"
        help_ = f"through {path}" if len(rows) > 1 else ""
        self.report.error(
            "E252", f"`{rows[-1].path}` reads `{arg.wire}`, which depends on its own result", arg.place, help_
        )


def _unread_help(row: m.Row, out: m.Out) -> str:
    apply = next(a for a in row.applies if any(o is out for o in a.outs))
    if len(apply.results) > 1 and out.dims is None:
        return f"write `{NO_OUTPUT}` for a result that is not wanted"
    return "read it, or leave out what writes it"
