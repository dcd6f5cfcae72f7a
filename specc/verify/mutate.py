"""One change at a time: in a constant, flag, op, order or piece of a spec, in a wire, or in one term of a formula."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from specc import syntax as s
from specc import syntax_spec as m
from specc.diagnostics import SpecError
from specc.formula_text import expr_text
from specc.ir import BoundOp, Model, NodeVariant, Phase
from specc.ops import (
    Apply,
    Bin,
    Call,
    Cmp,
    Expr,
    Formula,
    Library,
    Neg,
    Num,
    Reduce,
    Select,
    Softmax,
    Sort,
    State,
    children,
    rebuild,
)
from specc.syntax_spec import SpecFile
from specc.typecheck.model import check_model

A_LITTLE = Fraction(65, 64)
OTHERS = {
    "+": "-", "-": "+", "·": "/", "/": "·", "//": "%", "%": "//", "^": "·",
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "sin": "cos", "cos": "sin", "exp": "expm1", "expm1": "exp", "log": "log1p", "log1p": "log",
    "max": "min", "min": "max",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A changed model. `node`: the row that was changed; `text` says how."""

    kind: str
    node: str
    text: str
    model: Model

    def __str__(self) -> str:
        return f"{self.kind} {self.node}: {self.text}"


def spec_mutants(
    spec: SpecFile, library: Library, wanted: Callable[[str], bool] = lambda text: True
) -> Iterator[Mutant]:
    """Changes that a writer of the spec could have made; those that the type checker refuses are left out."""
    for kind, node, text, changed in _spec_changes(spec, library):
        if not wanted(f"{kind} {node}: {text}"):
            continue
        try:
            yield Mutant(kind, node, text, check_model(changed, library))
        except SpecError:
            continue


Change = tuple[str, str, str, SpecFile]


def _spec_changes(spec: SpecFile, library: Library) -> Iterator[Change]:
    for k, row in enumerate(spec.nodes.rows):
        name = row.path if row.layers.name in ("all", "-") else f"{row.path}[{row.layers.name}]"
        for kind, text, changed in row_changes(row, spec, library):
            rows = (*spec.nodes.rows[:k], changed, *spec.nodes.rows[k + 1 :])
            yield kind, name, text, replace(spec, nodes=replace(spec.nodes, rows=rows))
    yield from order_changes(spec)
    for k, layers in enumerate(spec.layers.classes):
        for n, size in enumerate(layers.sizes):
            for text, value in near_values(size.value):
                sizes = (*layers.sizes[:n], replace(size, value=value), *layers.sizes[n + 1 :])
                classes = (*spec.layers.classes[:k], replace(layers, sizes=sizes), *spec.layers.classes[k + 1 :])
                other = replace(spec, layers=replace(spec.layers, classes=classes))
                yield "size", layers.name, f"{size.name} {text}", other


def row_changes(row: m.Row, spec: SpecFile, library: Library) -> Iterator[tuple[str, str, m.Row]]:
    for k, constant in enumerate(row.constants):
        for text, value in near_values(constant.value or s.Name(constant.span, constant.name)):
            constants = (*row.constants[:k], replace(constant, value=value), *row.constants[k + 1 :])
            yield "constant", f"{constant.name} {text}", replace(row, constants=constants)
    own = library.op(row.op.name)
    for op in library.ops:
        if op.name != row.op.name and (len(op.inputs), len(op.outputs)) == (len(own.inputs), len(own.outputs)):
            yield "op", f"{row.op.name} -> {op.name}", replace(row, op=replace(row.op, name=op.name))
    for k, weight in enumerate(row.weights):
        if isinstance(weight.value, tuple) and len(weight.value) > 1:
            turned = replace(weight, value=tuple(reversed(weight.value)))
            yield "pieces", weight.name, replace(row, weights=(*row.weights[:k], turned, *row.weights[k + 1 :]))


def order_changes(spec: SpecFile) -> Iterator[Change]:
    """Two rows, the second of which reads what the first gives, in the other order."""
    for first in spec.nodes.rows:
        for second in spec.nodes.rows:
            links = _links(first, second)
            if links:
                rows = tuple(_reordered(r, first, second, links) for r in spec.nodes.rows)
                changed = replace(spec, nodes=replace(spec.nodes, rows=rows))
                yield "order", f"{first.path}[{first.layers.name}]", f"after {second.path}", changed


def _links(first: m.Row, second: m.Row) -> dict[str, tuple[str, str]]:
    """By what an application of `first` gives: what it reads, and what `second` makes of it. None unless every
    application of `second` reads one of `first`."""
    if len(first.applies) < len(second.applies):
        return {}
    made = {a.outs[0].wire: a.args[0].wire for a in first.applies if len(a.outs) == 1}
    taken = {a.args[0].wire: a.outs[0].wire for a in second.applies if len(a.outs) == 1 and a.args[0].state is None}
    if len(taken) < len(second.applies) or not taken.keys() <= made.keys():
        return {}
    return {wire: (made[wire], out) for wire, out in taken.items()}


def _reordered(row: m.Row, first: m.Row, second: m.Row, links: dict[str, tuple[str, str]]) -> m.Row:
    if row is first:
        reads = dict(links.values())
    elif row is second:
        reads = {wire: read for wire, (read, _) in links.items()}
    else:
        reads = {out: wire for wire, (_, out) in links.items()}
    applies = (replace(u, args=tuple(replace(a, wire=reads.get(a.wire, a.wire)) for a in u.args)) for u in row.applies)
    return replace(row, applies=tuple(applies))


def near_values(value: s.Expr) -> Iterator[tuple[str, s.Expr]]:
    """Values near one: a flag turned, one more and one less, a little more."""
    span = value.span
    if isinstance(value, s.Name) and value.name in ("True", "False"):
        other = "False" if value.name == "True" else "True"
        yield f"-> {other}", s.Name(span, other)
        return
    one, up, down = (s.Number(span, Fraction(n), str(n)) for n in (1, *A_LITTLE.as_integer_ratio()))
    yield "+ 1", s.Binary(span, "+", value, one)
    yield "- 1", s.Binary(span, "-", value, one)
    yield f"· {A_LITTLE}", s.Binary(span, "·", value, s.Binary(span, "/", up, down))


def formula_mutants(model: Model, phase: Phase = Phase.PREFILL) -> Iterator[Mutant]:
    """Changes of one term in the formula of one node, each in the first application of its row, and of one wire."""
    for k, node in enumerate(model.nodes):
        if phase not in dict(node.bound):
            continue
        before = written_before(model, node)
        for kind, text, changed in node_changes(node, phase, before):
            nodes = (*model.nodes[:k], changed, *model.nodes[k + 1 :])
            name = node.path if node.layer_class in ("all", None) else f"{node.path}[{node.layer_class}]"
            yield Mutant(kind, name, text, replace(model, nodes=nodes))


def written_before(model: Model, node: NodeVariant) -> dict[str, tuple[Expr, ...]]:
    """Wires that stand when `node` is computed, with their dims."""
    found = {}
    nodes = model.outside(node.outside_order) if node.layers is None else model.in_layer(node.layers[0])
    if node.outside_order >= 0:
        found[model.stream.name] = model.stream.dims
    for other in nodes:
        if other is node:
            break
        found |= {wire: dims for a in other.applications for w in a.writes for wire, dims in w.views if wire != "_"}
    return found


def node_changes(
    node: NodeVariant, phase: Phase, before: dict[str, tuple[Expr, ...]]
) -> Iterator[tuple[str, str, NodeVariant]]:
    bounds = dict(node.bound)[phase]
    for n, bound in enumerate(bounds):
        for kind, text, changed in _bound_changes(bound, before, terms=n == 0):
            now = (*bounds[:n], changed, *bounds[n + 1 :])
            yield kind, text, replace(node, bound=tuple((p, now if p is phase else b) for p, b in node.bound))


def _bound_changes(
    bound: BoundOp, before: dict[str, tuple[Expr, ...]], terms: bool
) -> Iterator[tuple[str, str, BoundOp]]:
    for text, formula in formula_changes(bound.formula) if terms else ():
        yield "term", text, replace(bound, formula=formula)
    for k, read in enumerate(bound.reads):
        for wire in (w for w, dims in before.items() if w != read.wire and dims == before.get(read.wire)):
            reads = (*bound.reads[:k], replace(read, wire=wire), *bound.reads[k + 1 :])
            yield "wire", f"{read.operand}: {read.wire} -> {wire}", replace(bound, reads=reads)


def formula_changes(formula: Formula) -> Iterator[tuple[str, Formula]]:
    for k, q in enumerate(formula.equations):
        for text, expr in changes(q.expr):
            equations = (*formula.equations[:k], replace(q, expr=expr), *formula.equations[k + 1 :])
            yield f"{q.tensor.name}: {text}", replace(formula, equations=equations)
    for k, rec in enumerate(formula.recs):
        for text, expr in changes(rec.step):
            recs = (*formula.recs[:k], replace(rec, step=expr), *formula.recs[k + 1 :])
            yield f"{rec.name}: {text}", replace(formula, recs=recs)


def changes(e: Expr) -> Iterator[tuple[str, Expr]]:
    """`e` with one term changed, in every way and place."""
    for other in _changed(e):
        yield f"{_short(e)} -> {_short(other)}", other
    for k, child in enumerate(children(e)):
        if isinstance(e, State) and k == 0:
            continue  # a recurrence reads no other time
        for text, new in changes(child):
            yield text, _with_child(e, k, new)
    if isinstance(e, Apply):
        for text, body in changes(e.fn.body):
            yield f"{e.fn.name}: {text}", replace(e, fn=replace(e.fn, body=body))


def _short(e: Expr) -> str:
    text = expr_text(e)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _with_child(e: Expr, k: int, new: Expr) -> Expr:
    """`rebuild` visits children in their order."""
    counter = iter(range(len(children(e))))
    return rebuild(e, lambda old: new if next(counter) == k else old)


def _changed(e: Expr) -> Iterable[Expr]:
    match e:
        case Num(value, Sort.INDEX):
            return (replace(e, value=value + 1),)
        case Num(value):
            return (replace(e, value=value * A_LITTLE if value else A_LITTLE),)
        case Bin("+" | "-", left, right):
            return (replace(e, op=OTHERS[e.op]), left, right)
        case Bin("·" | "/", left, _) if e.sort is Sort.REAL:
            return (replace(e, op=OTHERS[e.op]), left)
        case Bin(op) if op in OTHERS and e.sort is Sort.INDEX and op not in "·^":
            return (replace(e, op=OTHERS[op]),)
        case Cmp(op):
            return (replace(e, op=OTHERS[op]),)
        case Neg(arg):
            return (arg,)
        case Call(fn, args) if fn in OTHERS:
            return (replace(e, fn=OTHERS[fn]),)
        case Call(fn, args) if len(args) == 1:
            return (args[0],)
        case Select(_, then, other):
            return (then, other)
        case Softmax(visible=visible) if visible is not None:
            return (replace(e, visible=None),)
        case Reduce("sum" | "Σ", _, extent):
            return (replace(e, extent=Bin("-", extent, Num(Fraction(1), Sort.INDEX), Sort.INDEX)),)
    return ()


def changed_layers(model: Model, mutant: Model) -> list[int]:
    """One layer for each node that differs from `model`."""
    differ = [n for n, old in zip(mutant.nodes, model.nodes, strict=True) if n != old and n.layers is not None]
    return sorted({n.layers[0] for n in differ if n.layers})


def all_mutants(
    model: Model, spec: SpecFile, library: Library, wanted: Callable[[str], bool] = lambda text: True
) -> Iterator[Mutant]:
    """Those of `spec`, whose model is `model`, that are `wanted` by their text."""
    yield from spec_mutants(spec, library, wanted)
    yield from (mutant for mutant in formula_mutants(model) if wanted(str(mutant)))
