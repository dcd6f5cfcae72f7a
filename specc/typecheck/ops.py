"""From op libraries as written to typed ops. Every mistake is reported; none is repaired silently."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from specc import syntax as s
from specc.diagnostics import Collector, Diagnostic, SpecError, Stop, nearest
from specc.limits import MAX_FORMULA
from specc.ops import (
    ELEMENTARY,
    LEAD,
    Bin,
    Equation,
    Expr,
    Lead,
    Library,
    Load,
    Num,
    Op,
    ParamSig,
    Recurrence,
    Reduce,
    ScalarDef,
    Softmax,
    Sort,
    State,
    TensorSig,
    Var,
    walk,
)
from specc.typecheck.agreement import agrees
from specc.typecheck.budget import Budget
from specc.typecheck.expressions import (
    POISON,
    Scope,
    article,
    axes,
    claim,
    condition,
    elaborate,
    given_indices,
    number,
)
from specc.typecheck.literals import check_literals
from specc.typecheck.measure import Meter


def check_library(files: Sequence[s.OpsFile]) -> Library:
    """Types all items of all files together, so that order does not matter. Raises SpecError."""
    checker = _LibraryChecker(files)
    try:
        library = checker.run()
    except Stop as stop:
        checker.report.take(stop)
        raise SpecError(checker.report.found) from None
    checker.report.finish()
    return library


class _LibraryChecker:
    def __init__(self, files: Sequence[s.OpsFile]) -> None:
        self.report = Collector()
        self.defs: dict[str, s.Def] = {}
        self.ops: dict[str, s.Op] = {}
        self.done: dict[str, ScalarDef] = {}
        self.active: list[str] = []
        self.budget, self.meter = Budget(), Meter()
        self.warnings: list[Diagnostic] = []
        for item in (i for f in files for i in f.items):
            self._declare(item)

    def _declare(self, item: s.Def | s.Op) -> None:
        table: dict[str, s.Def] | dict[str, s.Op] = self.defs if isinstance(item, s.Def) else self.ops
        if item.name in table:
            first = table[item.name].span
            self.report.error("E320", f"`{item.name}` is defined twice", item.span, f"first defined at {first!r}")
        else:
            table[item.name] = item  # type: ignore[assignment]

    def run(self) -> Library:
        for name in self.defs:
            self.function(name)
        ops = [self._op(op) for op in self.ops.values()]
        defs = sorted(self.done.values(), key=lambda d: d.name)
        return Library(tuple(defs), tuple(sorted(ops, key=lambda o: o.name)), tuple(self.warnings))

    def _op(self, written: s.Op) -> Op:
        self.budget.here, self.budget.depth = MAX_FORMULA, 0
        check_literals(written, self.report)
        return check_op(written, self)

    def function(self, name: str) -> ScalarDef | None:
        """The typed scalar function, elaborated on first use."""
        if name in self.done:
            return self.done[name]
        if name not in self.defs:
            return None
        written = self.defs[name]
        if name in self.active:
            self.report.error("E309", f"`{name}` is defined by itself", written.span)
            return ScalarDef(name, _parameters(written), POISON, None, Sort.REAL)
        self.active.append(name)
        check_literals(written, self.report)
        outer, self.budget.here = (self.budget.here, self.budget.depth), MAX_FORMULA
        self.done[name] = self._check_def(written)
        self.budget.here, self.budget.depth = outer
        self.active.pop()
        return self.done[name]

    def scope(self) -> Scope:
        return Scope(self.report, self.function, lambda: tuple(self.defs), budget=self.budget)

    def _check_def(self, d: s.Def) -> ScalarDef:
        _unique(self.report, "parameter", [(p.name, p) for p in d.params])
        if d.name in (*ELEMENTARY, "given"):
            self.report.error("E320", f"`{d.name}` is built in", d.span, "take another name")
        for p in d.params:
            if p.kind not in ("nat", "real"):
                self.report.error("E310", "a parameter of a scalar function is real or nat", p.span)
            if p.default is not None or p.optional:
                self.report.error("E316", "a parameter of a scalar function is always given", p.span)
        params = _parameters(d)
        scope = replace(self.scope(), vars={p.name: p.sort for p in params})
        body = elaborate(d.body, scope)
        computed = None if d.computed is None else elaborate(d.computed, scope)
        if d.computed is not None and computed is not None and (body.sort is Sort.BOOL) != (computed.sort is Sort.BOOL):
            message = f"the two forms differ: {article(body.sort)} and {article(computed.sort)}"
            self.report.error("E310", message, d.computed.span)
        sort = Sort.REAL if body.sort is not Sort.BOOL else Sort.BOOL
        fn = ScalarDef(d.name, params, body, computed, sort, " ".join(d.comments), d.span)
        measure = self.meter.function(fn)
        self.budget.check(measure, d.span)
        if computed is not None:
            self.budget.nodes -= measure.nodes
        return self._agreed(fn, d)

    def _agreed(self, fn: ScalarDef, d: s.Def) -> ScalarDef:
        """Drops a `computed as` form that does not have the value of the definition: the definition is what counts."""
        if d.computed is None or self.report.found or agrees(fn):
            return fn
        message = f"`{d.name}` is not computed as its second form says: the two have different values"
        help_ = "targets use the definition until they agree"
        self.warnings.append(Diagnostic("W301", message, d.computed.span, help_))
        return replace(fn, computed=None)


def _parameters(d: s.Def) -> tuple[Var, ...]:
    return tuple(Var(p.name, Sort.INDEX if p.kind == "nat" else Sort.REAL) for p in d.params)


def _unique(report: Collector, what: str, named: Sequence[tuple[str, s.Node]]) -> None:
    seen: dict[str, s.Node] = {}
    for name, node in named:
        if name in seen:
            report.error("E320", f"{what} `{name}` is given twice", node.span)
        seen[name] = node


def check_op(op: s.Op, library: _LibraryChecker) -> Op:
    """Types one op; mistakes go to the library's report."""
    report, before = library.report, len(library.report.found)
    lets = [b for b in op.body if isinstance(b, s.Let)]
    recs = [b for b in op.body if isinstance(b, s.Rec)]
    scope = _op_scope(op, lets, recs, library)
    inputs = tuple(_tensor(t, replace(scope, lead=True)) for t in op.inputs)
    lead = any(isinstance(d, Lead) for t in inputs for d in t.dims)
    scope = replace(scope, lead=lead, tensors={t.name: t for t in inputs})
    outputs = {t.name: _tensor(t, scope) for t in op.outputs}
    loose = len(report.found) > before or len(_strays(op, outputs)) > len(_missing(op, outputs))
    scope = replace(scope, lets={b.name: b for b in reversed(lets)}, loose=loose)
    extents = {r.name: tuple(elaborate(n, scope) for _, n in r.indices) for r in recs}
    scope = replace(scope, recs=extents)
    typed = Op(
        op.name,
        inputs,
        tuple(_param(p, scope) for p in op.params),
        _equations(op, outputs, scope),
        tuple(_recurrence(r, extents[r.name], scope) for r in recs),
        tuple(_requirement(b, scope) for b in op.body if isinstance(b, s.Require)),
        _prefill(op, library),
        " ".join(op.comments),
        "",
        op.span,
    )
    for e in [q.expr for q in typed.equations] + [e for r in typed.recs for e in (r.init, r.step)]:
        library.budget.check(library.meter.of(e), op.span)
    for name, span in [(b.name, b.span) for b in lets] + [(r.name, r.span) for r in recs]:
        if name not in scope.used:
            scope.misfit("E322", f"`{name}` is never used", span, "use it or leave it out")
    return typed


def _op_scope(op: s.Op, lets: list[s.Let], recs: list[s.Rec], library: _LibraryChecker) -> Scope:
    """What the signature of `op` defines."""
    named: list[tuple[str, s.Node]] = [(t.name, t) for t in (*op.inputs, *op.outputs)]
    named += [(b.name, b) for b in lets] + [(r.name, r) for r in recs]
    _unique(library.report, "name", named)
    scope = replace(
        library.scope(),
        sizes=_sizes(op, library.report),
        labels=tuple(p.name for p in op.params if p.kind == "label"),
        optional=(*(t.name for t in op.inputs if t.optional), *(p.name for p in op.params if p.optional)),
    )
    for name, node in named:
        claim(name, node.span, scope)
    for let in lets:
        _unique(library.report, "index", [(f, let) for f in let.formals])
        for formal in let.formals:
            claim(formal, let.span, scope)
    return scope


def _sizes(op: s.Op, report: Collector) -> dict[str, Sort]:
    kinds = {"nat": Sort.INDEX, "real": Sort.REAL, "flag": Sort.BOOL}
    sizes = {p.name: kinds[p.kind] for p in op.params if p.kind in kinds}
    _unique(report, "constant", [(p.name, p) for p in op.params])
    for tensor in op.inputs:
        for dim in tensor.dims:
            if isinstance(dim, s.Name) and sizes.setdefault(dim.name, Sort.INDEX) is not Sort.INDEX:
                report.error(
                    "E315", f"`{dim.name}` is a dimension, so it is a nat", dim.span, f"write `{dim.name}: nat`"
                )
                sizes[dim.name] = Sort.INDEX
    return sizes


def _tensor(t: s.Tensor, scope: Scope) -> TensorSig:
    dims = tuple(_dim(d, place, scope) for place, d in enumerate(t.dims))
    return TensorSig(t.name, dims, Sort.INDEX if t.index else Sort.REAL, t.optional)


def _dim(d: s.Expr, place: int, scope: Scope) -> Expr:
    if isinstance(d, s.Dots):
        if not scope.lead:
            scope.report.error("E307", "no operand has leading axes", d.span, "give an operand `..`")
        elif place > 0:
            scope.report.error("E307", "`..` stands first among the axes", d.span)
        return LEAD
    dim = elaborate(d, scope)
    if dim.sort is not Sort.INDEX:
        scope.report.error("E310", "a dimension is an index expression over sizes", d.span)
        return POISON
    return dim


def _param(p: s.Param, scope: Scope) -> ParamSig:
    default: Expr | str | bool | None = None
    match p.kind, p.default:
        case _, None:
            pass
        case "label", s.Name(_, name):
            default = name
        case "flag", s.Name(_, "True" | "False" as name):
            default = name == "True"
        case "label" | "flag", given:
            scope.report.error("E316", f"the default of {p.kind} `{p.name}` is {WANTED[p.kind]}", given.span)
        case _, given:
            default = elaborate(given, replace(scope, sizes={}, tensors={}, lets={}, recs={}))
            if default.sort is not Sort.INDEX and (p.kind == "nat" or default.sort is Sort.BOOL):
                scope.report.error("E316", f"the default of {p.kind} `{p.name}` is {WANTED[p.kind]}", given.span)
    return ParamSig(p.name, p.kind, default, p.optional)


WANTED = {"label": "a name", "flag": "a truth value, `True` or `False`", "nat": "an integer", "real": "a number"}


def _equations(op: s.Op, outputs: dict[str, TensorSig], scope: Scope) -> tuple[Equation, ...]:
    missing = _missing(op, outputs)
    written: dict[str, Equation] = {}
    for b in (b for b in op.body if isinstance(b, s.Equation)):
        if b.name in written:
            scope.report.error("E320", f"`{b.name}` is defined twice", b.span)
            continue
        name = b.name
        if name not in outputs:
            help_ = nearest(name, missing) or f"write `let` before what is none: `let {name}[…] = …`"
            scope.report.error("E317", f"`{name}` is not a result of `{op.name}`", b.span, help_)
            name = missing.pop(0) if missing else name  # the result that was meant
        written[name] = _equation(b, outputs.get(name), scope)
    for name in missing:
        scope.report.error("E318", f"result `{name}` of `{op.name}` has no equation", op.span, f"write `{name}[…] = …`")
    return tuple(written[n] for n in outputs if n in written)


def _missing(op: s.Op, outputs: Collection[str]) -> list[str]:
    """The results that have no equation."""
    named = {b.name for b in op.body if isinstance(b, s.Equation)}
    return [n for n in outputs if n not in named]


def _strays(op: s.Op, outputs: Collection[str]) -> set[str]:
    """What has an equation and is no result."""
    return {b.name for b in op.body if isinstance(b, s.Equation)}.difference(outputs)


def _equation(b: s.Equation, tensor: TensorSig | None, scope: Scope) -> Equation:
    """The equation of a result, of none where that is a mistake that is reported."""
    tensor = tensor or TensorSig(b.name, tuple(LEAD if isinstance(i, s.Dots) else POISON for i in b.indices))
    fits, before = len(b.indices) == len(tensor.dims), len(scope.report.found)
    if not fits:
        scope.misfit("E308", f"`{b.name}` has {axes(len(tensor.dims))}, {given_indices(len(b.indices))}", b.span)
    indices: list[Var | Lead] = []
    named: list[tuple[str, s.Node]] = []
    for item, dim in zip(b.indices, tensor.dims if fits else b.indices, strict=True):
        match item:
            case s.Dots() if not fits or isinstance(dim, Lead):
                indices.append(LEAD)
            case s.Name(_, name) if not isinstance(dim, Lead):
                indices.append(Var(name))
                named.append((name, item))
                claim(name, item.span, scope)
            case _:
                if fits:
                    scope.misfit("E308", "expected an index variable here", item.span, "or `..` for leading axes")
                named += [(n.name, n) for n in _names(item) if n.name not in scope.sizes]
    _unique(scope.report, "index", named)
    loose = scope.loose or len(scope.report.found) > before
    body = elaborate(b.body, replace(scope.bind(*(n for n, _ in named)), loose=loose))
    if body.sort is Sort.BOOL:
        scope.report.error("E310", "expected a number, found a condition", b.body.span)
    elif tensor.sort is Sort.INDEX and body.sort is Sort.REAL:
        scope.report.error("E310", f"`{b.name}` holds integers, this is {article(body.sort)}", b.body.span)
    return Equation(tensor, tuple(indices), body)


def _names(e: s.Expr) -> list[s.Name]:
    match e:
        case s.Name():
            return [e]
        case s.Binary(_, _, left, right):
            return [*_names(left), *_names(right)]
        case s.Unary(_, _, arg):
            return _names(arg)
    return []


def _recurrence(r: s.Rec, extents: tuple[Expr, ...], scope: Scope) -> Recurrence:
    names = [n for n, _ in r.indices]
    _unique(scope.report, "index", [(n, r) for n in names])
    for name in names:
        claim(name, r.span, scope)
    used: set[str] = set()
    inner = replace(scope.bind(*names), used=used)
    init, step = number(r.init, inner), number(r.step, inner)
    scope.used.update(used - {r.name})
    time = Var(names[0])
    for node in walk(step):
        if isinstance(node, State) and node.name == r.name and not _earlier(node.indices[:1], time):
            help_ = f"write `{r.name}[{names[0]} - 1, …]`"
            scope.report.error("E319", f"a step of `{r.name}` reads only the step before it", r.span, help_)
    return Recurrence(r.name, tuple(zip(names, extents, strict=True)), init, step)


def _earlier(index: tuple[Expr, ...], time: Var) -> bool:
    match index:
        case (found,) if found is POISON:
            return True
        case (Bin("-", left, Num(value)),):
            return left == time and value == 1
    return False


def _requirement(b: s.Require, scope: Scope) -> Expr:
    wanted = condition(b.condition, scope)
    if any(isinstance(e, Load | State | Reduce | Softmax) for e in walk(wanted)):
        message = "a requirement is a condition on constants and dimensions"
        scope.report.error("E324", message, b.condition.span, "it is checked where a spec uses the op")
    return wanted


def _prefill(op: s.Op, library: _LibraryChecker) -> str | None:
    named = [b for b in op.body if isinstance(b, s.Prefill)]
    for b in named[1:]:
        library.report.error("E320", "`prefill` is given twice", b.span)
    for b in named[:1]:
        if b.name not in library.ops:
            library.report.error("E321", f"unknown op `{b.name}`", b.span, nearest(b.name, library.ops))
        elif any(isinstance(x, s.Prefill) for x in library.ops[b.name].body):
            library.report.error("E321", f"`{b.name}` has a prefill form itself", b.span)
        elif [(t.name, t.index) for t in op.outputs] != [(t.name, t.index) for t in library.ops[b.name].outputs]:
            wanted = ", ".join(f"`{t.name}`" for t in library.ops[b.name].outputs)
            message = f"`{b.name}` has other results than `{op.name}`"
            library.report.error("E321", message, b.span, f"its results: {wanted}, in this order and of the same sort")
    return named[0].name if named else None
