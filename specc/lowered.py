"""The kernels of a whole model, node by node; a node that no schedule takes keeps the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specc.diagnostics import Diagnostic, SpecError
from specc.ir import Model, NodeVariant
from specc.kernels import Kernel
from specc.lower.lower import NoSchedule, lower_node


@dataclass(frozen=True)
class Lowered:
    """The kernels of a node, or why it has none."""

    node: NodeVariant
    kernels: tuple[Kernel, ...]
    refusal: tuple[tuple[str, str], ...] = ()
    """(schedule, reason)."""


def lower_each(model: Model, nodes: Sequence[NodeVariant] | None = None) -> tuple[Lowered, ...]:
    """The kernels of `nodes` (all, in the order of the page)."""
    return tuple(_lower(model, node) for node in (model.nodes if nodes is None else nodes))


def _lower(model: Model, node: NodeVariant) -> Lowered:
    try:
        return Lowered(node, lower_node(model, node))
    except NoSchedule as no:
        return Lowered(node, (), no.reasons)


def all_kernels(lowered: Sequence[Lowered]) -> tuple[Kernel, ...]:
    """Raises SpecError (E401) where a node has none."""
    refused = [x for x in lowered if x.refusal]
    if refused:
        raise SpecError(
            Diagnostic("E401", f"no schedule takes `{x.node.op.name}`", x.node.span, reasons(x)) for x in refused
        )
    return tuple(k for x in lowered for k in x.kernels)


def reasons(lowered: Lowered) -> str:
    return "; ".join(f"{schedule}: {reason}" for schedule, reason in lowered.refusal)
