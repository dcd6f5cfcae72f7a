"""What calls the nodes: a straight function for each kind of layer and phase, and for what stands around the layers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from specc.diagnostics import Diagnostic, SpecError
from specc.ir import Application, BoundOp, Model, NodeVariant, Phase, WireRead
from specc.ops import Expr, FormulaTensor, Num, Size
from specc.targets import naming
from specc.targets.torch.code import number
from specc.targets.torch.layout import call_lines, quoted
from specc.targets.torch.nodes import Printed
from specc.targets.torch.scalars import Function
from specc.targets.torch.scope import Names

UNWANTED = "_"
TOKENS, POSITIONS, LENGTHS = "tokens", "pos", "seq_lens"
"""The inputs of a model that the reference knows how to give."""
GIVEN = f"`{TOKENS}` is before the layers, `{POSITIONS}` and `{LENGTHS}` are in them"
WEIGHTS, PRECISION = "w: Mapping[str, Tensor]", "p: Precision"


@dataclass(frozen=True)
class Piece:
    """A printed function and the names that it imports."""

    function: Function
    uses: tuple[str, ...]


@dataclass(frozen=True)
class LayerKind:
    """Layers that have the same nodes."""

    name: str
    layers: tuple[int, ...]
    nodes: tuple[NodeVariant, ...]


def layer_kinds(model: Model, functions: Collection[str]) -> tuple[LayerKind, ...]:
    """The kinds of layers, each named after the layer classes that tell it from the others, with a number where its
    functions would have the names of other kinds' or of `functions`, those of nodes."""
    standing: list[list[int]] = [[] for _ in range(model.layer_count)]
    for place, node in enumerate(model.nodes):
        for i in node.layers or ():
            standing[i].append(place)
    found: dict[tuple[int, ...], list[int]] = {}
    for i, places in enumerate(standing):
        found.setdefault(tuple(places), []).append(i)
    kinds: list[LayerKind] = []
    taken = {name.removesuffix(f"_{phase}") for name in functions for phase in Phase if name.endswith(f"_{phase}")}
    names = naming.Names(taken)
    for layers in found.values():
        nodes = model.in_layer(layers[0])
        classes = dict.fromkeys(n.layer_class for n in nodes if n.layer_class != "all")
        name = names.fresh("_".join(str(c) for c in classes) or "layer")
        kinds.append(LayerKind(name, tuple(layers), nodes))
    return tuple(kinds)


@dataclass
class _Writer:
    """The body of one function: wires become local variables."""

    model: Model
    printed: Printed
    phase: Phase
    names: Names
    wires: dict[str, str] = field(default_factory=dict)
    dims: dict[str, tuple[Expr, ...]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    used: dict[str, None] = field(default_factory=dict)
    """Names that the function has to import."""
    read: dict[str, None] = field(default_factory=dict)

    def node(self, node: NodeVariant) -> None:
        phase = self.phase if self.phase in dict(node.bound) else Phase.PREFILL
        for n, (application, bound) in enumerate(zip(node.applications, node.phase(self.phase), strict=True)):
            function = self.printed.names[node.variant_name, phase, n]
            self.used.setdefault(function)
            args = [self._argument(t, node, application, bound) for t in bound.formula.inputs]
            self._results(application, bound, function, [*args, "p"])

    def _argument(self, t: FormulaTensor, node: NodeVariant, application: Application, bound: BoundOp) -> str:
        weights = dict(application.weights)
        if t.name in weights:
            return f"w[{quoted(f'{node.variant_name}.{weights[t.name]}')}]"
        read = next(r for r in bound.reads if r.operand == t.name)
        if read.state is not None:
            return self._state(read, node)
        if read.wire not in self.wires:
            raise unsupported(node, f"`{read.wire}` is not known here; {GIVEN}")
        self.read.setdefault(read.wire)
        name, dims = self.wires[read.wire], self.dims.get(read.wire)
        if dims is not None and len(dims) > len(t.dims):
            return f"{name}.flatten({len(t.dims) - 1})"
        return name

    def _state(self, read: WireRead, node: NodeVariant) -> str:
        """The state's tensor, appended to where the node says so."""
        assert read.state is not None
        if read.state not in self.states and not read.appends:
            if read.state in appended(self.model):
                raise unsupported(node, f"it reads state `{read.state}`, to which nothing was appended in its layer")
            return f"cache[{quoted(read.state)}]"
        if read.state not in self.states:
            append, where = ("append", POSITIONS) if self.phase is Phase.PREFILL else ("append_each", LENGTHS)
            self.used.setdefault(append)
            name = self.names.fresh(read.state)
            args = [f"cache[{quoted(read.state)}]", self.wires[read.wire], where]
            self.lines += call_lines(f"{name} = ", append, args)
            self.states[read.state] = name
        return self.states[read.state]

    def _results(self, application: Application, bound: BoundOp, function: str, args: Sequence[str]) -> None:
        targets: list[str] = []
        splits: list[str] = []
        states = {s.name for s in self.model.states}
        rank = {t.name: len(t.dims) for t in bound.formula.outputs}
        for write in application.writes:
            names = [self._bind(wire, dims) for wire, dims in write.views]
            if write.views[0][0] in states:
                splits.append(f"cache[{quoted(write.views[0][0])}].copy_({names[0]})")
                self.states[write.views[0][0]] = names[0]
                targets += names
                continue
            if len(names) == 1 and len(write.views[0][1]) == rank[write.operand]:
                targets += names
                continue
            whole = self.names.fresh(write.operand)
            targets.append(whole)
            shapes = [_shape(dims[rank[write.operand] - 1 :]) for _, dims in write.views]
            single = "," if len(names) == 1 else ""
            splits += call_lines(f"{', '.join(names)}{single} = ", "views", [whole, *shapes])
            self.used.setdefault("views")
        self.lines += [*call_lines(f"{', '.join(targets)} = ", function, args), *splits]

    def _bind(self, wire: str, dims: tuple[Expr, ...]) -> str:
        if wire == UNWANTED:
            return "_"
        self.wires[wire] = self.names.fresh(wire)
        self.dims[wire] = dims
        return self.wires[wire]


def appended(model: Model) -> tuple[str, ...]:
    """States that have a position for each token; the others are replaced."""
    return tuple(s.name for s in model.states if all(dims[:1] == (Size("S"),) for _, dims in s.dims))


def _shape(dims: Sequence[Expr]) -> str:
    texts = [number(d.value).text if isinstance(d, Num) else "-1" for d in dims]
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def unsupported(node: NodeVariant, why: str) -> SpecError:
    return SpecError([Diagnostic("E410", f"no PyTorch form of `{node.path}`: {why}", node.span)])


def layer_function(model: Model, printed: Printed, kind: LayerKind, phase: Phase) -> Piece:
    """`kind_phase(h, w, cache, pos or seq_lens, p)`."""
    writer = _writer(model, printed, phase, (model.stream.name,))
    writer.wires |= {POSITIONS: POSITIONS} | ({LENGTHS: LENGTHS} if phase is Phase.DECODE else {})
    for node in kind.nodes:
        writer.node(node)
    where = POSITIONS if phase is Phase.PREFILL else LENGTHS
    params = (f"{writer.wires[model.stream.name]}: Tensor", WEIGHTS, "cache: Mapping[str, Tensor]", f"{where}: Tensor")
    tokens = {
        Phase.PREFILL: f"T tokens of one sequence, at positions `{POSITIONS}`; `cache` is that sequence's",
        Phase.DECODE: f"the last token of each of B sequences of `{LENGTHS}` tokens",
    }
    positions = [f"{POSITIONS} = {LENGTHS} - 1"] if phase is Phase.DECODE and POSITIONS in writer.read else []
    body = (*positions, *writer.lines, f"return {writer.wires[model.stream.next]}")
    doc = (f"A {kind.name} layer on {tokens[phase]}.",)
    return Piece(Function(f"{kind.name}_{phase}", (*params, PRECISION), "Tensor", doc, body), tuple(writer.used))


def before_function(model: Model, printed: Printed) -> Piece:
    """`before_layers(tokens, w, p)`: the residual stream that layer 0 reads."""
    writer = _writer(model, printed, Phase.PREFILL, (TOKENS,))
    return _around(writer, "before_layers", -1, [model.stream.first], "What layer 0 reads.", TOKENS)


def after_function(model: Model, printed: Printed) -> Piece:
    """`after_layers(h, w, p)`: what the model gives."""
    writer = _writer(model, printed, Phase.PREFILL, (model.stream.name,))
    doc = "From the residual stream after the last layer to the results."
    return _around(writer, "after_layers", +1, model.outputs, doc, model.stream.name)


def _around(writer: _Writer, name: str, side: int, results: Sequence[str], doc: str, reads: str) -> Piece:
    for node in writer.model.outside(side):
        writer.node(node)
    found = [writer.wires[r] for r in results]
    body = (*writer.lines, f"return {', '.join(found)}")
    params = (f"{writer.wires[reads]}: Tensor", WEIGHTS, PRECISION)
    return Piece(Function(name, params, result_type(len(found)), (doc,), body), tuple(writer.used))


def result_type(count: int) -> str:
    return "Tensor" if count == 1 else f"tuple[{', '.join(['Tensor'] * count)}]"


def _writer(model: Model, printed: Printed, phase: Phase, inputs: Sequence[str]) -> _Writer:
    taken = {"w", "cache", "p", "views", "append", "append_each", POSITIONS, LENGTHS, *printed.names.values()}
    writer = _Writer(model, printed, phase, Names(taken))
    for name in inputs:
        writer.wires[name] = name if name in taken else writer.names.fresh(name)
    writer.dims[model.stream.name] = model.stream.dims
    return writer
