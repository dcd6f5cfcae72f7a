"""The functions of a model's nodes: one for each distinct variant and phase, named after the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from specc.diagnostics import Diagnostic, SpecError
from specc.formula_text import formula_text
from specc.ir import BoundOp, Model, NodeVariant, Phase, Role
from specc.spec_key import format_key
from specc.targets.torch.function import print_formula, shapes_text
from specc.targets.torch.scalars import Function, Helpers

TRUNK = "trunk"
"""Module of the nodes that share no first part of their path with another one."""


@dataclass(frozen=True)
class NodeFunction:
    """A printed node, its tables before it, the module that it stands in."""

    function: Function
    module: str
    tables: tuple[Function, ...] = ()


@dataclass(frozen=True)
class Printed:
    """All node functions of a model, and by (variant, phase, application) the name of the one that is called."""

    functions: tuple[NodeFunction, ...]
    scalars: tuple[Function, ...]
    names: Mapping[tuple[str, Phase, int], str]

    def modules(self) -> dict[str, list[NodeFunction]]:
        """The functions by module, in the order of the page."""
        found: dict[str, list[NodeFunction]] = {}
        for f in self.functions:
            found.setdefault(f.module, []).append(f)
        return found


def rounds_of(op: str, rounds: Sequence[tuple[str, str, Role]]) -> dict[str, Role]:
    """Where the formula of `op` rounds: its lets and constants, and `softmax`."""
    return {what or where: role for where, what, role in rounds if where in (op, "softmax")}


def print_nodes(model: Model) -> Printed:
    """Prints every node of `model`. Raises SpecError (E410) for a formula that has no array form here."""
    helpers = Helpers()
    plans = [_plan(model, node, phase) for node in model.nodes for phase, _ in node.bound]
    for _, _, names in plans:
        helpers.names.taken |= set(names)
    modules = _modules(model)
    functions: list[NodeFunction] = []
    called: dict[tuple[str, Phase, int], str] = {}
    for node, phase, names in plans:
        printed = _print(model, node, phase, names, helpers)
        functions += [replace(f, module=modules[node.path]) for f, _ in printed]
        called |= {(node.variant_name, phase, n): f.function.name for f, which in printed for n in which}
    return Printed(tuple(functions), tuple(helpers.scalars.values()), called)


def _plan(model: Model, node: NodeVariant, phase: Phase) -> tuple[NodeVariant, Phase, list[str]]:
    """The names a node's functions may get, one for each application."""
    stem = node.variant_name if len(node.bound) == 1 else f"{node.variant_name}_{phase}"
    rest = [f"{stem}_{a.label or n}" for n, a in enumerate(node.applications[1:], start=1)]
    return node, phase, [stem, *rest]


def _print(
    model: Model, node: NodeVariant, phase: Phase, names: Sequence[str], helpers: Helpers
) -> list[tuple[NodeFunction, list[int]]]:
    """The distinct functions of one node in one phase, each with the applications that call it."""
    found: list[tuple[NodeFunction, list[int]]] = []
    helpers.owner = names[0]
    for n, bound in enumerate(dict(node.bound)[phase]):
        before = len(helpers.tables)
        f = _function(model, node, bound, names[n], helpers)
        for place, (known, which) in enumerate(found):
            if (known.function.params, known.function.body) == (f.params, f.body):
                doc = known.function.doc
                shapes = shapes_text(bound.formula)
                doc = doc if shapes in doc else (*doc, shapes)
                found[place] = (replace(known, function=replace(known.function, doc=doc)), [*which, n])
                break
        else:
            tables = tuple(helpers.tables.values())[before:]
            found.append((NodeFunction(f, "", tables), [n]))
    return found


def _function(model: Model, node: NodeVariant, bound: BoundOp, name: str, helpers: Helpers) -> Function:
    where = f", {node.layer_class} layers" if node.layer_class not in (None, "all") else ""
    head = f"{format_key(model, node)}{where}: {bound.op.name}"
    rounds = rounds_of(bound.op.name, model.profile.rounds)
    doc = (head, "", *formula_text(bound.formula), "", shapes_text(bound.formula))
    try:
        return replace(print_formula(bound.formula, dict(bound.roles), name, helpers, rounds), doc=doc)
    except ValueError as error:
        raise SpecError([Diagnostic("E410", f"no PyTorch form of `{node.path}`: {error}", node.span)]) from error


def _modules(model: Model) -> dict[str, str]:
    """The module of each node path: the first part of a path that several share, else TRUNK."""
    paths = list(dict.fromkeys(n.path for n in model.nodes))
    firsts = [p.split(".")[0] for p in paths]
    return {p: f if firsts.count(f) > 1 else TRUNK for p, f in zip(paths, firsts, strict=True)}
