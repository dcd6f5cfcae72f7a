"""Matching the shapes of wires and weights with the dims of an op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from specc import syntax as s
from specc.diagnostics import SpecError
from specc.formula_text import dims_text, expr_text
from specc.instantiate import Value, close_expr
from specc.ops import Bin, Expr, Lead, Num, Op, Size, TensorSig, Var, walk
from specc.source import Span
from specc.typecheck.values import Lookup, evaluate, mistake, natural, number

Dims = tuple[Expr, ...]


def int_dims(dims: Dims) -> tuple[int, ...] | None:
    """The dims as integers, or None when one is a run-time size."""
    return tuple(int(d.value) for d in dims if isinstance(d, Num)) if all(isinstance(d, Num) for d in dims) else None


def width(dims: Dims) -> int | None:
    """The product of dims that are all numbers, or None."""
    sizes = int_dims(dims)
    return None if sizes is None else prod(sizes)


def rename(dims: Dims, names: dict[str, str]) -> Dims:
    """`dims` with run-time sizes renamed."""
    return tuple(Size(names.get(d.name, d.name)) if isinstance(d, Size) else d for d in dims)


def dim_names(op: Op) -> tuple[str, ...]:
    """The sizes that the signature of `op` names, in order of appearance."""
    found: dict[str, None] = {}
    for t in (*op.inputs, *op.outputs):
        for d in t.dims:
            found.update(dict.fromkeys(n.name for n in walk(d) if isinstance(n, Size)))
    return tuple(found)


@dataclass(frozen=True)
class Operand:
    """What feeds an operand: `what` as a message names it, `origin` what is known of where it comes from."""

    what: str
    dims: Dims
    span: Span | None
    origin: str = ""


@dataclass
class Matcher:
    """Binds the dims of `op`, operand by operand, left to right; `values` starts with the node's
    constants."""

    op: Op
    values: dict[str, Value]
    lead: Dims | None = None

    def match(self, sig: TensorSig, given: Operand) -> None:
        """Binds or checks every dim of `sig`. Raises SpecError (E240, E232)."""
        tail = tuple(d for d in sig.dims if not isinstance(d, Lead))
        dims = self._merge(sig, tail, given)
        split = len(dims) - len(tail)
        lead, rest = dims[:split], dims[split:]
        if len(tail) != len(sig.dims):
            if self.lead is not None and lead != self.lead:
                raise self._mismatch(sig, given, f"`..` is {dims_text(self.lead)}")
            self.lead = lead
        for dim, actual in zip(tail, rest, strict=True):
            self._unify(dim, actual, sig, given)

    def _merge(self, sig: TensorSig, tail: Dims, given: Operand) -> Dims:
        """`given.dims` with as many last axes read as one as `sig` asks for."""
        dims = given.dims
        if len(tail) == len(sig.dims):
            count = len(dims) - len(tail) + 1
        elif self.lead is not None:
            count = len(dims) - len(tail) - len(self.lead) + 1
        else:
            count = self._merge_count(tail, dims)
        merged = width(dims[len(dims) - count :]) if 1 <= count <= len(dims) and tail else None
        if count == 1 and len(dims) >= len(tail):
            return dims
        if merged is None:
            raise self._mismatch(sig, given)
        return (*dims[: len(dims) - count], number(merged))

    def _merge_count(self, tail: Dims, dims: Dims) -> int:
        wanted = close_expr(tail[-1], self.values) if tail else None
        if isinstance(wanted, Num):
            for count in range(1, len(dims) - len(tail) + 2):
                if width(dims[len(dims) - count :]) == wanted.value:
                    return count
        return 1

    def _unify(self, dim: Expr, actual: Expr, sig: TensorSig, given: Operand) -> None:
        if isinstance(dim, Size) and dim.name not in self.values:
            self.values[dim.name] = actual
            return
        closed = close_expr(dim, self.values)
        open_names = [n.name for n in walk(dim) if isinstance(n, Size) and n.name not in self.values]
        if open_names:
            solved = _solve(closed, actual)
            if solved is None:
                help_ = f"give it among the constants: `{open_names[0]}=…`"
                raise mistake(
                    "E232", f"the shapes do not tell `{open_names[0]}` of `{self.op.name}`", given.span, help_
                )
            self.values[open_names[0]] = solved
        elif closed != actual:
            raise self._mismatch(sig, given, f"`{expr_text(dim)}` is {expr_text(closed)}")

    def _mismatch(self, sig: TensorSig, given: Operand, reason: str = "") -> SpecError:
        wanted = f"`{self.op.name}` reads {sig.name}{dims_text(sig.dims)}"
        message = f"{given.what} is {dims_text(given.dims)}, but {wanted}" + (f", where {reason}" if reason else "")
        return mistake("E240", message, given.span, given.origin)


def _solve(closed: Expr, actual: Expr) -> Expr | None:
    """The size in `c · size` that makes it equal to `actual`."""
    match closed, actual:
        case Bin("·", Num(c), Size()) | Bin("·", Size(), Num(c)), Num(n) if c and (n / c).denominator == 1:
            return number(Fraction(n / c))
    return None


def lead_names(op: Op, lead: Dims) -> tuple[str, ...]:
    """Index variables for the leading axes that no variable of `op` is called: `t` or `b`, then `h`."""
    used: set[str] = set()
    for e in (x for q in op.equations for x in (q.expr, *q.indices)):
        used |= {n.name for n in walk(e) if isinstance(n, Var)} | {v for n in walk(e) if (v := getattr(n, "var", ""))}
    names: list[str] = []
    for position, dim in enumerate(lead):
        stem = (
            {"B": "b", "S": "s", "L": "l"}.get(dim.name, "t")
            if isinstance(dim, Size)
            else "t"
            if position == 0
            else "h"
        )
        candidates = (stem, *(f"{stem}{k}" for k in range(2, 100)))
        names.append(next(c for c in candidates if c not in used and c not in names))
    return tuple(names)


def shape(written: Sequence[s.Expr], lookup: Lookup) -> Dims:
    """The dims that a shape names: positive integers and run-time sizes. Raises SpecError (E201, E202)."""
    found = []
    for d in written:
        value = evaluate(d, lookup)
        if not isinstance(value, Size):
            value = number(natural(d, lookup, "a dimension"))
        found.append(value)
    return tuple(found)
