"""The table of weights: which checkpoint tensors make up each, row by row."""

from __future__ import annotations

from collections.abc import Sequence

from specc.ir import Model, NodeVariant, Piece, Weight
from specc.targets.torch.layers import LayerKind
from specc.targets.torch.layout import Group, Item, lines, quoted, tuple_of


def weight_lines(model: Model, kinds: Sequence[LayerKind]) -> list[str]:
    """The entries of `WEIGHTS`: for all layers, for each kind of layer and for what stands around them,
    `"node.weight": (Piece(…), …)`."""
    inside = [n for n in model.nodes if n.layers is not None]
    every = [n for n in inside if all(n in k.nodes for k in kinds)]
    found = _entries("EVERY", every)
    for kind in kinds:
        found += _entries(quoted(kind.name), [n for n in inside if n in kind.nodes and n not in every])
    return found + _entries("AROUND", [n for n in model.nodes if n.layers is None])


def _entries(key: str, nodes: Sequence[NodeVariant]) -> list[str]:
    found: list[str] = []
    for node in nodes:
        for weight in node.weights:
            if weight.tied is None:
                pieces = tuple_of([_piece(p, weight) for p in weight.pieces])
                found += lines(f"{quoted(f'{node.variant_name}.{weight.name}')}: ", pieces, ",", "        ")
    return [f"    {key}: {{", *found, "    },"] if found else [f"    {key}: {{}},"]


def tied_lines(model: Model) -> list[str]:
    """The entries of `TIED`: a weight and the one that it is."""
    found: list[str] = []
    for node in model.nodes:
        for weight in node.weights:
            if weight.tied is not None:
                found.append(f"    {quoted(f'{node.variant_name}.{weight.name}')}: {quoted(_partner(model, weight))},")
    return found


def _partner(model: Model, weight: Weight) -> str:
    assert weight.tied is not None
    path, name = weight.tied
    return f"{model.variants(path)[0].variant_name}.{name}"


def _piece(p: Piece, weight: Weight) -> Item:
    items: list[Item] = [quoted(p.name), tuple_of([str(n) for n in p.full])]
    if any(low != 0 or high != size for low, high, size in p.view):
        items.append(tuple_of([tuple_of([str(n) for n in axis]) for axis in p.view]))
    if p.full[1:] != weight.shape[1:]:
        items.append(f"row={tuple_of([str(n) for n in weight.shape[1:]]).flat}")
    return Group("Piece(", tuple(items), ")")
