"""The page of a model, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specc.formula_text import dims_text
from specc.ir import Model, NodeVariant, Role
from specc.lowered import Lowered, reasons
from specc.page.facts import Fact, facts
from specc.page.markdown import Table, code, escape, prose
from specc.page.tables import (
    constants_text,
    function_text,
    layers_text,
    main_phase,
    model_functions,
    node_formula,
    tensors,
    weight_text,
)


@dataclass(frozen=True)
class Page:
    """Texts of cells are Markdown; `functions` are plain lines."""

    title: str
    about: str
    keys: tuple[str, str]
    """A Spec Key of a node in the layers, and of one outside them."""
    facts: tuple[Fact, ...]
    nodes: Table
    functions: tuple[str, ...]
    tensors: Table
    weights: Table
    states: Table
    profile: Table
    kernels: Table


def model_page(model: Model, lowered: Sequence[Lowered]) -> Page:
    """The page of `model`; `lowered` says with which kernels its nodes are computed, and why."""
    key = f"{model.key}@{model.version}:"
    return Page(
        title=model.key.rsplit("/", 1)[-1],
        about=model.about,
        keys=(f"{key}layers[*].<node>", f"{key}<node>"),
        facts=facts(model),
        nodes=Table(("Node", "Op Spec", "Layers", "Formula", "Constants"), tuple(_node(n, model) for n in model.nodes)),
        functions=tuple(line for fn in model_functions(model) for line in function_text(fn)),
        tensors=Table(("Node", "Layers", "Inputs and outputs"), tuple(_tensors(n, model) for n in model.nodes)),
        weights=Table(("Node", "Layers", "Weight", "Checkpoint tensors"), _weights(model)),
        states=Table(("State", "Layers", "Shape"), _states(model)),
        profile=Table(("What", "Type"), _profile(model)),
        kernels=Table(("Kernel", "Schedule", "Why"), tuple(row for x in lowered for row in _kernels(x))),
    )


def _node(node: NodeVariant, model: Model) -> tuple[str, ...]:
    formula = "; ".join(node_formula(node, main_phase(node)))
    cells = (code(node.path), code(node.op.name), layers_text(node, model.layer_count), code(formula))
    return (*cells, escape(constants_text(node)))


def tensors_cell(named: Sequence[tuple[str, tuple[object, ...]]]) -> str:
    return ", ".join(f"{code(name)} \\{dims_text(dims)}" for name, dims in named)  # type: ignore[arg-type]


def _tensors(node: NodeVariant, model: Model) -> tuple[str, ...]:
    return code(node.path), layers_text(node, model.layer_count), tensors_cell(tensors(node, main_phase(node)))


def _weights(model: Model) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            code(node.path),
            layers_text(node, model.layer_count),
            f"{code(w.name)} \\[{', '.join(map(str, w.shape))}]",
            code(weight_text(w)) if w.tied is None else escape(weight_text(w)),
        )
        for node in model.nodes
        for w in node.weights
    )


def _states(model: Model) -> tuple[tuple[str, ...], ...]:
    return tuple((code(s.name), escape(c), f"\\{dims_text(d)}") for s in model.states for c, d in s.dims)


def _profile(model: Model) -> tuple[tuple[str, ...], ...]:
    stored = [(str(role), code(name)) for role, name in model.profile.types]
    stored += [(code(name), code(model.profile.type_of(Role.ACCUMULATOR))) for name in model.profile.kept]
    rounded = [
        (f"{code(f'{op}.{what}' if what else op)} rounded to", str(role)) for op, what, role in model.profile.rounds
    ]
    return (*stored, *rounded)


def _kernels(lowered: Lowered) -> list[tuple[str, ...]]:
    if lowered.refusal:
        return [(code(lowered.node.variant_name), "none", prose(reasons(lowered)))]
    return [(code(k.name), k.schedule_name.replace("_", " "), prose(k.reason)) for k in lowered.kernels]
