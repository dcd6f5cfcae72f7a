"""One row of a spec bound anew, in the surroundings that the checked model gives it."""

from __future__ import annotations

from specc import syntax_spec as m
from specc.diagnostics import Collector, SpecError
from specc.ir import Model, NodeVariant, Phase
from specc.ops import Expr, Library
from specc.typecheck.flow import stands_in
from specc.typecheck.rows import bind_row, wires_of
from specc.typecheck.sizes import Group, check_frame
from specc.typecheck.wires import Wire, World


class Binder:
    """Binds changed rows of `spec`, whose model is `model`, much faster than the whole is checked."""

    def __init__(self, spec: m.SpecFile, model: Model, library: Library) -> None:
        self.spec, self.model, self.library = spec, model, library
        self.frame = check_frame(spec, Collector())

    def node(self, k: int, row: m.Row) -> NodeVariant | None:
        """What node `k` is where its row is `row`; None for a row with mistakes."""
        old, report = self.model.nodes[k], Collector()
        outside = old.layers is None
        group = self.frame.outside if outside else next(g for g in self.frame.groups if stands_in(row, g))
        try:
            op = self.library.op(row.op.name)
            new, _ = bind_row(row, op, self.library, group, self._world(old, group), self.spec.checkpoint, report)
        except (KeyError, SpecError):
            return None
        if new is None or report.found or _written(new) != _written(old):
            return None
        return NodeVariant(
            new.path, new.op, old.layers, old.layer_class, new.constants, new.applications, new.bound, new.weights,
            old.outside_order, new.span,
        )  # fmt: skip

    def _world(self, node: NodeVariant, group: Group) -> World:
        model = self.model
        beside = model.in_layer(group.layers[0]) if group.layers else model.outside(node.outside_order)
        wires = {t.name: Wire(t.name, t.dims, t.sort) for t in model.inputs}
        wires[model.stream.name] = Wire(model.stream.name, model.stream.dims, origin="stream")
        for other in beside:
            for application, bound in zip(other.applications, other.phase(Phase.PREFILL), strict=True):
                wires |= wires_of(other.path, application, bound)
        states = {s.name: dims for s in model.states for kind, dims in s.dims if kind in (*group.classes, "all")}
        return World(wires, states, tuple(t.name for t in model.inputs))


def _written(node: NodeVariant) -> list[tuple[str, tuple[Expr, ...]]]:
    return [view for a in node.applications for w in a.writes for view in w.views]
