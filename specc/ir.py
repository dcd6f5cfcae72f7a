"""The typed model: what a Model Spec says, checked, with nothing left to interpret.

A `Model` keeps constants both exact and symbolic: `NodeVariant.constants` are closed expressions (`√5376`), printed
by `specc.format`. Run-time sizes (`T`, `B`, `S`, and `L`, the cached length seen by a prefill) stay `Size`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from math import prod
from pathlib import Path

from specc.ops import Expr, Formula, FormulaTensor, Library, Op
from specc.source import Span


class Phase(StrEnum):
    """A node whose op names a `prefill` op has both phases; any other node has one kernel for both (PREFILL)."""

    PREFILL = "prefill"
    DECODE = "decode"


class Role(StrEnum):
    """What a tensor stores; the rounding profile gives each role its type."""

    WEIGHT = "weight"
    ACTIVATION = "activation"
    CACHE = "cache"
    INDEX = "index"
    ACCUMULATOR = "accumulator"


@dataclass(frozen=True)
class Domain:
    """Inclusive range of a run-time size."""

    name: str
    low: int
    high: int
    unit: str = ""


@dataclass(frozen=True)
class LayerClass:
    """Layers on which `predicate` (text) holds, with the sizes that have a value of their own there."""

    name: str
    label: str
    predicate: str
    layers: tuple[int, ...]
    sizes: tuple[tuple[str, Fraction], ...]


@dataclass(frozen=True)
class Piece:
    """Rows of a checkpoint tensor, part of a weight along axis 0. `name` has the checkpoint prefix in it and `{i}` for
    the layer; `full` is the tensor's shape in the checkpoint.

    `view` splits the tensor's rows into axes, and takes `low:high` of `size` from each: ((0, n, n),) is all n rows,
    ((0, 24, 24), (1, 2, 2), (0, 256, 256)) the second half of each of 24 heads."""

    name: str
    view: tuple[tuple[int, int, int], ...]
    full: tuple[int, ...]

    @property
    def row_count(self) -> int:
        return prod(high - low for low, high, _ in self.view)


@dataclass(frozen=True)
class Weight:
    """A weight of a node: its pieces, concatenated along axis 0, or another node's weight (`tied`, `node.weight`)."""

    name: str
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]
    tied: tuple[str, str] | None = None


@dataclass(frozen=True)
class WireRead:
    """An operand is fed by wire or input `wire`, or by state `state` after `wire` was appended to it, or by `state` as
    it stands (then `wire` is the state's name too). The formula's dims may read several last axes of a wire as one."""

    operand: str
    wire: str
    state: str | None = None

    @property
    def appends(self) -> bool:
        return self.state is not None and self.wire != self.state


@dataclass(frozen=True)
class WireWrite:
    """A result, cut along its last axis into consecutive views: (wire name, dims). One view for a plain wire.
    The dims of a view may split the last axis: y[T, N] gives q[T, heads, D]. A name of a state replaces it."""

    operand: str
    views: tuple[tuple[str, tuple[Expr, ...]], ...]


@dataclass(frozen=True)
class Application:
    """One use of the node's op, as its row wires it; `BoundOp.reads` adds the inputs that are wired by name. `label` is
    None for a node that applies its op once and gives no label."""

    label: str | None
    reads: tuple[WireRead, ...]
    writes: tuple[WireWrite, ...]
    weights: tuple[tuple[str, str], ...]
    """(weight operand of the op, name of the node's weight)."""


@dataclass(frozen=True)
class BoundOp:
    """The op of one application in one phase, closed: `formula` has only run-time sizes left. `roles` says what each
    tensor of the formula stores; `reads` what feeds each operand that is no weight, inputs of the phase included."""

    op: Op
    formula: Formula
    roles: tuple[tuple[str, Role], ...]
    reads: tuple[WireRead, ...]


@dataclass(frozen=True)
class NodeVariant:
    """One row of the node table."""

    path: str
    op: Op
    layers: tuple[int, ...] | None
    """Layer indices, or None for a node outside the layers."""
    layer_class: str | None
    """Name of the layer class, "all", or None outside the layers."""
    constants: tuple[tuple[str, Expr | str | bool], ...]
    """As the page shows them, sorted by name: a closed expression, a label, or a flag."""
    applications: tuple[Application, ...]
    bound: tuple[tuple[Phase, tuple[BoundOp, ...]], ...]
    """Per phase one BoundOp for each application."""
    weights: tuple[Weight, ...]
    outside_order: int = 0
    """-1 before the layers, +1 after them, 0 inside."""
    span: Span | None = field(default=None, compare=False, repr=False)

    @cached_property
    def layer_set(self) -> frozenset[int]:
        """The layers in which the node stands."""
        return frozenset(self.layers or ())

    def phase(self, phase: Phase) -> tuple[BoundOp, ...]:
        """The bound ops of a phase; a node with one kernel for both phases answers with it either way."""
        table = dict(self.bound)
        return table[phase] if phase in table else table[Phase.PREFILL]

    @property
    def variant_name(self) -> str:
        """An identifier unique among the model's rows: `attn_core_sliding`, `mlp_down`."""
        stem = self.path.replace(".", "_")
        return stem if self.layer_class in (None, "all") else f"{stem}_{self.layer_class}"


@dataclass(frozen=True)
class Stream:
    """The residual stream: `first` before layer 0; each layer reads `name` and leaves `next` for the one after."""

    name: str
    dims: tuple[Expr, ...]
    first: str
    next: str


@dataclass(frozen=True)
class StateDecl:
    """A state of one sequence in a layer. `dims` for each layer class (`NodeVariant.layer_class`) that uses it; where
    the first is `S` the state is appended to along it, otherwise it is replaced."""

    name: str
    dims: tuple[tuple[str, tuple[Expr, ...]], ...]


@dataclass(frozen=True)
class Profile:
    """Storage type per role and extra roundings: (op or `softmax`, let or constant, role). `kept`: wires and states
    that are stored in the accumulator's type."""

    types: tuple[tuple[Role, str], ...]
    rounds: tuple[tuple[str, str, Role], ...]
    kept: tuple[str, ...] = ()

    def type_of(self, role: Role) -> str:
        """Raises KeyError."""
        return dict(self.types)[role]


@dataclass(frozen=True)
class Model:
    """A checked Model Spec."""

    key: str
    version: str
    official_class: str
    about: str
    domain: tuple[Domain, ...]
    page: int
    sizes: tuple[tuple[str, Fraction], ...]
    layer_count: int
    classes: tuple[LayerClass, ...]
    inputs: tuple[FormulaTensor, ...]
    stream: Stream
    outputs: tuple[str, ...]
    """Wires that the model gives to its caller."""
    states: tuple[StateDecl, ...]
    nodes: tuple[NodeVariant, ...]
    """In the order of the page; `order` gives an order of evaluation."""
    profile: Profile
    config: tuple[tuple[str, object], ...]
    """Dotted key and JSON value."""
    library: Library
    path: Path | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """Folder name under `generated/`: the stem of the spec file."""
        return self.path.stem if self.path else self.key.rsplit("/", 1)[-1]

    def range_of(self, size: str) -> Domain:
        """The range of a run-time size; `L`, the keys a prefill sees, has that of `S`. Raises KeyError."""
        for d in self.domain:
            if d.name == ("S" if size == "L" else size):
                return replace(d, name=size)
        raise KeyError(size)

    def variants(self, path: str) -> tuple[NodeVariant, ...]:
        return tuple(n for n in self.nodes if n.path == path)

    def in_layer(self, layer: int) -> tuple[NodeVariant, ...]:
        """The nodes of a layer, in an order of evaluation."""
        return order(tuple(n for n in self.nodes if layer in n.layer_set))

    def outside(self, side: int) -> tuple[NodeVariant, ...]:
        """The nodes before (-1) or after (+1) the layers, in an order of evaluation."""
        return order(tuple(n for n in self.nodes if n.layers is None and n.outside_order == side))

    @property
    def parameter_count(self) -> int:
        """Elements of all checkpoint tensors, each counted once."""
        found: dict[tuple[str, tuple[int, ...]], set[int]] = {}
        for node in self.nodes:
            for piece in (p for w in node.weights if w.tied is None for p in w.pieces):
                layers = node.layers if node.layers and "{i}" in piece.name else (0,)
                found.setdefault((piece.name, piece.full), set()).update(layers)
        return sum(prod(full) * len(layers) for (_, full), layers in found.items())


def order(nodes: tuple[NodeVariant, ...]) -> tuple[NodeVariant, ...]:
    """`nodes`, of different paths, so that each stands after those whose wires it reads; ties keep the given order."""
    writers = {wire: n for n in nodes for a in n.applications for w in a.writes for wire, _ in w.views}
    done: dict[str, NodeVariant] = {}

    def visit(node: NodeVariant) -> None:
        if node.path in done:
            return
        for read in (r for a in node.applications for r in a.reads):
            writer = writers.get(read.wire)
            if writer is not None and writer.path != node.path and read.wire != read.state:
                visit(writer)
        done[node.path] = node

    for node in nodes:
        visit(node)
    return tuple(done.values())
