"""The syntax tree: what was written, with its place, before any name is resolved."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from specc.source import Span


@dataclass(frozen=True)
class Node:
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Number(Node):
    value: Fraction
    text: str = field(compare=False)

    @property
    def decimal(self) -> bool:
        """Whether it is written as a decimal fraction: `30.0`, `1e-6`."""
        return "." in self.text or self.value.denominator != 1


@dataclass(frozen=True)
class Name(Node):
    name: str


@dataclass(frozen=True)
class Dots(Node):
    """`..`, the leading axes."""


@dataclass(frozen=True)
class Index(Node):
    """`name[i, j, …]`."""

    name: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True)
class Call(Node):
    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Unary(Node):
    op: str
    arg: Expr


@dataclass(frozen=True)
class Binary(Node):
    """Arithmetic: `+ - · / // % ^`; logic: `and or`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Chain(Node):
    """`a < b <= c`: comparisons that share operands."""

    ops: tuple[str, ...]
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Big(Node):
    """`Σ_j body`, `Π_{j < n | pred} body`, `Max_j body`."""

    op: str
    var: str
    bound: Expr | None
    predicate: Expr | None
    body: Expr


@dataclass(frozen=True)
class Softmax(Node):
    var: str
    score: Expr
    predicate: Expr | None


@dataclass(frozen=True)
class If(Node):
    cond: Expr
    then: Expr
    other: Expr


Expr = Number | Name | Dots | Index | Call | Unary | Binary | Chain | Big | Softmax | If


@dataclass(frozen=True)
class Tensor(Node):
    """`x[.., H]: index ?` in a signature, or an output or weight with its shape."""

    name: str
    dims: tuple[Expr, ...]
    index: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Param(Node):
    """`name: nat`, `r: real = 1`, `softcap: real?`, `norm: flag = False`, `act: label = silu`."""

    name: str
    kind: str
    default: Expr | None
    optional: bool


@dataclass(frozen=True)
class Def(Node):
    comments: tuple[str, ...]
    name: str
    params: tuple[Param, ...]
    body: Expr
    computed: Expr | None


@dataclass(frozen=True)
class Let(Node):
    comments: tuple[str, ...]
    name: str
    formals: tuple[str, ...]
    body: Expr


@dataclass(frozen=True)
class Rec(Node):
    """`rec S[t < T, a < n] from init = step`; the first index is time."""

    comments: tuple[str, ...]
    name: str
    indices: tuple[tuple[str, Expr], ...]
    init: Expr
    step: Expr


@dataclass(frozen=True)
class Require(Node):
    comments: tuple[str, ...]
    condition: Expr


@dataclass(frozen=True)
class Prefill(Node):
    comments: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class Equation(Node):
    comments: tuple[str, ...]
    name: str
    indices: tuple[Expr, ...]
    body: Expr


Statement = Let | Rec | Require | Prefill | Equation


@dataclass(frozen=True)
class Op(Node):
    comments: tuple[str, ...]
    name: str
    inputs: tuple[Tensor, ...]
    params: tuple[Param, ...]
    outputs: tuple[Tensor, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class OpsFile(Node):
    items: tuple[Def | Op, ...]
    header: tuple[str, ...] = ()
    """Comment lines at the top that a blank line parts from the first item."""
    trailing: tuple[str, ...] = ()
