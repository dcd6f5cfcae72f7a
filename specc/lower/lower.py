"""Closed formulas to kernels; nodes and models to all their kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod

from specc.formula_text import expr_text
from specc.ir import BoundOp, Model, NodeVariant, Phase, Role
from specc.kernels import (
    Access,
    Attention,
    Contraction,
    Kernel,
    Operand,
    Pointwise,
    Recurrent,
    RowReduction,
    Schedule,
    Store,
)
from specc.lower.access import axis_names
from specc.lower.applications import Apart, largest_sizes, pitches, shared_formula
from specc.lower.attention import attention
from specc.lower.contraction import contraction
from specc.lower.draft import Fit, NoFit
from specc.lower.extents import long_axis, long_range, many_across, many_rows
from specc.lower.pointwise import pointwise
from specc.lower.ranges import bounds_of
from specc.lower.reach import stray_read
from specc.lower.reassemble import reassemble
from specc.lower.recurrence import recurrence
from specc.lower.row_reduction import row_reduction
from specc.ops import Bin, Expr, Formula, FormulaTensor, Load, Num, Size, Sort, walk
from specc.passes import Rounds, run_passes
from specc.passes.expand import inline_all
from specc.passes.powers import LONGEST, powers
from specc.passes.unroll import unroll_all
from specc.wellformed import Level, check

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
    of a wider buffer; `domain`: largest values of run-time sizes (one that is not there counts as 1)."""

    name: str
    phase: str = Phase.PREFILL
    keys: tuple[str, ...] = ()
    roles: Mapping[str, Role] | None = None
    rounds: Rounds = ()
    domain: Mapping[str, int] | None = None
    pitch: Mapping[str, int] | None = None


def match(formula: Formula) -> tuple[Formula, Fit]:
    """The first schedule that takes a formula after the passes, and what it was made of: the formula, or that with its
    short sums written out. Raises NoSchedule."""
    if formula.recs:
        try:
            return formula, recurrence(formula)
        except NoFit as no:
            raise NoSchedule(formula.op, (("recurrence", str(no)),)) from no
    if any(not q.indices for q in formula.equations):
        raise NoSchedule(formula.op, (("all", "its result is a single number, not an array"),))
    reasons: list[tuple[str, str]] = []
    for name, fit in SCHEDULES:
        try:
            return formula, fit(formula)
        except NoFit as no:
            reasons.append((name, str(no)))
    written_out = powers(unroll_all(formula))
    if written_out != formula:
        for _, fit in SCHEDULES:
            with suppress(NoFit):
                found = fit(written_out)
                return written_out, replace(found, reason=f"short sums written out; {found.reason}")
    raise NoSchedule(formula.op, tuple(reasons))


def lower_formula(formula: Formula, setting: Setting) -> Kernel:
    """Raises NoSchedule."""
    _refuse(formula, stray_read(formula) or long_axis(formula))
    ready = run_passes(formula, setting.rounds)
    _refuse(formula, long_range(ready))
    ready, fit = match(ready)
    _refuse(formula, many_rows(fit.schedule) or many_across(fit.schedule))
    lowered = inline_all(reassemble(ready, fit.schedule, fit.tables))
    check(lowered, Level.LOWERED)
    check_computable(lowered)
    if not {a.operand for a in accesses(fit.schedule)} & {t.name for t in formula.inputs}:
        why = "it reads no operand, so its result depends on none"
        raise NoSchedule(formula.op, (("all", why),))
    needed = _needed(formula, fit.schedule, lowered)
    inputs = [_operand(t, fit.schedule, setting, output=False) for t in formula.inputs if t.name in needed]
    outputs = [_operand(t, fit.schedule, setting, output=True) for t in formula.outputs]
    operands = (*inputs, *outputs)
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
        _sizes(operands, lowered),
        fit.reason,
    )


def _refuse(formula: Formula, why: str | None) -> None:
    """Raises NoSchedule where there is a reason that holds for every schedule."""
    if why is not None:
        raise NoSchedule(formula.op, (("all", why),))


def lower_parts(formula: Formula, setting: Setting) -> tuple[Kernel, ...]:
    """One kernel; where no schedule takes all results together, one for the results of each shape, named after the
    first of them. Raises NoSchedule."""
    try:
        return (lower_formula(formula, setting),)
    except NoSchedule:
        shapes = dict.fromkeys(t.dims for t in formula.outputs)
        if formula.recs or len(shapes) == 1:
            raise
    parts = [_part(formula, dims) for dims in shapes]
    return tuple(lower_formula(p, replace(setting, name=f"{setting.name}_{p.outputs[0].name}")) for p in parts)


def _part(formula: Formula, dims: tuple[Expr, ...]) -> Formula:
    """The results of one shape, with the operands that they read or whose sizes they need."""
    equations = tuple(q for q in formula.equations if q.tensor.dims == dims)
    exprs = [e for q in equations for e in (q.expr, *q.tensor.dims)]
    nodes = [n for e in exprs for n in walk(e)]
    needed = {n.tensor for n in nodes if isinstance(n, Load)}
    for size in dict.fromkeys(n for n in nodes if isinstance(n, Size)):
        having = [t.name for t in formula.inputs if size in t.dims]
        needed |= set(having[:1]) if not needed & set(having) else set()
    return replace(formula, equations=equations, inputs=tuple(t for t in formula.inputs if t.name in needed))


def _needed(formula: Formula, schedule: Schedule, lowered: Formula) -> set[str]:
    """Inputs that are read, and those that alone have a size that is used."""
    needed = {a.operand for a in accesses(schedule)}
    exprs = [q.expr for q in lowered.equations] + [d for t in formula.outputs for d in t.dims]
    sizes = [n for e in exprs for n in walk(e) if isinstance(n, Size)]
    for size in dict.fromkeys(sizes):
        having = [t.name for t in formula.inputs if size in t.dims]
        if having and not needed & set(having):
            needed.add(having[0])
    return needed


def _sizes(operands: tuple[Operand, ...], lowered: Formula) -> tuple[str, ...]:
    exprs = [d for o in operands for d in o.dims] + [q.expr for q in lowered.equations]
    return tuple(dict.fromkeys(n.name for e in exprs for n in walk(e) if isinstance(n, Size)))


def check_computable(lowered: Formula) -> None:
    """Raises NoSchedule for arithmetic that no target has."""
    exprs = [q.expr for q in lowered.equations] + [e for r in lowered.recs for e in (r.init, r.step)]
    for node in (n for e in exprs for n in walk(e) if isinstance(n, Bin)):
        if node.op == "^" and not _whole_power(node):
            why = f"no target has the power `{expr_text(node)}`; write it with √, or with exp and log"
            raise NoSchedule(lowered.op, (("all", why),))
        if node.op in ("//", "%") and isinstance(node.right, Num) and node.right.value == 0:
            raise NoSchedule(lowered.op, (("all", f"an index is divided by 0 in `{expr_text(node)}`"),))


def _whole_power(e: Bin) -> bool:
    return isinstance(e.right, Num) and e.right.value.denominator == 1 and 2 <= e.right.value <= LONGEST


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
        case Recurrent(first_loads=first, loads=loads):
            return (*first, *loads)


def stores(schedule: Schedule) -> tuple[Store, ...]:
    """All writes of a schedule."""
    match schedule:
        case Pointwise(strips=strips):
            return tuple(s for strip in strips for s in strip.stores)
        case RowReduction(stores=written):
            return written
        case Contraction(store=store) | Attention(store=store):
            return (store,)
        case Recurrent(readings=readings, last=last):
            return (*(r.store for r in readings), *((last,) if last is not None else ()))


def _operand(t: FormulaTensor, schedule: Schedule, setting: Setting, output: bool) -> Operand:
    role = (setting.roles or {}).get(t.name, Role.INDEX if t.sort is Sort.INDEX else Role.ACTIVATION)
    where = [s.indices for s in stores(schedule) if s.operand == t.name] if output else []
    where += [a.indices for a in accesses(schedule) if a.operand == t.name]
    axes = axis_names(where, len(t.dims)) if where else tuple(f"d{n}" for n in range(len(t.dims)))
    return Operand(t.name, t.dims, role, axes, t.sort, output, _wide(t, setting))


def _wide(t: FormulaTensor, setting: Setting) -> bool:
    """Whether the last element lies past 2**31 - 1 at the largest sizes of the domain."""
    ranges = {name: (0, high) for name, high in (setting.domain or {}).items()}
    found = [bounds_of(d, ranges) for d in t.dims]
    lengths = [1 if f is None else max(f[1], 0) for f in found]
    if not lengths or 0 in lengths:
        return False
    row = prod(lengths[1:])
    pitch = max(row, (setting.pitch or {}).get(t.name, row))
    return (lengths[0] - 1) * pitch + row - 1 > INT32_MAX


def lower_node(model: Model, node: NodeVariant) -> tuple[Kernel, ...]:
    """The kernels of one node: one a phase, shared by its applications, or more (see `lower_parts`). Raises
    NoSchedule."""
    found: list[Kernel] = []
    for phase, bound in node.bound:
        name = node.variant_name if len(node.bound) == 1 else f"{node.variant_name}_{phase}"
        try:
            formula, extents = shared_formula(bound)
        except Apart as apart:
            raise NoSchedule(node.op.name, (("all", f"{apart}; give `{node.path}` one row for each"),)) from apart
        found += lower_parts(formula, _setting(model, node, name, phase, bound, extents))
    return tuple(found)


def _setting(
    model: Model, node: NodeVariant, name: str, phase: Phase, bound: tuple[BoundOp, ...], extents: Mapping[str, int]
) -> Setting:
    key = f"{model.key}@{model.version}:{'' if node.layers is None else 'layers[*].'}{node.path}"
    rounds = tuple((op, what, str(role)) for op, what, role in model.profile.rounds)
    domain = {**largest_sizes(model), **extents}
    return Setting(name, phase, (key,), dict(bound[0].roles), rounds, domain, pitches(model, node))


def lower_model(model: Model) -> tuple[Kernel, ...]:
    """All kernels of a model, in the order of its page. Raises NoSchedule."""
    return tuple(k for node in model.nodes for k in lower_node(model, node))
