"""The canonical form of op libraries and Model Specs. Printing then parsing gives the same tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from specc import syntax as s
from specc import syntax_spec as m
from specc.format_expr import SUM, at_level, format_expr, level
from specc.formula_text import expr_text
from specc.ops import Expr

WIDTH = 120
"""Longest line of an op library; a longer one is broken where that is possible."""
HEADER = ("Node", "Op Spec", "Layers", "Constants", "Wires", "Weights")

__all__ = ["format_expr", "format_ops", "format_spec", "format_value"]


def format_value(value: Expr | str | bool) -> str:
    """A constant as the page shows it: `√5376`, `1e-06`, `16384`, `True`, `gelu_pytorch_tanh`."""
    return str(value) if isinstance(value, str | bool) else expr_text(value)


def _comments(lines: Iterable[str], indent: str = "") -> list[str]:
    return [f"{indent}# {line}".rstrip() for line in lines]


# Op libraries


def format_ops(tree: s.OpsFile) -> str:
    """The canonical text of an op library."""
    return _join([_comments(tree.header), *map(_item, tree.items), _comments(tree.trailing)])


def _join(blocks: Iterable[Sequence[str]]) -> str:
    text = "\n\n".join("\n".join(b) for b in blocks if b)
    return text + "\n" if text else ""


def _item(item: s.Def | s.Op) -> list[str]:
    if isinstance(item, s.Op):
        return _comments(item.comments) + _signature(item) + [x for b in item.body for x in _statement(b)]
    lines = _body(f"def {item.name}({', '.join(map(_param, item.params))}) =", item.body, "  ")
    if item.computed is not None:
        lines += _body("  computed as", item.computed, "    ")
    return _comments(item.comments) + lines


def _signature(op: s.Op) -> list[str]:
    inputs = ", ".join(map(_tensor, op.inputs))
    params = ", ".join(_param(p, explicit=True) for p in op.params)
    outputs = ", ".join(map(_tensor, op.outputs))
    line = f"op {op.name}({inputs}{'; ' if params else ''}{params}) -> {outputs}"
    if len(line) <= WIDTH:
        return [line]
    return [
        f"op {op.name}(",
        f"    {inputs}{';' if params else ''}",
        *([f"    {params}"] if params else []),
        f") -> {outputs}",
    ]


def _tensor(t: s.Tensor) -> str:
    return f"{t.name}{_shape(t.dims)}{': index' if t.index else ''}{'?' if t.optional else ''}"


def _shape(dims: Sequence[s.Expr]) -> str:
    return "[" + ", ".join(map(format_expr, dims)) + "]"


def _param(p: s.Param, explicit: bool = False) -> str:
    """A parameter; the kind `real` is only written for the constants of an op."""
    default = "" if p.default is None else f" = {format_expr(p.default)}"
    kind = f": {p.kind}{'?' if p.optional else ''}" if explicit or p.kind != "real" or p.optional else ""
    return f"{p.name}{kind}{default}"


def _statement(b: s.Statement) -> list[str]:
    return _comments(b.comments, "  ") + _statement_lines(b)


def _statement_lines(b: s.Statement) -> list[str]:
    match b:
        case s.Let(_, _, name, formals, body):
            head = f"let {name}{'[' + ', '.join(formals) + ']' if formals else ''} ="
        case s.Rec(_, _, name, indices, init, body):
            ranges = ", ".join(f"{v} < {at_level(n, SUM)}" for v, n in indices)
            head = f"rec {name}[{ranges}] from {format_expr(init)} ="
        case s.Require(_, _, condition):
            return _body("  require", condition, "    ")
        case s.Prefill(_, _, name):
            return [f"  prefill {name}"]
        case s.Equation(_, _, name, formal, body):
            head = f"{name}{_shape(formal)} ="
    return _body(f"  {head}", body, "    ")


def _body(head: str, e: s.Expr, indent: str) -> list[str]:
    """`head e` on one line, or `e` below it, broken at `then`, `else`, or at its sums."""
    line = f"{head} {format_expr(e)}"
    if len(line) <= WIDTH:
        return [line]
    return [head, *(indent + part for part in _parts(e))]


def _parts(e: s.Expr) -> list[str]:
    match e:
        case s.If(_, cond, then, s.If() as other):
            first = format_expr(s.If(e.span, cond, then, s.Name(e.span, "_"))).removesuffix(" else _")
            rest = _parts(other)
            return [first, f"else {rest[0]}", *rest[1:]]
        case s.If(_, cond, then, other):
            first = format_expr(s.If(e.span, cond, then, s.Name(e.span, "_"))).removesuffix(" else _")
            return [first, f"else {format_expr(other)}"]
        case s.Binary(_, "+" | "-" as op, left, right):
            blank = s.Binary(e.span, op, s.Name(e.span, "_"), right)
            return [*_parts(left), format_expr(blank).removeprefix("_ ")] if _sum_like(left) else [format_expr(e)]
    return [format_expr(e)]


def _sum_like(e: s.Expr) -> bool:
    """Whether `e` may stand to the left of a sum without parentheses."""
    return level(e) >= SUM


# Model Specs


def format_spec(tree: m.SpecFile) -> str:
    """The canonical text of a Model Spec, in the order of the fields of `SpecFile`."""
    head = _model(tree)
    blocks = [_comments(tree.header), head, _domain(tree.domain)]
    if tree.sizes is not None:
        blocks.append(_section("sizes", tree.sizes.comments, [(x.comments, _size(x)) for x in tree.sizes.sizes]))
    blocks.append(_layers(tree.layers))
    blocks.append(_declarations(tree.inputs))
    blocks.append(_stream(tree))
    blocks.append(_declarations(tree.states))
    blocks.append(_checkpoint(tree.checkpoint))
    blocks.append(_nodes(tree.nodes))
    blocks.append(_profile(tree.profile))
    if tree.config is not None:
        entries = [(e.comments, f"{e.key} = {_value(e.value)}") for e in tree.config.entries]
        blocks.append(_section("config", tree.config.comments, entries))
    blocks.append(_comments(tree.trailing))
    return _join(blocks)


def _section(head: str, comments: Sequence[str], items: Iterable[tuple[Sequence[str], str]]) -> list[str]:
    lines = [*_comments(comments), head]
    for above, text in items:
        lines += [*_comments(above, "  "), f"  {text}"]
    return lines


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _model(tree: m.SpecFile) -> list[str]:
    lines = [*_comments(tree.model.comments), f"model {tree.model.key} @ {tree.model.version}"]
    for line in (tree.official, tree.about, *tree.uses):
        if line is not None:
            text = line.text if line.keyword == "class" else _quote(line.text)
            lines += [*_comments(line.comments), f"{line.keyword} {text}"]
    return lines


def _domain(domain: m.Domain) -> list[str]:
    items = [
        (
            r.comments,
            f"{r.name} in [{format_expr(r.low)}, {format_expr(r.high)}]" + (f" {_quote(r.unit)}" if r.unit else ""),
        )
        for r in domain.ranges
    ]
    if domain.page is not None:
        items.append((domain.page.comments, _size(domain.page)))
    return _section("domain", domain.comments, items)


def _size(size: m.Size) -> str:
    return f"{size.name} = {format_expr(size.value)}"


def _layers(layers: m.Layers) -> list[str]:
    items = []
    for c in layers.classes:
        label = f" {_quote(c.label)}" if c.label else ""
        sizes = ": " + ", ".join(map(_size, c.sizes)) if c.sizes else ""
        items.append((c.comments, f"{c.name}{label} where {format_expr(c.where)}{sizes}"))
    return _section(f"layers {format_expr(layers.count)}", layers.comments, items)


def _declarations(block: m.Declarations | None) -> list[str]:
    if block is None:
        return []
    return _section(block.keyword, block.comments, [(d.comments, _tensor(d.tensor)) for d in block.items])


def _stream(tree: m.SpecFile) -> list[str]:
    stream, output = tree.stream, tree.output
    head = f"stream {_tensor(stream.tensor)} from {stream.first.name} then {stream.next.name}"
    names = ", ".join(n.name for n in output.names)
    return [*_comments(stream.comments), head, *_comments(output.comments), f"output {names}"]


def _checkpoint(c: m.Checkpoint | None) -> list[str]:
    if c is None:
        return []
    layers = "" if c.layers is None else f" layers {_quote(c.layers)}"
    return [*_comments(c.comments), f"checkpoint {_quote(c.prefix)}{layers}"]


def _nodes(nodes: m.Nodes) -> list[str]:
    rows = [_cells(r) for r in nodes.rows]
    last = len(HEADER) - 1
    widths = [max(len(r[i]) for r in (HEADER, *rows)) if i < last else len(HEADER[i]) for i in range(last + 1)]
    rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
    lines = [*_comments(nodes.comments), "nodes", _line(HEADER, widths), f"  {rule}"]
    for row, cells in zip(nodes.rows, rows, strict=True):
        lines += [*_comments(row.comments, "  "), _line(cells, widths)]
    return lines


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return (
        "  | "
        + " | ".join(c.ljust(w) for c, w in zip(cells[:-1], widths, strict=False))
        + (f" | {cells[-1]}".rstrip() + " |")
    )


def _cells(row: m.Row) -> tuple[str, ...]:
    constants = ", ".join(c.name if c.value is None else f"{c.name}={format_expr(c.value)}" for c in row.constants)
    wires = "; ".join(map(_apply, row.applies))
    return row.path, row.op.name, row.layers.name, constants, wires, "; ".join(map(_weight, row.weights))


def _apply(a: m.Apply) -> str:
    label = "" if a.label is None else f"{a.label}: "
    binds = " with " + ", ".join(f"{b.operand}={b.weight}" for b in a.binds) if a.binds else ""
    return f"{label}{', '.join(map(_arg, a.args))} -> {', '.join(map(_result, a.results))}{binds}"


def _arg(a: m.Arg) -> str:
    operand = "" if a.operand is None else f"{a.operand}="
    state = "" if a.state is None else f"{a.state.name} + "
    return f"{operand}{state}{a.wire}{'' if a.dims is None else _shape(a.dims)}"


def _result(r: m.Out | m.Cut) -> str:
    return _out(r) if isinstance(r, m.Out) else f"({', '.join(map(_out, r.outs))})"


def _out(o: m.Out) -> str:
    return o.wire + ("" if o.dims is None else _shape(o.dims))


def _weight(w: m.Weight) -> str:
    if isinstance(w.value, m.Tied):
        value = f"tied {w.value.node}.{w.value.weight}"
    else:
        value = " ++ ".join(map(_piece, w.value))
    return f"{w.name}{_shape(w.dims)} = {value}"


def _piece(p: m.Piece) -> str:
    view = "[" + ", ".join(map(_axis, p.view)) + "]" if p.view else ""
    return _quote(p.name) + view + ("" if p.full is None else f" as {_shape(p.full)}")


def _axis(a: m.ViewAxis) -> str:
    if a.low is None or a.high is None:
        return format_expr(a.size)
    return f"{format_expr(a.low)} : {format_expr(a.high)} of {format_expr(a.size)}"


def _profile(p: m.Profile) -> list[str]:
    items = [(x.comments, f"{x.role} {x.type.name}") for x in p.storage]
    items += [(r.comments, f"round {r.target.name} to {r.role.name}") for r in p.rounds]
    return _section("profile", p.comments, items)


def _value(v: m.Value) -> str:
    match v:
        case m.Text():
            return _quote(v.value)
        case m.ListValue():
            return "[" + ", ".join(map(_value, v.items)) + "]"
        case m.Each():
            return "each(" + ", ".join(f"{name.name}: {_value(value)}" for name, value in v.choices) + ")"
    return format_expr(v)
