"""What each stage gives, as text that is the same on every run: for reading, and for golden tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, get_args

from specc import syntax
from specc.dump_kernel import dump_kernel
from specc.format import format_expr, format_value
from specc.formula_text import dims_text, formula_text
from specc.ir import Application, BoundOp, LayerClass, Model, NodeVariant, Piece, Role, Weight, WireRead
from specc.kernels import Kernel
from specc.source import Span
from specc.syntax_spec import SpecFile

SYNTAX_EXPR = get_args(syntax.Expr)
SHORT = 100
"""Longest value that stands on its field's line."""


def dump_syntax(tree: SpecFile | syntax.OpsFile) -> str:
    """The syntax tree, one node a line with its place."""
    return _join(_tree("", tree, _syntax_leaf))


def dump_kernels(kernels: Iterable[Kernel]) -> str:
    """Every kernel with its slots filled."""
    return "\n".join(dump_kernel(k) for k in kernels)


def _join(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _syntax_leaf(value: Any) -> str | None:
    if isinstance(value, SYNTAX_EXPR):
        return f"{_place(value)} {format_expr(value)}"
    return _plain(value)


def _plain(value: Any) -> str | None:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple) or is_dataclass(value):
        return None
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _place(node: syntax.Node) -> str:
    return f"{node.span.line}:{node.span.column}"


def _tree(label: str, value: Any, leaf: Callable[[Any], str | None]) -> list[str]:
    """`value` under its label; short lists of leaves stay on one line, empty ones and None are left out."""
    head = f"{label} = " if label else ""
    text = leaf(value)
    if text is not None:
        return [head + text]
    if isinstance(value, tuple):
        texts = [leaf(v) for v in value]
        inline = "(" + ", ".join(t for t in texts if t is not None) + ")"
        if None not in texts and len(inline) <= SHORT:
            return [head + inline]
        return [f"{label}:", *("  " + line for v in value for line in _tree("", v, leaf))]
    place = f" {_place(value)}" if isinstance(value, syntax.Node) else ""
    return [f"{head}{type(value).__name__}{place}", *("  " + line for line in _fields(value, leaf))]


def _fields(value: Any, leaf: Callable[[Any], str | None]) -> list[str]:
    pairs = [(f.name, getattr(value, f.name)) for f in fields(value)]
    told = ((name, v) for name, v in pairs if v is not None and v != () and not isinstance(v, Span))
    return [line for name, v in told for line in _tree(name, v, leaf)]


def dump_model(model: Model) -> str:
    """The typed model: what surrounds the nodes, then every node in the order of the page."""
    lines = [f"model {model.key} @ {model.version}", f"class {model.official_class}", f"about {model.about}"]
    lines += [f"domain {d.name} in [{d.low}, {d.high}] {d.unit}".rstrip() for d in model.domain]
    lines += [f"page {model.page}"]
    lines += [f"size {name} = {value}" for name, value in model.sizes]
    lines += [f"layers {model.layer_count}", *map(_layer_class, model.classes)]
    lines += [f"input {t.name}{dims_text(t.dims)} {t.sort}" for t in model.inputs]
    stream = model.stream
    lines += [f"stream {stream.name}{dims_text(stream.dims)} from {stream.first} then {stream.next}"]
    lines += [f"output {name}" for name in model.outputs]
    lines += [f"state {s.name} " + ", ".join(f"{c}: {dims_text(d)}" for c, d in s.dims) for s in model.states]
    for node in model.nodes:
        lines += ["", *_node(node)]
    lines += ["", *(f"store {role} {kind}" for role, kind in model.profile.types)]
    lines += [f"store {name} as {Role.ACCUMULATOR}" for name in model.profile.kept]
    lines += [f"round {op}{f'.{part}' if part else ''} to {role}" for op, part, role in model.profile.rounds]
    lines += [f"config {key} = {json.dumps(value, ensure_ascii=False)}" for key, value in model.config]
    return _join([*lines, f"parameters {model.parameter_count}"])


def _layer_class(c: LayerClass) -> str:
    sizes = ", ".join(f"{n} = {v}" for n, v in c.sizes)
    return f'  {c.name} "{c.label}" where {c.predicate}, {len(c.layers)} layers {_few(c.layers)}: {sizes}'


def _few(layers: tuple[int, ...]) -> str:
    return ", ".join(map(str, layers)) if len(layers) < 6 else f"{layers[0]}, {layers[1]}, …, {layers[-1]}"


def _node(node: NodeVariant) -> list[str]:
    place = {-1: "before the layers", 1: "after the layers"}.get(node.outside_order, "")
    if node.layers is not None:
        place = f"in {len(node.layers)} layers ({node.layer_class}): {_few(node.layers)}"
    lines = [f"node {node.path}: {node.op.name} {place}"]
    lines += [f"  {name} = {format_value(value)}" for name, value in node.constants]
    lines += [f"  weight {_weight(w)}" for w in node.weights]
    for number, application in enumerate(node.applications):
        lines += [f"  use {_application(application)}"]
        for phase, bound in node.bound:
            label = phase if len(node.bound) > 1 else "both"
            lines += [f"    {label} {line}" for line in _bound(bound[number])]
    return lines


def _weight(w: Weight) -> str:
    value = f"tied {'.'.join(w.tied)}" if w.tied else " ++ ".join(map(_piece, w.pieces))
    return f"{w.name}{list(w.shape)} = {value}"


def _piece(p: Piece) -> str:
    view = ", ".join(f"{low}:{high} of {size}" for low, high, size in p.view)
    return f"{p.name}{list(p.full)}[{view}]"


def _application(a: Application) -> str:
    label = f"{a.label}: " if a.label else ""
    weights = "".join(f" {operand}={name}" for operand, name in a.weights)
    writes = "; ".join(
        f"{w.operand} -> " + ", ".join(f"{name}{dims_text(dims)}" for name, dims in w.views) for w in a.writes
    )
    return f"{label}{', '.join(map(_read, a.reads))}{weights}; {writes}"


def _read(r: WireRead) -> str:
    return f"{r.operand}={r.state} + {r.wire}" if r.appends else f"{r.operand}={r.wire}"


def _bound(b: BoundOp) -> list[str]:
    roles = dict(b.roles)
    tensors = ", ".join(f"{t.name}{dims_text(t.dims)} {roles[t.name]}" for t in (*b.formula.inputs, *b.formula.outputs))
    return [f"{b.op.name} reads {', '.join(map(_read, b.reads))}", f"over {tensors}", *formula_text(b.formula)]
