"""One row of the node table in one group of layers: constants, weights, wires and the closed formulas."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from specc import syntax as s
from specc import syntax_spec as m
from specc.diagnostics import Collector, Diagnostic, SpecError
from specc.formula_text import dims_text
from specc.instantiate import instantiate
from specc.ir import Application, BoundOp, NodeVariant, Phase, Role, Weight, WireRead, WireWrite
from specc.limits import MAX_FORMULA
from specc.ops import Formula, FormulaTensor, Library, Load, Op, Size, Sort, TensorSig, walk
from specc.source import Span
from specc.typecheck.budget import AT_MOST, TOO_LARGE
from specc.typecheck.constants import Constants, check_constants, check_dims, check_params, check_requires
from specc.typecheck.known import Undefined, value_of
from specc.typecheck.measure import Meter
from specc.typecheck.shapes import Dims, Matcher, Operand, lead_names, rename, shape, width
from specc.typecheck.sizes import Group
from specc.typecheck.values import RUNTIME, attempt, mistake, number, table
from specc.typecheck.weights import check_weights
from specc.typecheck.wires import Wire, World, assign, check_sort, phase_reads, read_dims, read_of, weight_operands

NO_OUTPUT = "_"
"""Written for a result that nobody wants."""


@dataclass(frozen=True)
class Site:
    """A row where one group of layers makes it mean something. `forms`: the row's op stands last."""

    row: m.Row
    forms: tuple[tuple[Phase, Op], ...]
    constants: Constants
    weights: tuple[Weight, ...]
    world: World
    group: Group
    library: Library

    @property
    def op(self) -> Op:
        return self.forms[-1][1]

    def shape(self, written: tuple[s.Expr, ...]) -> Dims:
        return shape(written, table(self.constants.names))


Bound = tuple[Application, dict[Phase, BoundOp]]


def forms_of(op: Op, library: Library) -> tuple[tuple[Phase, Op], ...]:
    """The forms of an op: prefill and decode, or one for both."""
    if op.prefill is None:
        return ((Phase.PREFILL, op),)
    return ((Phase.PREFILL, library.op(op.prefill)), (Phase.DECODE, op))


def bind_row(
    row: m.Row, op: Op, library: Library, group: Group, world: World, checkpoint: m.Checkpoint | None,
    report: Collector,
) -> tuple[NodeVariant | None, dict[str, Wire]]:  # fmt: skip
    """The variant that `row` is in `group`, None where it has mistakes, and the wires that it writes."""
    forms = forms_of(op, library)
    constants = check_constants(row, tuple(o for _, o in reversed(forms)), group.names, report)
    if len(forms) > 1 and "B" not in group.names:
        report.error("E221", f"`{op.name}` has a decode form, `B` has no domain", row.op.span, "give `B in [1, …]`")
        return None, _declared(row, constants)
    weights, tiled = check_weights(row, constants.names, checkpoint, report)
    written = _declared(row, constants)
    right = _check_uses(row, report)
    if not constants.complete or not right or len(weights) < len(row.weights):
        return None, written
    site = Site(row, forms, constants, weights, world, group, library)
    bound = [b for a in row.applies if (b := attempt(report, _apply, a, site)) is not None]
    for application, forms_bound in bound:
        written |= wires_of(row.path, application, forms_bound[Phase.PREFILL])
    if len(bound) < len(row.applies) or not tiled or not _check_weight_use(site, bound, report):
        return None, written
    return _variant(site, bound), written


def _variant(site: Site, bound: list[Bound]) -> NodeVariant:
    row = site.row
    inside = row.layers.name != "-"
    phases = tuple((phase, tuple(forms[phase] for _, forms in bound)) for phase, _ in site.forms)
    return NodeVariant(
        row.path, site.op, site.group.layers if inside else None, row.layers.name if inside else None,
        site.constants.shown, tuple(a for a, _ in bound), phases, site.weights, 0, row.span,
    )  # fmt: skip


def _check_uses(row: m.Row, report: Collector) -> bool:
    """Whether the uses of the op have labels that differ, and each writes something (E204, E237)."""
    found: list[Diagnostic] = []
    labels: set[str] = set()
    if not row.applies:
        found.append(Diagnostic("E237", f"`{row.path}` has no wires", row.span, "write `input -> output`"))
    for apply in row.applies:
        if apply.label is None and len(row.applies) > 1:
            found.append(Diagnostic("E237", "each use of the op takes a label here", apply.span, "write `label: …`"))
        elif apply.label is not None and apply.label in labels:
            found.append(Diagnostic("E204", f"label `{apply.label}` is given twice", apply.span))
        if all(o.wire == NO_OUTPUT for o in apply.outs):
            message = f"`{row.path}` drops all that it computes here"
            found.append(Diagnostic("E237", message, apply.outs[0].span, "name a result, or leave this use out"))
        labels.add(apply.label or "")
    for d in found:
        report.error(d.code, d.message, d.span, d.help)
    return not found


def _declared(row: m.Row, constants: Constants) -> dict[str, Wire]:
    """The wires a row writes, with the shapes that stand there, for rows that read them though this one is wrong."""
    found: dict[str, Wire] = {}
    for out in (o for a in row.applies for o in a.outs if o.wire != NO_OUTPUT):
        dims = None if out.dims is None else attempt(Collector(), shape, out.dims, table(constants.names))
        found[out.wire] = Wire(out.wire, dims, None, row.path)
    return found


def wires_of(path: str, application: Application, bound: BoundOp) -> dict[str, Wire]:
    """The wires that one use of node `path` writes; `bound` is its form that takes T tokens."""
    sorts = {t.name: t.sort for t in bound.formula.outputs}
    written = [(w.operand, *view) for w in application.writes for view in w.views]
    return {name: Wire(name, dims, sorts[operand], path) for operand, name, dims in written}


def real_wires(node: NodeVariant) -> list[str]:
    """The wires of `node` that a profile can give a type: those that hold real numbers."""
    found = [wires_of(node.path, *use) for use in zip(node.applications, node.phase(Phase.PREFILL), strict=True)]
    return [name for wires in found for name, wire in wires.items() if wire.sort is Sort.REAL]


def _check_weight_use(site: Site, bound: list[Bound], report: Collector) -> bool:
    """Whether an operand takes each weight of the row (E264)."""
    used = {name for a, _ in bound for _, name in a.weights}
    for weight in site.row.weights:
        if weight.name not in used:
            message = f"no operand of `{site.op.name}` takes weight `{weight.name}`"
            report.error("E264", message, weight.span, f"write `with operand={weight.name}` after the wires")
    return used >= {w.name for w in site.row.weights}


def _apply(apply: m.Apply, site: Site) -> Bound:
    """One use of the op, closed in each phase. Raises SpecError, an empty one where a wire it reads is in
    error."""
    weights = weight_operands(apply, site.row, site.op)
    args = assign(apply, site.op, weights)
    wired = {t.name: read_of(t.name, args[t.name], site.world) for t in site.op.inputs if t.name in args}
    if len(site.forms) == 1:
        _check_stateless(apply, wired.values(), site)
    for name, arg in args.items():
        _check_annotation(arg, wired[name], site)
    check_params(site.op, site.constants.of(site.op), site.row)
    bound = {}
    for phase, op in site.forms:
        reads = phase_reads(op, phase, wired, weights, site.world, site.row)
        bound[phase] = _close(op, phase, reads, weights, args, site)
    writes = _cut(bound[Phase.PREFILL].formula, apply, site)
    if Phase.DECODE in bound:
        _check_decode(bound, writes, site)
    for phase in bound:
        bound[phase] = _with_state_roles(bound[phase], writes, site)
    return Application(apply.label, tuple(wired.values()), writes, tuple(weights.items())), bound


def _check_stateless(apply: m.Apply, reads: Iterable[WireRead], site: Site) -> None:
    """Raises SpecError (E256) where an op without a decode form uses a state, which then is one of each sequence."""
    used = [r.state for r in reads if r.state is not None] + [o.wire for o in apply.outs if o.wire in site.world.states]
    if used:
        others = [op.name for op in site.library.ops if op.prefill == site.op.name]
        help_ = f"did you mean `{others[0]}`?" if len(others) == 1 else "give an op with a `prefill` line"
        message = f"`{site.op.name}` has no decode form, and `{site.row.path}` uses state `{used[0]}`"
        raise mistake("E256", message, site.row.op.span, help_)


def _check_annotation(arg: m.Arg, read: WireRead, site: Site) -> None:
    """Raises SpecError (E240) where a wire has not the shape that is written at its name."""
    dims = site.world.states[arg.wire] if arg.wire in site.world.states else site.world.wires[arg.wire].dims
    if arg.dims is None or dims is None:
        return
    any_lead = bool(arg.dims) and isinstance(arg.dims[0], s.Dots)
    wanted = site.shape(arg.dims[1:] if any_lead else arg.dims)
    if dims[len(dims) - len(wanted) :] != wanted or (len(dims) != len(wanted) and not any_lead):
        text = dims_text(wanted) if not any_lead else "[.., " + dims_text(wanted)[1:]
        raise mistake("E240", f"`{arg.wire}` is {dims_text(dims)}, not {text}", arg.place)


def _close(
    op: Op,
    phase: Phase,
    reads: Mapping[str, WireRead],
    weights: Mapping[str, str],
    args: Mapping[str, m.Arg],
    site: Site,
) -> BoundOp:
    matcher = Matcher(op, site.constants.of(op))
    shapes = {w.name: w.shape for w in site.weights}
    for sig in op.inputs:
        if sig.name in weights:
            name = weights[sig.name]
            span = next(w.span for w in site.row.weights if w.name == name)
            check_sort(sig, Sort.REAL, f"weight `{name}`", op, span)
            matcher.match(sig, Operand(f"weight `{name}`", tuple(number(n) for n in shapes[name]), span))
        elif sig.name in reads:
            operand = _operand(reads[sig.name], phase, args.get(sig.name), site)
            _check_read_sort(sig, reads[sig.name], operand, op, site)
            matcher.match(sig, operand)
    check_params(op, matcher.values, site.row)
    check_dims(op, matcher.values, site.row)
    check_requires(op, matcher.values, site.row, final=True)
    lead = matcher.lead or ()
    given = tuple(t.name for t in op.inputs if t.optional and (t.name in weights or t.name in reads))
    formula = instantiate(op, matcher.values, tuple(zip(lead_names(op, lead), lead, strict=True)), given)
    if Meter().formula(formula).nodes > MAX_FORMULA:
        message = f"the formula of `{site.row.path}` {TOO_LARGE}"
        raise mistake("E323", message, site.row.op.span, AT_MOST)
    _check_formula(formula, given, site)
    roles = tuple((t.name, _role(t, weights, reads)) for t in (*formula.inputs, *formula.outputs))
    return BoundOp(op, formula, roles, tuple(reads.values()))


def _operand(read: WireRead, phase: Phase, arg: m.Arg | None, site: Site) -> Operand:
    dims = read_dims(read, phase, site.world, len(site.forms) > 1)
    if dims is None:
        raise SpecError([])
    span = site.row.op.span if arg is None else arg.place
    if read.state is not None:
        what = f"`{read.state}` in {phase}"
        if read.appends:
            _check_append(read, site, span)
        return Operand(what, dims, arg.state.span if arg is not None and arg.state is not None else span)
    origin = site.world.wires[read.wire].origin
    return Operand(f"`{read.wire}`", dims, span, f"`{read.wire}` is written by `{origin}`" if origin else "")


def _check_read_sort(sig: TensorSig, read: WireRead, operand: Operand, op: Op, site: Site) -> None:
    """Raises SpecError (E242) where a wire or state is of another sort than the operand that it feeds."""
    if read.state is None:
        help_ = operand.origin
        if sig.sort is Sort.INDEX and read.wire in site.world.inputs:
            help_ = f"declare `{read.wire}[…]: index` under `inputs`"
        check_sort(sig, site.world.wires[read.wire].sort, operand.what, op, operand.span, help_)
        return
    check_sort(sig, Sort.REAL, f"state `{read.state}`", op, operand.span)
    if read.appends and site.world.wires[read.wire].sort is Sort.INDEX:
        message = f"`{read.wire}` holds integers, state `{read.state}` real numbers"
        raise mistake("E242", message, operand.span)


def _check_append(read: WireRead, site: Site, span: Span) -> None:
    """Raises SpecError (E256) where the wire is no run of T entries of the state."""
    assert read.state is not None
    state, wire = site.world.states[read.state], site.world.wires[read.wire].dims
    if not state or state[0] != Size("S"):
        raise mistake("E256", f"`{read.state}` has no axis S to append to", span, "read it by its name alone")
    if wire is None:
        raise SpecError([])
    if wire != (Size("T"), *state[1:]):
        message = f"`{read.wire}` is {dims_text(wire)}, an entry of `{read.state}` is {dims_text(state[1:])}"
        raise mistake("E256", message, span)


def _role(t: FormulaTensor, weights: Mapping[str, str], reads: Mapping[str, WireRead]) -> Role:
    if t.sort is Sort.INDEX:
        return Role.INDEX
    if t.name in weights:
        return Role.WEIGHT
    return Role.CACHE if t.name in reads and reads[t.name].state is not None else Role.ACTIVATION


def _check_formula(formula: Formula, given: tuple[str, ...], site: Site) -> None:
    """Raises SpecError where the constants make the formula need what is not given, or skip what is (E239), or leave a
    part of it without a value (E203)."""
    trees = [*(q.expr for q in formula.equations), *(e for r in formula.recs for e in (r.init, r.step))]
    try:
        for tree in [*trees, *(d for t in formula.outputs for d in t.dims)]:
            value_of(tree)
    except Undefined as error:
        message = f"`{site.row.path}`: with these constants `{formula.op}` has no value: {error}"
        raise mistake("E203", message, site.row.op.span) from None
    nodes = [n for tree in trees for n in walk(tree)]
    loads = {n.tensor for n in nodes if isinstance(n, Load)}
    inputs = [t.name for t in formula.inputs]
    sizes = [n.name for n in nodes if isinstance(n, Size) and n.name not in (*RUNTIME, "L")]
    span = site.row.op.span
    for name in sorted(loads - set(inputs)) + sorted(set(sizes)):
        raise mistake("E239", f"`{site.row.path}`: with these constants `{formula.op}` needs `{name}`", span)
    for name in given:
        if name not in loads:
            raise mistake("E239", f"`{site.row.path}`: with these constants `{formula.op}` never reads `{name}`", span)


def _cut(formula: Formula, apply: m.Apply, site: Site) -> tuple[WireWrite, ...]:
    """The wires cut from the results. Raises SpecError (E237, E240, E241)."""
    results = formula.outputs
    if len(results) == 1:
        groups = [apply.outs]
    elif len(results) == len(apply.results):
        groups = [r.outs if isinstance(r, m.Cut) else (r,) for r in apply.results]
    else:
        message = f"`{formula.op}` has {len(results)} results, {len(apply.results)} are written"
        raise mistake("E237", message, apply.outs[0].span, f"write `{NO_OUTPUT}` for a result that is not wanted")
    return tuple(
        WireWrite(t.name, _views(t, outs, site))
        for t, outs in zip(results, groups, strict=True)
        if outs[0].wire != NO_OUTPUT
    )


def _views(t: FormulaTensor, outs: tuple[m.Out, ...], site: Site) -> tuple[tuple[str, Dims], ...]:
    states = site.world.states
    if t.sort is Sort.INDEX and outs[0].wire in states:
        message = f"`{outs[0].wire}` is a state, which holds real numbers, its new value integers"
        raise mistake("E242", message, outs[0].span)
    if len(outs) == 1 and outs[0].dims is None:
        kept = states.get(outs[0].wire, t.dims)
        if kept is None:
            raise SpecError([])
        if t.dims != kept:
            message = f"`{outs[0].wire}` is {dims_text(kept)}, its new value {dims_text(t.dims)}"
            raise mistake("E256", message, outs[0].span)
        return ((outs[0].wire, t.dims),)
    lead, views, widths = t.dims[:-1], [], []
    for out in outs:
        if out.wire == NO_OUTPUT or out.wire in states:
            raise mistake("E237", f"`{out.wire}` takes a whole result", out.span)
        if out.dims is None:
            raise mistake("E241", f"what is the shape of `{out.wire}`?", out.span, f"write `{out.wire}[…]`")
        dims = site.shape(out.dims)
        size = width(dims[len(lead) :])
        if dims[: len(lead)] != lead or len(dims) == len(lead) or size is None:
            message = f"`{out.wire}` is {dims_text(dims)}, cut from {t.name}{dims_text(t.dims)}"
            raise mistake("E240", message, out.span)
        views.append((out.wire, dims))
        widths.append(size)
    if number(sum(widths)) != t.dims[-1]:
        raise _contradiction(t, widths, outs, site)
    return tuple(views)


def _contradiction(t: FormulaTensor, widths: list[int], outs: tuple[m.Out, ...], site: Site) -> SpecError:
    sig = next(o for _, op in site.forms for o in op.outputs if o.name == t.name)
    last = sig.dims[-1]
    name = last.name if isinstance(last, Size) else ""
    constant = next((c for c in site.row.constants if c.name == name), None)
    total = " + ".join(str(w) for w in widths) + (f" = {sum(widths)}" if len(widths) > 1 else "")
    said = f"{name} = {dims_text(t.dims[-1:])[1:-1]}" if constant else f"{t.name}{dims_text(t.dims)}"
    wires = ", ".join(f"`{o.wire}`" for o in outs)
    span = constant.span if constant else outs[0].span
    return mistake("E241", f"{said} contradicts what is cut from it: {wires} take {total} columns", span)


def _check_decode(bound: Mapping[Phase, BoundOp], writes: tuple[WireWrite, ...], site: Site) -> None:
    """Raises SpecError (E240) where the result for one token of each of B sequences is not that for T tokens."""
    states = {w.operand for w in writes if w.views[0][0] in site.world.states}
    decode = bound[Phase.DECODE].formula
    for many, one in zip(bound[Phase.PREFILL].formula.outputs, decode.outputs, strict=True):
        wanted = (Size("B"), *many.dims) if many.name in states else rename(many.dims, {"T": "B"})
        if one.dims != wanted:
            message = f"`{decode.op}` gives {one.name}{dims_text(one.dims)}, its prefill form {dims_text(many.dims)}"
            raise mistake("E240", message, site.row.op.span, f"{one.name}{dims_text(wanted)} is wanted")


def _with_state_roles(bound: BoundOp, writes: tuple[WireWrite, ...], site: Site) -> BoundOp:
    """Results that replace a state are stored as it is."""
    states = {w.operand for w in writes if w.views[0][0] in site.world.states}
    roles = tuple((n, Role.CACHE if n in states else r) for n, r in bound.roles)
    return BoundOp(bound.op, bound.formula, roles, bound.reads)


def kept_in(node: NodeVariant, kept: Collection[str]) -> NodeVariant:
    """`node` with the role of an accumulator for each operand and result that is one of the wires and states `kept`."""
    if not kept:
        return node
    bound = tuple(
        (phase, tuple(_kept(b, a, kept) for b, a in zip(forms, node.applications, strict=True)))
        for phase, forms in node.bound
    )
    return replace(node, bound=bound)


def _kept(bound: BoundOp, application: Application, kept: Collection[str]) -> BoundOp:
    names = {r.operand for r in bound.reads if (r.state or r.wire) in kept}
    names |= {w.operand for w in application.writes if all(wire in kept for wire, _ in w.views)}
    return replace(bound, roles=tuple((n, Role.ACCUMULATOR if n in names else r) for n, r in bound.roles))
