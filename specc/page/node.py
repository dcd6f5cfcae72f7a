"""The page of one node, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specc.ir import Model, NodeVariant, Phase, Weight
from specc.lowered import Lowered, reasons
from specc.page.markdown import code, escape, prose
from specc.page.model import tensors_cell
from specc.page.tables import (
    constants_text,
    function_text,
    functions,
    layers_text,
    node_formula,
    tensors,
    weight_text,
)
from specc.spec_key import format_key


@dataclass(frozen=True)
class NodePage:
    """`facts`: label and Markdown. `blocks`: a heading, and lines of code under it."""

    title: str
    facts: tuple[tuple[str, str], ...]
    blocks: tuple[tuple[str, tuple[str, ...]], ...]


def node_page(model: Model, node: NodeVariant, lowered: Sequence[Lowered], layer: int | None = None) -> NodePage:
    """The page of a variant of a node; `lowered` are its kernels. `layer`: only in this layer."""
    layers = layers_text(node, model.layer_count) if layer is None else str(layer)
    weights = [(f"Weight {code(w.name)}", _weight(w, layer)) for w in node.weights]
    facts = (
        ("Spec Key", code(format_key(model, node, layer))),
        ("Op Spec", code(node.op.name) + (f" ({prose(node.op.doc)})" if node.op.doc else "")),
        ("Layers", layers),
        ("Constants", escape(constants_text(node)) or "none"),
        *((f"Tensors ({phase})", tensors_cell(tensors(node, phase))) for phase, _ in node.bound),
        *weights,
        *(fact for x in lowered for fact in _schedules(x)),
    )
    return NodePage(node.path, facts, tuple(_blocks(node)))


def _weight(weight: Weight, layer: int | None) -> str:
    pieces = weight_text(weight) if layer is None else weight_text(weight).replace("{i}", str(layer))
    return f"\\[{', '.join(map(str, weight.shape))}] {code(pieces)}"


def _schedules(lowered: Lowered) -> list[tuple[str, str]]:
    if lowered.refusal:
        return [("Schedule", f"none. {prose(reasons(lowered))}")]
    return [
        (f"Schedule of {code(k.name)}", f"{k.schedule_name.replace('_', ' ')}. {prose(k.reason)}")
        for k in lowered.kernels
    ]


def _blocks(node: NodeVariant) -> list[tuple[str, tuple[str, ...]]]:
    blocks = [("Op", tuple(node.op.text.strip().splitlines()))] if node.op.text else []
    blocks += [(f"Formula, {phase}", node_formula(node, phase)) for phase in _phases(node)]
    named = functions(b.formula for _, bound in node.bound for b in bound)
    lines = tuple(line for fn in named for line in function_text(fn))
    return [*blocks, ("Functions", lines)] if lines else blocks


def _phases(node: NodeVariant) -> tuple[Phase, ...]:
    return tuple(phase for phase, _ in node.bound)
