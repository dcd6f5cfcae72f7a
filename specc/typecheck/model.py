"""From a Model Spec as written to a typed model. Every mistake is reported, all of them together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from specc import syntax as s
from specc import syntax_spec as m
from specc.diagnostics import Collector, Diagnostic, SpecError, Stop, nearest
from specc.formula_text import dims_text, expr_text
from specc.ir import Model, NodeVariant, Profile, StateDecl, Stream
from specc.limits import MAX_BINDINGS, MAX_MODEL, MAX_ROWS
from specc.ops import FormulaTensor, Library, Op, Sort
from specc.typecheck.flow import Flow, check_flow, stands_in
from specc.typecheck.measure import Meter
from specc.typecheck.node_names import check_node_names
from specc.typecheck.rows import bind_row, kept_in, real_wires
from specc.typecheck.shapes import Dims, shape
from specc.typecheck.sizes import Frame, Group, check_frame
from specc.typecheck.states import check_outside, check_states
from specc.typecheck.surroundings import check_config, check_profile
from specc.typecheck.values import attempt, mistake, table
from specc.typecheck.weights import Taken, check_tied, check_tiling, take, tied_nodes
from specc.typecheck.wires import Wire, World


def check_model(spec: m.SpecFile, library: Library, missing: SpecError | None = None) -> Model:
    """The typed model that `spec` describes. Raises SpecError with all mistakes that can be seen at once. `missing`:
    why ops that the spec may use are not in `library`; it is raised with the mistakes that can be seen without them."""
    report = Collector()
    try:
        if missing is not None:
            report.take(missing)
        if len(spec.nodes.rows) > MAX_ROWS:
            raise mistake("E210", f"{len(spec.nodes.rows)} rows", spec.nodes.span, f"at most {MAX_ROWS}")
        model = _Builder(spec, library, check_frame(spec, report), report, missing is None).build()
    except SpecError as error:
        report.take(error)
        raise SpecError(report.found) from error
    report.finish()
    return model


class _Builder:
    def __init__(self, spec: m.SpecFile, library: Library, frame: Frame, report: Collector, whole: bool) -> None:
        self.spec, self.library, self.frame, self.report, self.whole = spec, library, frame, report, whole
        self.ops = {o.name: o for o in library.ops}
        self.variants: dict[int, NodeVariant] = {}
        self.state_dims: dict[str, dict[str, Dims]] = {}
        self.failed: set[int] = set()
        self.shapeless: set[str] = set()
        self.size, self.meter = 0, Meter()

    def build(self) -> Model:
        self._check_cells()
        check_node_names(self.spec.nodes, self.ops, self.report)
        inputs = self._inputs()
        self._check_named()
        self._check_count()
        flow = check_flow(self.spec, self.frame.groups, self.report)
        declared = list(dict.fromkeys(d.tensor.name for d in self.spec.states.items)) if self.spec.states else []
        self.failed |= check_outside(flow.before + flow.after, declared, self.report)
        outer = {t.name: Wire(t.name, self._known(t.name, t.dims), t.sort) for t in inputs}
        outer |= self._bind(flow.before, self.frame.outside, outer, -1)
        stream = self._stream(outer)
        inside = outer | {stream.name: Wire(stream.name, self._known(stream.name, stream.dims), origin="stream")}
        for group, rows in zip(self.frame.groups, flow.inside, strict=True):
            check_states(rows, declared, self.report)
            written = self._bind(rows, group, inside, 0)
            self._check_stream(self.spec.stream.next.name, written, stream, group)
        self._bind(flow.after, self.frame.outside, inside, 1)
        nodes = tuple(self.variants[id(r)] for r in self.spec.nodes.rows if id(r) in self.variants)
        self._check_tied(nodes)
        self._check_pieces(flow)
        wires = {w for n in nodes for w in real_wires(n)}
        profile = check_profile(self._profile(), self.library, wires | set(self.state_dims), self.report)
        nodes = tuple(kept_in(n, profile.kept) for n in nodes)
        failed = [r.path for r in self.spec.nodes.rows if id(r) in self.failed]
        config = check_config(self.spec.config, self.frame, nodes, failed, self.report)
        if not self.report.found:
            self._check_unused()
        return self._model(nodes, inputs, stream, profile, config)

    def _model(
        self,
        nodes: tuple[NodeVariant, ...],
        inputs: tuple[FormulaTensor, ...],
        stream: Stream,
        profile: Profile,
        config: tuple[tuple[str, object], ...],
    ) -> Model:
        spec, frame = self.spec, self.frame
        return Model(
            key=spec.model.key,
            version=spec.model.version,
            official_class=spec.official.text if spec.official else "",
            about=spec.about.text if spec.about else "",
            domain=frame.domain,
            page=frame.page,
            sizes=frame.sizes,
            layer_count=frame.layer_count,
            classes=frame.classes,
            inputs=inputs,
            stream=stream,
            outputs=tuple(n.name for n in spec.output.names),
            states=tuple(StateDecl(n, tuple(dims.items())) for n, dims in self.state_dims.items()),
            nodes=nodes,
            profile=profile,
            config=config,
            library=self.library,
            path=Path(spec.span.source.name),
        )

    def _check_cells(self) -> None:
        """E230, E212, E262: every row names an op and a set of layers that exist, and layers have tensors of their
        own."""
        inside = next((r for r in self.spec.nodes.rows if r.layers.name != "-" and r.weights), None)
        checkpoint = self.spec.checkpoint
        help_ = 'write `checkpoint "…" layers "….{i}."`'
        if checkpoint is not None and "{i}" in checkpoint.prefix:
            self.report.error("E262", "outside of the layers there is no `{i}`", checkpoint.span, help_)
        elif inside is not None and "{i}" not in ((checkpoint.layers if checkpoint else None) or ""):
            span = checkpoint.span if checkpoint else inside.span
            self.report.error("E262", "each layer would have the same tensors", span, help_)
        classes = [c.name for c in self.frame.classes]
        for row in self.spec.nodes.rows:
            if self.whole and row.op.name not in self.ops:
                self.report.error("E230", f"unknown op `{row.op.name}`", row.op.span, nearest(row.op.name, self.ops))
            if row.layers.name not in ("-", "all", *classes):
                help_ = nearest(row.layers.name, ["-", "all", *classes])
                self.report.error("E212", f"no layer class `{row.layers.name}`", row.layers.span, help_)

    def _inputs(self) -> tuple[FormulaTensor, ...]:
        found: dict[str, FormulaTensor] = {}
        for d in self.spec.inputs.items if self.spec.inputs else ():
            if d.tensor.name in found:
                self.report.error("E204", f"input `{d.tensor.name}` is declared twice", d.span)
                continue
            sort = Sort.INDEX if d.tensor.index else Sort.REAL
            found[d.tensor.name] = FormulaTensor(d.tensor.name, self._shape(d.tensor), sort)
        return tuple(found.values())

    def _shape(self, tensor: s.Tensor) -> Dims:
        """The dims of an input or the stream; none for one with a mistake, which is noted as shapeless."""
        dims = attempt(self.report, shape, tensor.dims, table(self.frame.outside.names))
        if dims is None:
            self.shapeless.add(tensor.name)
        return dims or ()

    def _known(self, name: str, dims: Dims) -> Dims | None:
        return None if name in self.shapeless else dims

    def _check_named(self) -> None:
        """E204: a state has a name of its own, and an output is named once."""
        inputs = {d.tensor.name for d in self.spec.inputs.items} if self.spec.inputs else set()
        states: set[str] = set()
        for d in self.spec.states.items if self.spec.states else ():
            if d.tensor.name in inputs:
                self.report.error("E204", f"`{d.tensor.name}` is an input already", d.span)
            elif d.tensor.name in states:
                self.report.error("E204", f"state `{d.tensor.name}` is declared twice", d.span)
            states.add(d.tensor.name)
        outputs: set[str] = set()
        for name in self.spec.output.names:
            if name.name in outputs:
                self.report.error("E204", f"output `{name.name}` is given twice", name.span)
            outputs.add(name.name)

    def _stream(self, outer: dict[str, Wire]) -> Stream:
        written = self.spec.stream
        name = written.tensor.name
        dims = self._shape(written.tensor)
        first = outer.get(written.first.name)
        inputs = self.spec.inputs.items if self.spec.inputs else ()
        an_input = any(d.tensor.name == written.first.name for d in inputs)
        if first is not None and not an_input and first.dims is not None and dims and first.dims != dims:
            message = f"`{first.name}` is {dims_text(first.dims)}, the stream `{name}` is {dims_text(dims)}"
            self.report.error("E240", message, written.first.span)
        self._check_real(first, written.first)
        return Stream(name, dims, written.first.name, written.next.name)

    def _check_stream(self, name: str, written: dict[str, Wire], stream: Stream, group: Group) -> None:
        wire = written.get(name)
        if wire is not None and wire.dims is not None and stream.dims and wire.dims != stream.dims:
            message = f"`{name}` is {dims_text(wire.dims)} in {group}, the stream is {dims_text(stream.dims)}"
            self.report.error("E240", message, self.spec.stream.next.span)
        self._check_real(wire, self.spec.stream.next)

    def _check_real(self, wire: Wire | None, name: s.Name) -> None:
        """E242: the stream is no tensor of integers."""
        if wire is not None and wire.origin and wire.sort is Sort.INDEX:
            help_ = f"`{wire.name}` is written by `{wire.origin}`"
            self.report.error("E242", f"`{wire.name}` holds integers, the stream real numbers", name.span, help_)

    def _bind(self, rows: tuple[m.Row, ...], group: Group, known: dict[str, Wire], side: int) -> dict[str, Wire]:
        """Binds rows in order; gives the wires that they write."""
        wires, written = dict(known), dict[str, Wire]()
        states = self._states(rows, group)
        inputs = tuple(d.tensor.name for d in self.spec.inputs.items) if self.spec.inputs else ()
        for row in rows:
            for arg in (a for apply in row.applies for a in apply.args):
                wires.setdefault(arg.wire, Wire(arg.wire, None, None))
            op = None if id(row) in self.failed and side else self.ops.get(row.op.name)
            new = self._bind_row(row, op, group, World(wires, states, inputs), side)
            written |= new
            wires |= new
        return written

    def _bind_row(self, row: m.Row, op: Op | None, group: Group, world: World, side: int) -> dict[str, Wire]:
        if op is None:
            self.failed.add(id(row))
            return {o.wire: Wire(o.wire, None, None) for a in row.applies for o in a.outs}
        variant, written = bind_row(row, op, self.library, group, world, self.spec.checkpoint, self.report)
        if variant is None:
            self.failed.add(id(row))
            return written
        layers = tuple(sorted(i for g in self.frame.groups if stands_in(row, g) for i in g.layers))
        self._count_nodes(variant)
        variant = replace(variant, layers=layers if side == 0 else None, outside_order=side)
        other = self.variants.setdefault(id(row), variant)
        if other != variant:
            self._differs(row, other, variant, group)
        for apply in row.applies:
            for name in [a.state.name if a.state else a.wire for a in apply.args] + [o.wire for o in apply.outs]:
                if (dims := world.states.get(name)) is not None:
                    self.state_dims.setdefault(name, {})[row.layers.name] = dims
        return written

    def _check_count(self) -> None:
        bindings = sum(stands_in(row, group) for row in self.spec.nodes.rows for group in self.frame.groups)
        if bindings > MAX_BINDINGS:
            message = f"the rows stand in {bindings} kinds of layers, all rows together"
            raise Stop([Diagnostic("E210", message, self.spec.nodes.span, f"at most {MAX_BINDINGS}")])

    def _count_nodes(self, variant: NodeVariant) -> None:
        self.size += sum(self.meter.formula(b.formula).nodes for _, forms in variant.bound for b in forms)
        if self.size > MAX_MODEL:
            help_ = f"at most {MAX_MODEL} operations and names, counted in each kind of layers"
            raise Stop([Diagnostic("E323", "the formulas of all nodes together are too large", variant.span, help_)])

    def _differs(self, row: m.Row, first: NodeVariant, second: NodeVariant, group: Group) -> None:
        pairs = zip(first.constants, second.constants, strict=False)
        names = [f"`{a}` is {_shown(x)} and {_shown(y)}" for (a, x), (_, y) in pairs if x != y]
        what = ", ".join(names) or "its shapes differ"
        message = f"`{row.path}` differs between its layers ({group}): {what}"
        self.report.error("E235", message, row.layers.span, "write one row for each layer class")

    def _states(self, rows: tuple[m.Row, ...], group: Group) -> dict[str, Dims | None]:
        """Dims of the states in `group`, None for one with a mistake; only those that `rows` use must have a value."""
        args = {a.state.name if a.state else a.wire for r in rows for x in r.applies for a in x.args}
        used = args | {o.wire for r in rows for x in r.applies for o in x.outs}
        found: dict[str, Dims | None] = {}
        for d in self.spec.states.items if self.spec.states else ():
            report = self.report if d.tensor.name in used and group.layers else Collector()
            dims = attempt(report, shape, d.tensor.dims, table(group.names))
            found[d.tensor.name] = None if d.tensor.name in found else dims
        return found

    def _profile(self) -> m.Profile:
        """The profile, without lines about ops that are missing."""
        written = self.spec.profile
        known = ("softmax", *self.ops)
        rounds = tuple(r for r in written.rounds if self.whole or r.target.name.partition(".")[0] in known)
        return replace(written, rounds=rounds)

    def _check_tied(self, nodes: tuple[NodeVariant, ...]) -> None:
        known = {(n.path, w.name): w.shape for n in nodes if n.layers is None for w in n.weights if w.tied is None}
        inside = {n.path for n in nodes if n.layers is not None}
        for row in self.spec.nodes.rows:
            variant = self.variants.get(id(row))
            if variant is None:
                continue
            default = next((p.default for p in variant.op.params if p.name == "tied"), None)
            if any(id(r) in self.failed for r in self.spec.nodes.rows if r.path in tied_nodes(row)):
                continue
            if self.report.found and not inside.isdisjoint(tied_nodes(row)):
                continue
            value = dict(variant.constants).get("tied", default)
            flag = value if isinstance(value, bool) else None
            attempt(self.report, check_tied, row, variant.weights, flag, known)

    def _check_pieces(self, flow: Flow) -> None:
        if self.failed:
            return
        for rows in (flow.before + flow.after, *flow.inside):
            taken: Taken = {}
            for row in rows:
                if id(row) in self.variants:
                    take(taken, self.variants[id(row)].weights, row)
            check_tiling(taken, self.report)

    def _check_unused(self) -> None:
        """E253, E256: inputs and states that no node reads."""
        bound = [b for v in self.variants.values() for _, phase in v.bound for b in phase]
        read = {r.wire for b in bound for r in b.reads}
        for d in self.spec.inputs.items if self.spec.inputs else ():
            if d.tensor.name not in read:
                self.report.error("E253", f"nothing reads input `{d.tensor.name}`", d.span)
        for d in self.spec.states.items if self.spec.states else ():
            if d.tensor.name not in self.state_dims:
                self.report.error("E256", f"no node uses state `{d.tensor.name}`", d.span)


def _shown(value: object) -> str:
    return str(value) if isinstance(value, str | bool) else expr_text(value)  # type: ignore[arg-type]
