"""Typed formulas: what an op means, with every name resolved.

An `Op` is generic: its sizes are symbols and its leading axes are `Lead`. `specc.instantiate` closes it over
the constants of one node and gives a `Formula`, in which only run-time sizes remain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
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

LEAD = Lead()
Dim = Expr
"""A dimension of a signature: an index expression over sizes, or `Lead` for any number of leading axes."""


@dataclass(frozen=True)
class TensorSig:
    """An operand or result. `sort` INDEX: integers (token ids, positions, lengths)."""

    name: str
    dims: tuple[Dim, ...]
    sort: Sort = Sort.REAL
    optional: bool = False


@dataclass(frozen=True)
class ParamSig:
    """A constant of an op. `default` is an Expr, a label text, a truth value, or None."""

    name: str
    kind: str
    default: Expr | str | bool | None = None
    optional: bool = False


@dataclass(frozen=True)
class Recurrence:
    """`rec name[t < T, …] from init = step`: state before time 0 is `init`; `step` reads `State(name, (t-1, …))`."""

    name: str
    indices: tuple[tuple[str, Expr], ...]
    init: Expr
    step: Expr


@dataclass(frozen=True)
class Equation:
    """`tensor[indices] = expr`; each index is a `Var` or `Lead`, over the whole dimension."""

    tensor: TensorSig
    indices: tuple[Var | Lead, ...]
    expr: Expr


@dataclass(frozen=True)
class Op:
    """An op as its library defines it."""

    name: str
    inputs: tuple[TensorSig, ...]
    params: tuple[ParamSig, ...]
    equations: tuple[Equation, ...]
    recs: tuple[Recurrence, ...] = ()
    requires: tuple[Expr, ...] = ()
    prefill: str | None = None
    doc: str = field(default="", compare=False)
    text: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def outputs(self) -> tuple[TensorSig, ...]:
        return tuple(e.tensor for e in self.equations)


@dataclass(frozen=True)
class Library:
    """All scalar functions and ops that a spec can name, sorted by name."""

    defs: tuple[ScalarDef, ...]
    ops: tuple[Op, ...]

    def op(self, name: str) -> Op:
        """Raises KeyError."""
        for op in self.ops:
            if op.name == name:
                return op
        raise KeyError(name)

    def scalar(self, name: str) -> ScalarDef:
        """Raises KeyError."""
        for fn in self.defs:
            if fn.name == name:
                return fn
        raise KeyError(name)


@dataclass(frozen=True)
class FormulaTensor:
    """A tensor of a closed formula: its dims are numbers or run-time sizes, leading axes included."""

    name: str
    dims: tuple[Expr, ...]
    sort: Sort = Sort.REAL


@dataclass(frozen=True)
class FormulaEquation:
    """`tensor[indices] = expr` with every index a variable over its dimension."""

    tensor: FormulaTensor
    indices: tuple[str, ...]
    expr: Expr


@dataclass(frozen=True)
class Formula:
    """An op closed over the constants of one node: no Lead, Given, label or flag is left, and every `Size` is a
    run-time size. `lead` names the index variables that replaced `..`."""

    op: str
    inputs: tuple[FormulaTensor, ...]
    equations: tuple[FormulaEquation, ...]
    recs: tuple[Recurrence, ...] = ()
    lead: tuple[str, ...] = ()

    @property
    def outputs(self) -> tuple[FormulaTensor, ...]:
        return tuple(e.tensor for e in self.equations)

    def tensor(self, name: str) -> FormulaTensor:
        """An input or output by name. Raises KeyError."""
        for t in (*self.inputs, *self.outputs):
            if t.name == name:
                return t
        raise KeyError(name)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct subexpressions, in reading order (extents and predicates included)."""
    match expr:
        case Load(_, indices) | State(_, indices):
            return indices
        case Neg(arg):
            return (arg,)
        case Bin(_, left, right) | Cmp(_, left, right):
            return (left, right)
        case Logic(_, args) | Call(_, args) | Apply(_, args):
            return args
        case Reduce(_, _, extent, where, body):
            return (extent, body) if where is None else (extent, where, body)
        case Softmax(_, extent, score, visible):
            return (extent, score) if visible is None else (extent, score, visible)
        case Select(cond, then, other):
            return (cond, then, other)
        case Named(_, inner) | Rounded(inner):
            return (inner,)
    return ()


def rebuild(expr: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """The same node with `f` applied to each direct subexpression."""
    changes: dict[str, object] = {}
    for fld in fields(expr):
        value = getattr(expr, fld.name)
        if isinstance(value, tuple):
            changes[fld.name] = tuple(f(v) for v in value)
        elif isinstance(value, Expr):
            changes[fld.name] = f(value)
    return replace(expr, **changes) if changes else expr  # type: ignore[arg-type]


def walk(expr: Expr) -> Iterator[Expr]:
    """`expr` and all its subexpressions, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def substitute(expr: Expr, variables: dict[str, Expr]) -> Expr:
    """Replaces free `Var`s by name. Bound variables are renamed by the caller where capture is possible."""
    if isinstance(expr, Var):
        return variables.get(expr.name, expr)
    if isinstance(expr, Reduce | Softmax) and expr.var in variables:
        if isinstance(expr, Reduce):
            variables = {k: v for k, v in variables.items() if k != expr.var}
        elif variables[expr.var] != Var(expr.var):
            return _substitute_softmax(expr, variables)
    return rebuild(expr, lambda e: substitute(e, variables))


def _substitute_softmax(expr: Softmax, variables: dict[str, Expr]) -> Expr:
    target = variables[expr.var]
    if not isinstance(target, Var):
        raise ValueError(f"softmax_{expr.var} can only be read at an index variable")
    out = rebuild(expr, lambda e: substitute(e, variables))
    assert isinstance(out, Softmax)
    return replace(out, var=target.name)


def free_vars(expr: Expr) -> tuple[str, ...]:
    """Names of the free index variables, in order of first occurrence."""
    found: dict[str, None] = {}

    def visit(e: Expr, bound: frozenset[str]) -> None:
        if isinstance(e, Var):
            if e.name not in bound:
                found.setdefault(e.name)
        elif isinstance(e, Reduce):
            visit(e.extent, bound)
            for child in children(e)[1:]:
                visit(child, bound | {e.var})
        else:
            if isinstance(e, Softmax) and e.var not in bound:
                found.setdefault(e.var)
            for child in children(e):
                visit(child, bound)

    visit(expr, frozenset())
    return tuple(found)
