"""Elaboration of expressions: names to meanings, sorts, and the ranges of bound indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from specc import syntax as s
from specc.diagnostics import Collector, nearest
from specc.formula_text import expr_text
from specc.limits import MAX_SIZE
from specc.near import meant_reduction
from specc.ops import (
    ELEMENTARY,
    LEAD,
    Apply,
    Bin,
    Call,
    Cmp,
    Expr,
    Given,
    Lead,
    Load,
    Logic,
    Named,
    Neg,
    Num,
    Pi,
    Reduce,
    ScalarDef,
    Select,
    Size,
    Softmax,
    Sort,
    State,
    TensorSig,
    Var,
    children,
    substitute,
    walk,
)
from specc.source import Span
from specc.typecheck.budget import Budget

POISON = Num(Fraction(0), Sort.INDEX)
"""Stands where an error was reported, so that the rest of the text is still checked."""


@dataclass(frozen=True)
class Scope:
    """What names mean at one place of an op or scalar function."""

    report: Collector
    functions: Callable[[str], ScalarDef | None]
    function_names: Callable[[], tuple[str, ...]]
    sizes: Mapping[str, Sort] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    tensors: Mapping[str, TensorSig] = field(default_factory=dict)
    lets: Mapping[str, s.Let] = field(default_factory=dict)
    recs: Mapping[str, tuple[Expr, ...]] = field(default_factory=dict)
    """Extents of each recurrence's indices."""
    vars: Mapping[str, Sort] = field(default_factory=dict)
    expanding: tuple[str, ...] = ()
    lead: bool = False
    """Whether `..` means something here."""
    loose: bool = False
    """Whether the signature or the lets have a mistake, so that the body may not fit them for no other reason."""
    budget: Budget = field(default_factory=Budget)
    """Shared by all scopes of a library."""
    used: set[str] = field(default_factory=set)
    """Lets and recurrences that something has read; shared by all scopes of an op."""

    def bind(self, *names: str) -> Scope:
        return replace(self, vars={**self.vars, **dict.fromkeys(names, Sort.INDEX)})

    def misfit(self, code: str, message: str, span: Span, help: str = "") -> None:
        """Reports what does not fit the signature and the lets."""
        if not self.loose:
            self.report.error(code, message, span, help)

    def visible(self) -> tuple[str, ...]:
        lets = [n for n, let in self.lets.items() if not let.formals]
        return (*self.vars, *lets, *self.sizes)


def elaborate(e: s.Expr, scope: Scope) -> Expr:
    """The typed form of `e`. Mistakes go to `scope.report` and leave POISON. Raises Stop (E107, E323) for a
    formula that has grown too large."""
    scope.budget.enter(e.span)
    out = _elaborate(e, scope)
    scope.budget.depth -= 1
    return out


def _elaborate(e: s.Expr, scope: Scope) -> Expr:
    match e:
        case s.Number(_, value):
            integer = not e.decimal and value <= MAX_SIZE
            return Num(value, Sort.INDEX if integer else Sort.REAL)
        case s.Name(span, name):
            return _name(span, name, scope)
        case s.Dots(span):
            return _dots(span, scope)
        case s.Index():
            return _index(e, scope)
        case s.Call():
            return _call(e, scope)
        case s.Unary(span, "not", arg):
            return Logic("not", (_sorted(arg, scope, Sort.BOOL),))
        case s.Unary(_, _, arg):
            inner = number(arg, scope)
            return Neg(inner, inner.sort)
        case s.Binary(span, "and" | "or", left, right):
            return Logic(e.op, (_sorted(left, scope, Sort.BOOL), _sorted(right, scope, Sort.BOOL)))
        case s.Binary():
            return _binary(e, scope)
        case s.Chain():
            return _chain(e, scope)
        case s.Big():
            return _big(e, scope)
        case s.Softmax():
            return _softmax(e, scope)
        case s.If(_, cond, then, other):
            a, b = elaborate(then, scope), elaborate(other, scope)
            return Select(_sorted(cond, scope, Sort.BOOL), a, b, _join(a, b, e.span, scope))


def _name(span: Span, name: str, scope: Scope) -> Expr:
    if name in scope.vars:
        return Var(name, scope.vars[name])
    if name in scope.lets and not scope.lets[name].formals:
        return _expand(scope.lets[name], (), span, scope)
    if name in scope.sizes:
        return Size(name, scope.sizes[name])
    if name in ("π", "pi"):
        return Pi()
    if name in scope.labels:
        scope.report.error("E305", f"label `{name}` has no value in a formula", span)
    elif name in scope.tensors or name in scope.recs or name in scope.lets:
        scope.used.add(name)
        instead = f", or define it without: `let {name} = …`" if name in scope.lets else ""
        scope.report.error("E306", f"`{name}` needs indices", span, f"write `{name}[…]`{instead}")
    else:
        scope.misfit("E301", f"unknown name `{name}`", span, nearest(name, scope.visible()))
    return POISON


def _dots(span: Span, scope: Scope) -> Expr:
    if not scope.lead:
        scope.misfit("E307", "`..` stands only where an operand has leading axes", span)
        return POISON
    return LEAD


def number(e: s.Expr, scope: Scope) -> Expr:
    out = elaborate(e, scope)
    if out.sort is Sort.BOOL:
        scope.report.error("E310", "expected a number, found a condition", e.span)
        return POISON
    return out


def condition(e: s.Expr, scope: Scope) -> Expr:
    """`e`, which must be a condition."""
    return _sorted(e, scope, Sort.BOOL)


def claim(name: str, span: Span, scope: Scope) -> None:
    """Reports an index, let or operand that has the name of something else (E320)."""
    if name in scope.sizes or name in scope.labels:
        scope.report.error("E320", f"`{name}` is a size or constant of this op already", span)
    elif name in scope.lets:
        scope.used.add(name)
        scope.report.error("E320", f"`{name}` is a let of this op already", span)


def axes(count: int) -> str:
    return "1 axis" if count == 1 else f"{count} axes"


def given_indices(count: int) -> str:
    return "1 index is given" if count == 1 else f"{count} indices are given"


def _sorted(e: s.Expr, scope: Scope, sort: Sort) -> Expr:
    out = elaborate(e, scope)
    if out.sort is not sort and out is not POISON:
        scope.report.error("E310", f"expected {article(sort)}, found {article(out.sort)}", e.span)
        return POISON
    return out


def article(sort: Sort) -> str:
    return {Sort.INDEX: "an index", Sort.REAL: "a real number", Sort.BOOL: "a condition"}[sort]


def _join(a: Expr, b: Expr, span: Span, scope: Scope) -> Sort:
    if (a.sort is Sort.BOOL) != (b.sort is Sort.BOOL):
        scope.report.error("E310", f"the two sides differ: {article(a.sort)} and {article(b.sort)}", span)
    if Sort.BOOL in (a.sort, b.sort):
        return Sort.BOOL
    return Sort.INDEX if a.sort is b.sort is Sort.INDEX else Sort.REAL


def _binary(e: s.Binary, scope: Scope) -> Expr:
    if e.op in ("//", "%"):
        left, right = _sorted(e.left, scope, Sort.INDEX), _sorted(e.right, scope, Sort.INDEX)
        return Bin(e.op, left, right, Sort.INDEX)
    left, right = number(e.left, scope), number(e.right, scope)
    if e.op == "/":
        return Bin("/", left, right, Sort.REAL)
    if e.op == "^":
        natural = isinstance(right, Num) and right.value.denominator == 1 and right.value >= 0
        return Bin("^", left, right, left.sort if natural else Sort.REAL)
    return Bin(e.op, left, right, _join(left, right, e.span, scope))


def _chain(e: s.Chain, scope: Scope) -> Expr:
    args = [number(a, scope) for a in e.args]
    parts = tuple(Cmp(op, a, b) for op, a, b in zip(e.ops, args, args[1:], strict=False))
    return parts[0] if len(parts) == 1 else Logic("and", parts)


def _indices(items: tuple[s.Expr, ...], scope: Scope) -> tuple[Expr, ...]:
    return tuple(elaborate(i, scope) if isinstance(i, s.Dots) else _sorted(i, scope, Sort.INDEX) for i in items)


def _plain_indices(name: str, items: tuple[s.Expr, ...], scope: Scope) -> tuple[Expr, ...]:
    """Indices of a let or recurrence, which have no leading axes."""
    for item in items:
        if isinstance(item, s.Dots):
            scope.report.error("E307", f"`..` is no index of `{name}`", item.span)
    return tuple(POISON if isinstance(i, s.Dots) else _sorted(i, scope, Sort.INDEX) for i in items)


def _index(e: s.Index, scope: Scope) -> Expr:
    if e.name in scope.lets:
        return _expand(scope.lets[e.name], e.indices, e.span, scope)
    if e.name in scope.recs:
        indices = _plain_indices(e.name, e.indices, scope)
        _count(e, len(indices), len(scope.recs[e.name]), scope)
        scope.used.add(e.name)
        return State(e.name, indices)
    if e.name not in scope.tensors:
        known = (*scope.tensors, *scope.lets, *scope.recs)
        scope.misfit("E302", f"unknown tensor `{e.name}`", e.span, nearest(e.name, known))
        return POISON
    tensor = scope.tensors[e.name]
    indices = _indices(e.indices, scope)
    lost = not scope.lead and any(isinstance(i, s.Dots) for i in e.indices)  # E307 says so
    if lost or not _count(e, len(indices), len(tensor.dims), scope):
        return POISON
    for index, dim, item in zip(indices, tensor.dims, e.indices, strict=True):
        if isinstance(index, Lead) != isinstance(dim, Lead):
            scope.misfit("E308", f"`..` does not stand where `{e.name}` has its leading axes", item.span)
    return Load(e.name, indices, tensor.sort)


def _count(e: s.Index, found: int, expected: int, scope: Scope) -> bool:
    if found != expected:
        scope.misfit("E308", f"`{e.name}` has {axes(expected)}, {given_indices(found)}", e.span)
    return found == expected


def _expand(let: s.Let, args: tuple[s.Expr, ...], span: Span, scope: Scope) -> Expr:
    if let.name in scope.expanding:
        scope.report.error("E309", f"`{let.name}` is defined by itself", span, "use `rec` for a recurrence")
        return POISON
    scope.used.add(let.name)
    actual = _plain_indices(let.name, args, scope)
    if len(actual) != len(let.formals):
        message = f"`{let.name}` takes {len(let.formals)} indices, {given_indices(len(actual))}"
        scope.report.error("E308", message, span)
        return POISON
    inner = replace(scope.bind(*let.formals), expanding=(*scope.expanding, let.name))
    body = elaborate(let.body, inner)
    mapping = {f: a for f, a in zip(let.formals, actual, strict=True) if a != Var(f)}
    try:
        body = substitute(body, mapping) if mapping else body
    except ValueError as error:
        scope.report.error("E311", str(error), span)
    return Named(let.name, body, body.sort)


def _call(e: s.Call, scope: Scope) -> Expr:
    if e.name == "given":
        return _given(e, scope)
    arity = ELEMENTARY.get(e.name)
    fn = None if arity else scope.functions(e.name)
    if arity is None and fn is None:
        return _unknown(e, scope)
    args = tuple(number(a, scope) for a in e.args)
    expected = arity if arity is not None else len(fn.params) if fn else 0
    if len(args) != expected:
        given = "1 is given" if len(args) == 1 else f"{len(args)} are given"
        scope.report.error("E304", f"`{e.name}` takes {expected} {_plural(expected, 'argument')}, {given}", e.span)
        return POISON
    if fn is None:
        integer = e.name in ("abs", "max", "min") and all(a.sort is Sort.INDEX for a in args)
        return Call(e.name, args, Sort.INDEX if integer else Sort.REAL)
    for param, arg, item in zip(fn.params, args, e.args, strict=True):
        if param.sort is Sort.INDEX and arg.sort is not Sort.INDEX and arg is not POISON:
            scope.report.error("E310", f"`{fn.name}` wants an index for `{param.name}`", item.span)
    return Apply(fn, args, fn.sort)


def _unknown(e: s.Call, scope: Scope) -> Expr:
    """Reports a function that is none (E303), such as `Mean_j`, which was to bind `j`."""
    known = (*ELEMENTARY, "given", *scope.function_names())
    meant = meant_reduction(e.name)
    help_ = meant[1] if meant else nearest(e.name, known)
    scope.report.error("E303", f"unknown function `{e.name}`", e.span, help_)
    for arg in e.args:
        number(arg, scope.bind(meant[0]) if meant else scope)
    return POISON


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"


def _given(e: s.Call, scope: Scope) -> Expr:
    arg = e.args[0] if len(e.args) == 1 else None
    if isinstance(arg, s.Name) and arg.name in scope.optional:
        return Given(arg.name)
    help_ = nearest(arg.name, scope.optional) if isinstance(arg, s.Name) else ""
    scope.report.error("E312", "`given` takes the name of one optional operand or constant", e.span, help_)
    return Logic("true", ())


def _big(e: s.Big, scope: Scope) -> Expr:
    claim(e.var, e.span, scope)
    inner = scope.bind(e.var)
    body = number(e.body, inner)
    where = None if e.predicate is None else _sorted(e.predicate, inner, Sort.BOOL)
    if e.bound is not None:
        extent: Expr | None = _sorted(e.bound, scope, Sort.INDEX)
    else:
        extent = infer_extent(e.var, body, scope, e.span)
    return Reduce(e.op, e.var, extent or POISON, where, body)


def _softmax(e: s.Softmax, scope: Scope) -> Expr:
    if e.var not in scope.vars:
        scope.report.error(
            "E301",
            f"`softmax_{e.var}` stands outside the range of `{e.var}`",
            e.span,
            f"bind it: `Σ_{e.var} softmax_{e.var}(…) · …`",
        )
        return POISON
    score = number(e.score, scope)
    visible = None if e.predicate is None else _sorted(e.predicate, scope, Sort.BOOL)
    return Softmax(e.var, infer_extent(e.var, score, scope, e.span) or POISON, score, visible)


def infer_extent(var: str, body: Expr, scope: Scope, span: Span) -> Expr | None:
    """The dimension over which `var` runs: where it stands alone as an index in `body`."""
    found = list(dict.fromkeys(_dims_of(var, body, scope)))
    if not found and not any(n is POISON for n in walk(body)):
        help_ = f"write the range: `Σ_{{{var} < n}} …`"
        scope.report.error("E313", f"the range of `{var}` is not to be seen from its uses", span, help_)
    if len(found) > 1:
        listed = ", ".join(f"`{expr_text(d)}`" for d in found)
        scope.report.error("E314", f"`{var}` runs over dimensions that differ: {listed}", span)
    return found[0] if found else None


def _dims_of(var: str, e: Expr, scope: Scope) -> Iterator[Expr]:
    """The dimensions that `var`, where it is free in `e`, indexes alone."""
    if isinstance(e, Reduce) and e.var == var:
        yield from _dims_of(var, e.extent, scope)
        return
    dims: tuple[Expr, ...] = ()
    if isinstance(e, Load) and e.tensor in scope.tensors:
        dims = scope.tensors[e.tensor].dims
    elif isinstance(e, State):
        dims = scope.recs[e.name]
    for index, dim in zip(children(e), dims, strict=False):
        if index == Var(var):
            yield dim
    for child in children(e):
        yield from _dims_of(var, child, scope)
