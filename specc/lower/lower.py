"""Closed formulas to kernels; nodes and models to all their kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from specc.ir import BoundOp, Model, NodeVariant, Phase, Role
from specc.kernels import (
    Access,
    Attention,
    Contraction,
    Kernel,
    Operand,
    Pointwise,
    RowReduction,
    Schedule,
    Store,
)
from specc.lower.access import axis_names
from specc.lower.attention import attention
from specc.lower.contraction import contraction
from specc.lower.draft import Fit, NoFit
from specc.lower.pointwise import pointwise
from specc.lower.reassemble import reassemble
from specc.lower.row_reduction import row_reduction
from specc.ops import Expr, Formula, FormulaTensor, Num, Size, Sort
from specc.passes import Rounds, run_passes
from specc.passes.expand import inline_all

SCHEDULES: tuple[tuple[str, Callable[[Formula], Fit]], ...] = (
    ("pointwise", pointwise),
    ("attention", attention),
    ("contraction", contraction),
    ("row reduction", row_reduction),
)
"""Tried in this order; the first that fits is taken."""

INT32_MAX = 2**31 - 1


class NoSchedule(Exception):
    """No schedule takes the formula; `reasons` says why, per schedule."""

    def __init__(self, op: str, reasons: tuple[tuple[str, str], ...]) -> None:
        self.op, self.reasons = op, reasons
        super().__init__(f"no schedule fits `{op}`: " + "; ".join(f"{s}: {why}" for s, why in reasons))


@dataclass(frozen=True)
class Setting:
    """What lowering knows beside the formula. `pitch`: elements between neighbouring rows of an operand that is a view
    of a wider buffer; `domain`: largest values of run-time sizes."""

    name: str
    phase: str = Phase.PREFILL
    keys: tuple[str, ...] = ()
    roles: Mapping[str, Role] | None = None
    rounds: Rounds = ()
    domain: Mapping[str, int] | None = None
    pitch: Mapping[str, int] | None = None


def match(formula: Formula) -> Fit:
    """The first schedule that takes a formula after the passes. Raises NoSchedule."""
    if formula.recs:
        raise NoSchedule(formula.op, (("all", "it is a recurrence, and no schedule takes recurrences yet"),))
    reasons: list[tuple[str, str]] = []
    for name, fit in SCHEDULES:
        try:
            return fit(formula)
        except NoFit as no:
            reasons.append((name, str(no)))
    raise NoSchedule(formula.op, tuple(reasons))


def lower_formula(formula: Formula, setting: Setting) -> Kernel:
    """Raises NoSchedule."""
    ready = run_passes(formula, setting.rounds)
    fit = match(ready)
    lowered = inline_all(reassemble(ready, fit.schedule, fit.tables))
    operands = tuple(_operand(t, fit.schedule, setting, output=False) for t in formula.inputs)
    operands += tuple(_operand(t, fit.schedule, setting, output=True) for t in formula.outputs)
    used = {a.operand for a in accesses(fit.schedule)}
    operands = tuple(o for o in operands if o.output or o.name in used)
    sizes = dict.fromkeys(d.name for o in operands for d in o.dims if isinstance(d, Size))
    return Kernel(
        setting.name,
        formula.op,
        setting.phase,
        setting.keys,
        formula,
        lowered,
        fit.schedule,
        operands,
        fit.tables,
        tuple(sizes),
        fit.reason,
    )


def accesses(schedule: Schedule) -> tuple[Access, ...]:
    """All reads of a schedule."""
    match schedule:
        case Pointwise(row_loads=rows, strips=strips):
            return (*rows, *(a for s in strips for a in s.loads))
        case RowReduction(row_loads=rows, loads=loads, vectors=vectors):
            return (*rows, *loads, *vectors)
        case Contraction(a_loads=a, b_loads=b, loads=loads):
            return (*a, *b, *loads)
        case Attention(q=q, k=k, v=v, row_loads=rows):
            return (q, k, v, *rows)


def stores(schedule: Schedule) -> tuple[Store, ...]:
    """All writes of a schedule."""
    match schedule:
        case Pointwise(strips=strips):
            return tuple(s for strip in strips for s in strip.stores)
        case RowReduction(stores=written):
            return written
        case Contraction(store=store) | Attention(store=store):
            return (store,)


def _operand(t: FormulaTensor, schedule: Schedule, setting: Setting, output: bool) -> Operand:
    role = (setting.roles or {}).get(t.name, Role.INDEX if t.sort is Sort.INDEX else Role.ACTIVATION)
    where = [s.indices for s in stores(schedule) if s.operand == t.name] if output else []
    where += [a.indices for a in accesses(schedule) if a.operand == t.name]
    axes = axis_names(where, len(t.dims)) if where else tuple(f"d{n}" for n in range(len(t.dims)))
    return Operand(t.name, t.dims, role, axes, t.sort, output, _wide(t, setting))


def _wide(t: FormulaTensor, setting: Setting) -> bool:
    """Whether the last element lies past 2**31 - 1 at the largest sizes of the domain."""
    domain = setting.domain or {}
    sizes = [int(d.value) if isinstance(d, Num) else domain.get(_size_name(d), 1) for d in t.dims]
    pitch = (setting.pitch or {}).get(t.name)
    total = 1
    for s in sizes:
        total *= s
    if pitch is not None and sizes:
        total = max(total, (sizes[0] - 1) * pitch + total // max(sizes[0], 1))
    return total - 1 > INT32_MAX


def _size_name(d: Expr) -> str:
    return d.name if isinstance(d, Size) else ""


def domain_of(model: Model) -> dict[str, int]:
    """Largest run-time sizes; a prefill sees at most as many keys as positions are cached."""
    largest = {d.name: d.high for d in model.domain}
    return {"L": largest.get("S", largest.get("T", 1)), **largest}


def lower_node(model: Model, node: NodeVariant) -> tuple[Kernel, ...]:
    """The kernels of one node: one a phase, shared by its applications. Raises NoSchedule."""
    found: list[Kernel] = []
    for phase, bound in node.bound:
        name = node.variant_name if len(node.bound) == 1 else f"{node.variant_name}_{phase}"
        shared, extents = _generalise(tuple(b.formula for b in bound))
        setting = _setting(model, node, name, phase, bound)
        found.append(lower_formula(shared, replace(setting, domain={**domain_of(model), **extents})))
    return tuple(found)


def _setting(model: Model, node: NodeVariant, name: str, phase: Phase, bound: tuple[BoundOp, ...]) -> Setting:
    key = f"{model.key}@{model.version}:{'' if node.layers is None else 'layers[*].'}{node.path}"
    rounds = tuple((op, what, str(role)) for op, what, role in model.profile.rounds)
    return Setting(name, phase, (key,), dict(bound[0].roles), rounds, None, _pitches(model, node))


def _pitches(model: Model, node: NodeVariant) -> dict[str, int]:
    """Row pitch of every operand that some application reads from a view of a fused buffer."""
    widths = {
        wire: sum(_row_size(dims) for _, dims in write.views)
        for other in model.nodes
        for application in other.applications
        for write in application.writes
        if len(write.views) > 1
        for wire, _ in write.views
    }
    reads = [r for a in node.applications for r in a.reads if r.state is None]
    return {r.operand: widths[r.wire] for r in reads if r.wire in widths}


def _row_size(dims: tuple[Expr, ...]) -> int:
    size = 1
    for d in dims[1:]:
        size *= int(d.value) if isinstance(d, Num) else 1
    return size


def _generalise(formulas: tuple[Formula, ...]) -> tuple[Formula, dict[str, int]]:
    """One formula for applications that differ in the extent of an axis only: that extent becomes a run-time size,
    `rows_1` and so on, whose largest values are returned as well."""
    first, *others = formulas
    largest: dict[str, int] = {}
    if all(f == first for f in others):
        return first, largest
    names: dict[tuple[Expr, ...], str] = {}

    def merge(*dims: Expr) -> Expr:
        if all(d == dims[0] for d in dims):
            return dims[0]
        name = names.setdefault(dims, f"rows_{len(names) + 1}")
        largest[name] = max(int(d.value) for d in dims if isinstance(d, Num))
        return Size(name)

    def tensor(*ts: FormulaTensor) -> FormulaTensor:
        return replace(ts[0], dims=tuple(merge(*d) for d in zip(*(t.dims for t in ts), strict=True)))

    inputs = tuple(tensor(*ts) for ts in zip(*(f.inputs for f in formulas), strict=True))
    equations = tuple(
        replace(qs[0], tensor=tensor(*(q.tensor for q in qs)))
        for qs in zip(*(f.equations for f in formulas), strict=True)
    )
    return replace(first, inputs=inputs, equations=equations), largest


def lower_model(model: Model) -> tuple[Kernel, ...]:
    """All kernels of a model, in the order of its page. Raises NoSchedule."""
    return tuple(k for node in model.nodes for k in lower_node(model, node))
