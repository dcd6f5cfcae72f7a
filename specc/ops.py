"""Typed formulas: what an op means, with every name resolved.

An `Op` is generic: its sizes are symbols and its leading axes are `Lead`. `specc.instantiate` closes it over
the constants of one node and gives a `Formula`, in which only run-time sizes remain.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from specc.diagnostics import Diagnostic
from specc.source import Span
from specc.terms import (
    ELEMENTARY as ELEMENTARY,
)
from specc.terms import (
    Apply as Apply,
)
from specc.terms import (
    Bin as Bin,
)
from specc.terms import (
    Call as Call,
)
from specc.terms import (
    Cmp as Cmp,
)
from specc.terms import (
    Expr as Expr,
)
from specc.terms import (
    Given as Given,
)
from specc.terms import (
    Lead as Lead,
)
from specc.terms import (
    Load as Load,
)
from specc.terms import (
    Logic as Logic,
)
from specc.terms import (
    Named as Named,
)
from specc.terms import (
    Neg as Neg,
)
from specc.terms import (
    Num as Num,
)
from specc.terms import (
    Pi as Pi,
)
from specc.terms import (
    Reduce as Reduce,
)
from specc.terms import (
    Rounded as Rounded,
)
from specc.terms import (
    ScalarDef as ScalarDef,
)
from specc.terms import (
    Select as Select,
)
from specc.terms import (
    Size as Size,
)
from specc.terms import (
    Softmax as Softmax,
)
from specc.terms import (
    Sort as Sort,
)
from specc.terms import (
    State as State,
)
from specc.terms import (
    Var as Var,
)
from specc.trees import (
    children as children,
)
from specc.trees import (
    free_vars as free_vars,
)
from specc.trees import (
    fresh as fresh,
)
from specc.trees import (
    rebuild as rebuild,
)
from specc.trees import (
    substitute as substitute,
)
from specc.trees import (
    walk as walk,
)

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
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False)

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
