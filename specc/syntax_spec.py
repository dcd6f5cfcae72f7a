"""The syntax tree of a Model Spec: what was written, with its place, before any name is resolved."""

from __future__ import annotations

from dataclasses import dataclass, field

from specc.source import Span
from specc.syntax import Expr, Name, Node, Tensor


@dataclass(frozen=True)
class Text(Node):
    """A quoted text, without its quotes."""

    value: str


@dataclass(frozen=True)
class ModelLine(Node):
    """`model google/gemma-4-31B @ 1.0`."""

    comments: tuple[str, ...]
    key: str
    version: str


@dataclass(frozen=True)
class Line(Node):
    """A line of one word and one text: `class`, `about`, `use`."""

    comments: tuple[str, ...]
    keyword: str
    text: str
    place: Span = field(compare=False, repr=False)
    """Where the text stands, quotes included."""


@dataclass(frozen=True)
class Range(Node):
    """`T in [1, 262144] "tokens"`."""

    comments: tuple[str, ...]
    name: str
    low: Expr
    high: Expr
    unit: str


@dataclass(frozen=True)
class Size(Node):
    """`name = expr`."""

    comments: tuple[str, ...]
    name: str
    value: Expr


@dataclass(frozen=True)
class Domain(Node):
    comments: tuple[str, ...]
    ranges: tuple[Range, ...]
    page: Size | None


@dataclass(frozen=True)
class Sizes(Node):
    comments: tuple[str, ...]
    sizes: tuple[Size, ...]


@dataclass(frozen=True)
class LayerClass(Node):
    """`sliding "label" where i % 6 != 5: D = 256, …`."""

    comments: tuple[str, ...]
    name: str
    label: str
    where: Expr
    sizes: tuple[Size, ...]


@dataclass(frozen=True)
class Layers(Node):
    comments: tuple[str, ...]
    count: Expr
    classes: tuple[LayerClass, ...]


@dataclass(frozen=True)
class Declared(Node):
    """A tensor that is declared on a line of its own: an input or a state."""

    comments: tuple[str, ...]
    tensor: Tensor


@dataclass(frozen=True)
class Declarations(Node):
    """The lines under `inputs` or `state`."""

    comments: tuple[str, ...]
    keyword: str
    items: tuple[Declared, ...]


@dataclass(frozen=True)
class Stream(Node):
    """`stream h[T, hidden] from h0 then h2`."""

    comments: tuple[str, ...]
    tensor: Tensor
    first: Name
    next: Name


@dataclass(frozen=True)
class Output(Node):
    comments: tuple[str, ...]
    names: tuple[Name, ...]


@dataclass(frozen=True)
class Checkpoint(Node):
    """`checkpoint "prefix." layers "prefix.layers.{i}."`; `layers` is None when it was not written."""

    comments: tuple[str, ...]
    prefix: str
    layers: str | None


@dataclass(frozen=True)
class Constant(Node):
    """`H=hidden`, or `D` alone for `D=D`."""

    name: str
    value: Expr | None


@dataclass(frozen=True)
class Arg(Node):
    """`wire`, `operand=wire`, `state + wire`, each wire with a shape where it is to be checked."""

    operand: str | None
    state: Name | None
    wire: str
    dims: tuple[Expr, ...] | None
    place: Span = field(compare=False, repr=False)
    """Where the wire stands."""


@dataclass(frozen=True)
class Out(Node):
    wire: str
    dims: tuple[Expr, ...] | None


@dataclass(frozen=True)
class Cut(Node):
    """`(q[…], k[…])`: wires cut from one of several results."""

    outs: tuple[Out, ...]


@dataclass(frozen=True)
class Bind(Node):
    """`w=wq` after `with`: the op's weight operand and the node's weight."""

    operand: str
    weight: str


@dataclass(frozen=True)
class Apply(Node):
    """`label: args -> results with binds`. One result may be cut without parentheses."""

    label: str | None
    args: tuple[Arg, ...]
    results: tuple[Out | Cut, ...]
    binds: tuple[Bind, ...]

    @property
    def outs(self) -> tuple[Out, ...]:
        """All wires that are written."""
        return tuple(o for r in self.results for o in (r.outs if isinstance(r, Cut) else (r,)))


@dataclass(frozen=True)
class ViewAxis(Node):
    """An axis of a piece's rows: `n` for all of them, or `low : high of n` (then `low` and `high` are
    given)."""

    size: Expr
    low: Expr | None
    high: Expr | None


@dataclass(frozen=True)
class Piece(Node):
    """`"tensor"[rows] as [shape]`; a name that begins with `/` takes no prefix."""

    name: str
    view: tuple[ViewAxis, ...]
    full: tuple[Expr, ...] | None


@dataclass(frozen=True)
class Tied(Node):
    """`tied node.weight`."""

    node: str
    weight: str


@dataclass(frozen=True)
class Weight(Node):
    name: str
    dims: tuple[Expr, ...]
    value: tuple[Piece, ...] | Tied


@dataclass(frozen=True)
class Row(Node):
    """One row of the node table. `layers` is `-`, `all`, or the name of a layer class."""

    comments: tuple[str, ...]
    path: str
    op: Name
    layers: Name
    constants: tuple[Constant, ...]
    applies: tuple[Apply, ...]
    weights: tuple[Weight, ...]


@dataclass(frozen=True)
class Nodes(Node):
    comments: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Storage(Node):
    """`weight bfloat16`."""

    comments: tuple[str, ...]
    role: str
    type: Name


@dataclass(frozen=True)
class Round(Node):
    """`round embed.mul to weight`, `round softmax to cache`."""

    comments: tuple[str, ...]
    target: Name
    role: Name


@dataclass(frozen=True)
class Profile(Node):
    comments: tuple[str, ...]
    storage: tuple[Storage, ...]
    rounds: tuple[Round, ...]


@dataclass(frozen=True)
class ListValue(Node):
    items: tuple[Value, ...]


@dataclass(frozen=True)
class Each(Node):
    """`each(class: value, …)`: a list with one value per layer."""

    choices: tuple[tuple[Name, Value], ...]


Value = Text | ListValue | Each | Expr


@dataclass(frozen=True)
class Entry(Node):
    """`a.b.c = value` of the published configuration."""

    comments: tuple[str, ...]
    key: str
    value: Value


@dataclass(frozen=True)
class Config(Node):
    comments: tuple[str, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class SpecFile(Node):
    """A Model Spec. Sections may be written in any order; the canonical order is that of these fields."""

    model: ModelLine
    official: Line | None
    about: Line | None
    uses: tuple[Line, ...]
    domain: Domain
    sizes: Sizes | None
    layers: Layers
    inputs: Declarations | None
    stream: Stream
    output: Output
    states: Declarations | None
    checkpoint: Checkpoint | None
    nodes: Nodes
    profile: Profile
    config: Config | None
    header: tuple[str, ...] = ()
    """Comment lines at the top that a blank line parts from the first section."""
    trailing: tuple[str, ...] = ()
