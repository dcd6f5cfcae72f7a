"""A model as a whole by the definitions of its ops: NumPy, float64, one sequence.

Each node is evaluated by the oracle on the wires that its row names; weights are put together from checkpoint tensors.
Nothing here knows a model or an op by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from specc.diagnostics import Diagnostic, SpecError
from specc.ir import Application, BoundOp, Model, NodeVariant, Phase, Piece, Weight, WireWrite
from specc.ops import Expr, FormulaTensor, Num
from specc.oracle import evaluate
from specc.oracle.arrays import Array

UNWANTED = "_"
TOKENS, POSITIONS, LENGTHS = "tokens", "pos", "seq_lens"
"""The inputs of a model that a text gives."""

STALE = 17.0
"""What slots after the last token hold, on which no result depends. The cache that a decode op is given is full and has
such a slot in turn."""

Wires = dict[str, Array]
States = dict[str, Array]


@dataclass(frozen=True)
class Step:
    """One application of a node as it was computed: its operands (weights left out), its results, and these by wire."""

    node: NodeVariant
    number: int
    operands: Mapping[str, Array]
    results: Mapping[str, Array]
    wires: Mapping[str, Array]

    @property
    def use(self) -> Application:
        return self.node.applications[self.number]


@dataclass
class Cache:
    """What the tokens so far leave behind, by layer and state."""

    layers: dict[int, States] = field(default_factory=dict)
    length: int = 0

    def of(self, layer: int) -> States:
        return self.layers.setdefault(layer, {})


class Whole:
    """`model` over checkpoint `tensors`, by their official names. Raises SpecError (E520) for a model with inputs that
    a text alone does not give, KeyError for a tensor that is missing, ValueError for one of another shape."""

    def __init__(self, model: Model, tensors: Mapping[str, Array]) -> None:
        self.model, self.tensors = model, tensors
        self._weights: dict[tuple[str, str, int | None], Array] = {}
        unknown = [t.name for t in model.inputs if t.name not in (TOKENS, POSITIONS, LENGTHS)]
        if unknown:
            help_ = f"a text gives {TOKENS}, {POSITIONS}, {LENGTHS}"
            raise SpecError([Diagnostic("E520", f"nothing gives the input `{unknown[0]}`", None, help_)])

    def run(self, tokens: Array, cache: Cache, phase: Phase = Phase.PREFILL) -> Array:
        """The first result of the model for `tokens` [T], which continue what `cache` holds; one token in DECODE."""
        h = self.before(tokens)
        for layer in range(self.model.layer_count):
            h = self.layer(layer, h, cache, phase)
        cache.length += len(tokens)
        return self.after(h)

    def before(self, tokens: Array) -> Array:
        """The residual stream that layer 0 reads."""
        wires = self._wires(len(tokens), 0, **{TOKENS: tokens})
        self._nodes(self.model.outside(-1), None, wires, {}, Phase.PREFILL, [])
        return wires[self.model.stream.first]

    def after(self, h: Array, steps: list[Step] | None = None) -> Array:
        """What the model gives for the stream after the last layer."""
        wires = self._wires(len(h), 0, **{self.model.stream.name: h})
        self._nodes(self.model.outside(1), None, wires, {}, Phase.PREFILL, [] if steps is None else steps)
        return wires[self.model.outputs[0]]

    def layer(
        self, layer: int, h: Array, cache: Cache, phase: Phase = Phase.PREFILL, steps: list[Step] | None = None
    ) -> Array:
        """The stream after one layer; its states in `cache` are renewed, `cache.length` is not. What was computed is
        added to `steps`."""
        wires = self._wires(len(h), cache.length, **{self.model.stream.name: h})
        nodes = self.model.in_layer(layer)
        self._nodes(nodes, layer, wires, cache.of(layer), phase, [] if steps is None else steps)
        return wires[self.model.stream.next]

    def _wires(self, count: int, start: int, **given: Array) -> Wires:
        return {POSITIONS: np.arange(start, start + count), LENGTHS: np.array([start + count]), **given}

    def _nodes(
        self,
        nodes: Iterable[NodeVariant],
        layer: int | None,
        wires: Wires,
        states: States,
        phase: Phase,
        steps: list[Step],
    ) -> None:
        renewed: States = {}
        for node in nodes:
            for n, (use, bound) in enumerate(zip(node.applications, node.phase(phase), strict=True)):
                operands = {r.operand: self._read(bound, r.operand, wires, states, renewed) for r in bound.reads}
                weights = {o: self._node_weight(node, w, layer) for o, w in use.weights}
                found = evaluate(bound.formula, {**operands, **weights})
                written = dict(_written(use, found))
                wires |= written
                steps.append(Step(node, n, operands, found, written))
                renewed |= {s.name: _state(written[s.name], s.dims) for s in self.model.states if s.name in written}
        states |= renewed

    def _read(self, bound: BoundOp, operand: str, wires: Wires, states: States, renewed: States) -> Array:
        read = next(r for r in bound.reads if r.operand == operand)
        tensor = bound.formula.tensor(operand)
        if read.state is None:
            return _fit(wires[read.wire], tensor)
        old = states.get(read.state)
        if read.appends:
            new = wires[read.wire]
            old = renewed[read.state] = new if old is None else np.concatenate([old, new])
        elif old is None:
            old = np.zeros(self._state_shape(read.state, bound.formula.tensor(operand)))
        if old.ndim == len(tensor.dims):
            return old
        return (_with_room(old) if read.appends else old)[None]

    def _state_shape(self, name: str, tensor: FormulaTensor) -> tuple[int, ...]:
        rank = len(next(dims for s in self.model.states if s.name == name for _, dims in s.dims))
        return tuple(_length(d) for d in tensor.dims[len(tensor.dims) - rank :])

    def _node_weight(self, node: NodeVariant, name: str, layer: int | None) -> Array:
        key = (node.variant_name, name, layer)
        if key not in self._weights:
            weight = next(w for w in node.weights if w.name == name)
            self._weights[key] = self._assemble(weight, layer)
        return self._weights[key]

    def _assemble(self, weight: Weight, layer: int | None) -> Array:
        if weight.tied is not None:
            path, name = weight.tied
            return self._node_weight(self.model.variants(path)[0], name, layer)
        parts = [piece_rows(p, self.tensors[piece_name(p, layer)]) for p in weight.pieces]
        return np.concatenate([p.reshape(len(p), *weight.shape[1:]) for p in parts])


def piece_name(piece: Piece, layer: int | None) -> str:
    """The name of the checkpoint tensor in a layer."""
    return piece.name if layer is None else piece.name.replace("{i}", str(layer))


def piece_rows(piece: Piece, tensor: Array) -> Array:
    """The rows of a checkpoint tensor that a piece takes. Raises ValueError where its shape is another."""
    if tensor.shape != piece.full:
        raise ValueError(f"`{piece.name}` has shape {list(tensor.shape)}, expected {list(piece.full)}")
    axes = tuple(size for _, _, size in piece.view)
    taken = tensor.reshape(*axes, *piece.full[1:])[tuple(slice(low, high) for low, high, _ in piece.view)]
    return np.asarray(taken, np.float64).reshape(piece.row_count, *piece.full[1:])


def _with_room(state: Array) -> Array:
    """A full cache, or one with a slot to spare."""
    return np.concatenate([state, np.full((len(state) % 2, *state.shape[1:]), STALE)])


def _fit(wire: Array, tensor: FormulaTensor) -> Array:
    """A wire whose last axes a formula reads as one."""
    rank = len(tensor.dims)
    return wire if wire.ndim == rank else wire.reshape(*wire.shape[: rank - 1], -1)


def _written(use: Application, found: Mapping[str, Array]) -> Iterable[tuple[str, Array]]:
    for write in use.writes:
        yield from _views(write, found[write.operand])


def _views(write: WireWrite, result: Array) -> Iterable[tuple[str, Array]]:
    """A result cut along its last axis."""
    lead, start = result.shape[:-1], 0
    for wire, dims in write.views:
        if len(write.views) == 1 and len(dims) <= result.ndim:
            yield wire, result
            return
        inner = tuple(_length(d) for d in dims[len(lead) :])
        width = prod(inner)
        if wire != UNWANTED:
            yield wire, result[..., start : start + width].reshape(*lead, *inner)
        start += width


def _state(value: Array, dims: tuple[tuple[str, tuple[Expr, ...]], ...]) -> Array:
    """A new state without the axis of sequences that decode ops have."""
    return value if value.ndim == len(dims[0][1]) else value[0]


def _length(dim: Expr) -> int:
    assert isinstance(dim, Num)
    return int(dim.value)
