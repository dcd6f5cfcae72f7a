"""The nodes of typed expressions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from specc.source import Span


class Sort(StrEnum):
    """What an expression denotes: an integer, a real number or a truth value."""

    INDEX = "index"
    REAL = "real"
    BOOL = "bool"


@dataclass(frozen=True)
class Num:
    """An exact literal."""

    value: Fraction
    sort: Sort = Sort.REAL
    decimal: bool = field(default=False, compare=False, repr=False)
    """Whether it comes from a number of a Model Spec that is written as a decimal fraction (`30.0`). The value is the
    same; it is not taken for an integer, and a configuration has a float."""


@dataclass(frozen=True)
class Pi:
    sort: Sort = Sort.REAL


@dataclass(frozen=True)
class Size:
    """A dimension or constant by name: `H`, `eps`; after instantiation only run-time sizes such as `T`."""

    name: str
    sort: Sort = Sort.INDEX


@dataclass(frozen=True)
class Var:
    """A bound index variable, or a parameter of a scalar function."""

    name: str
    sort: Sort = Sort.INDEX


@dataclass(frozen=True)
class Lead:
    """`..` among the indices of a `Load`: all leading axes, in order."""

    sort: Sort = Sort.INDEX


@dataclass(frozen=True)
class Load:
    """An element of an operand."""

    tensor: str
    indices: tuple[Expr, ...]
    sort: Sort = Sort.REAL


@dataclass(frozen=True)
class State:
    """An element of a recurrence, at an earlier time inside its own step."""

    name: str
    indices: tuple[Expr, ...]
    sort: Sort = Sort.REAL


@dataclass(frozen=True)
class Neg:
    arg: Expr
    sort: Sort


@dataclass(frozen=True)
class Bin:
    """`+ - · / // % ^`. `/` and `^` are real; `//` and `%` are index and floor."""

    op: str
    left: Expr
    right: Expr
    sort: Sort


@dataclass(frozen=True)
class Cmp:
    """One of `< <= > >= == !=`. Chains are conjunctions of these."""

    op: str
    left: Expr
    right: Expr
    sort: Sort = Sort.BOOL


@dataclass(frozen=True)
class Logic:
    """`and`, `or`, `not`."""

    op: str
    args: tuple[Expr, ...]
    sort: Sort = Sort.BOOL


@dataclass(frozen=True)
class Call:
    """An elementary function; see `ELEMENTARY`."""

    fn: str
    args: tuple[Expr, ...]
    sort: Sort = Sort.REAL


@dataclass(frozen=True)
class ScalarDef:
    """`def f(x, i: nat) = body [computed as computed]`. Parameters occur in the bodies as `Var`."""

    name: str
    params: tuple[Var, ...]
    body: Expr
    computed: Expr | None
    sort: Sort
    doc: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Apply:
    """A call of a scalar function that a library defines."""

    fn: ScalarDef
    args: tuple[Expr, ...]
    sort: Sort


@dataclass(frozen=True)
class Reduce:
    """`Σ`, `Π` or `Max` of `body` over `0 <= var < extent` where `where` holds. Empty: 0, 1, -inf."""

    op: str
    var: str
    extent: Expr
    where: Expr | None
    body: Expr
    sort: Sort = Sort.REAL


@dataclass(frozen=True)
class Softmax:
    """The weight at position `var` (free here): exp(score) over the sum of exp(score) at the visible positions
    of `0 <= var < extent`; 0 at a position that is not visible, so that an empty set gives 0."""

    var: str
    extent: Expr
    score: Expr
    visible: Expr | None
    sort: Sort = Sort.REAL


@dataclass(frozen=True)
class Select:
    """Lazy: only the chosen side is evaluated, so loads on the other side may be out of range."""

    cond: Expr
    then: Expr
    other: Expr
    sort: Sort


@dataclass(frozen=True)
class Given:
    """Whether an optional operand or constant was given; resolved by instantiation."""

    name: str
    sort: Sort = Sort.BOOL


@dataclass(frozen=True)
class Named:
    """The value of a `let`: transparent, but a place where a rounding profile may round."""

    name: str
    expr: Expr
    sort: Sort


@dataclass(frozen=True)
class Rounded:
    """Only in lowered formulas: `expr` rounded to the storage type of `role` (see `specc.ir.Role`)."""

    expr: Expr
    role: str
    sort: Sort = Sort.REAL


Expr = (
    Num
    | Pi
    | Size
    | Var
    | Lead
    | Load
    | State
    | Neg
    | Bin
    | Cmp
    | Logic
    | Call
    | Apply
    | Reduce
    | Softmax
    | Select
    | Given
    | Named
    | Rounded
)

ELEMENTARY: dict[str, int] = {
    "exp": 1, "expm1": 1, "log": 1, "log1p": 1, "sqrt": 1, "tanh": 1, "sin": 1, "cos": 1, "abs": 1, "max": 2, "min": 2,
}  # fmt: skip
"""Elementary functions and how many arguments they take. `abs`, `max` and `min` keep the sort index."""
