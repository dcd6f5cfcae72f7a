"""Evaluates a lowered formula over a box of index positions, with a bound on the error of every value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specc.bounds import reductions
from specc.bounds.arithmetic import Arithmetic, NotSupported
from specc.bounds.elementary import call
from specc.bounds.formats import EPS64
from specc.bounds.numerics import Numerics
from specc.bounds.scope import (
    YES,
    Scope,
    combine,
    compare_integers,
    compare_reals,
    conjunction,
    gather,
    negation,
    possibly,
)
from specc.bounds.values import EXACT, Held, Ints, Truth, Val, place, union
from specc.ops import (
    Bin,
    Call,
    Cmp,
    Expr,
    Load,
    Logic,
    Named,
    Neg,
    Num,
    Pi,
    Reduce,
    Rounded,
    Select,
    Size,
    Softmax,
    Sort,
    Var,
)

INTEGER = {"+": np.add, "-": np.subtract, "·": np.multiply, "//": np.floor_divide, "%": np.mod, "^": np.power}
MAX_POWER = 64


@dataclass(frozen=True)
class Evaluator:
    """`tensors` by name; `tables` are float64 operands; `follow`: see `Arithmetic.round_storage`."""

    numerics: Numerics
    tensors: Mapping[str, NDArray[Any]]
    sizes: Mapping[str, int]
    tables: frozenset[str] = frozenset()
    follow: bool = False

    @property
    def arithmetic(self) -> Arithmetic:
        return Arithmetic(self.numerics)

    def real(self, e: Expr, scope: Scope) -> Val:
        """The value of a real expression. Raises NotSupported, and IndexError for a load out of range."""
        if e.sort is Sort.INDEX:
            ints = self.index(e, scope)
            return Val(ints.axes, ints.value.astype(np.float64), EXACT, Held.INTEGER)
        match e:
            case Num(value):
                return _constant(float(value), float(value).as_integer_ratio() == value.as_integer_ratio())
            case Pi():
                return _constant(np.pi, False)
            case Size(name):
                return _constant(float(self.sizes[name]), True)
            case Named(_, inner):
                return self.real(inner, scope)
            case Rounded(inner, role):
                return self._rounded(inner, role, scope)
            case Load():
                return self._load(e, scope)
            case Neg(arg):
                return self.arithmetic.neg(self.real(arg, scope))
            case Bin(op, left, right):
                return self._binary(op, left, right, scope)
            case Call(fn, args):
                return self._call(fn, args, scope)
            case Select():
                return self._select(e, scope)
            case Reduce():
                return reductions.total(self, e, scope)
            case Softmax():
                return reductions.softmax_weights(self, e, scope)
        raise NotSupported(f"{type(e).__name__} has no rule for bounds")

    def stored(self, role: str) -> str | None:
        """Format that a value of `role` is rounded to, or None where that is the accumulator's."""
        dtype = self.numerics.storage.get(role, self.numerics.accumulator)
        return None if dtype == self.numerics.accumulator else dtype

    def _rounded(self, inner: Expr, role: str, scope: Scope) -> Val:
        value, dtype = self.real(inner, scope), self.stored(role)
        return value if dtype is None else self.arithmetic.round_storage(value, dtype, self.follow)

    def _binary(self, op: str, left: Expr, right: Expr, scope: Scope) -> Val:
        a, b = self.real(left, scope), self.real(right, scope)
        match op:
            case "+":
                return self.arithmetic.add(a, b)
            case "-":
                return self.arithmetic.sub(a, b)
            case "·":
                return self.arithmetic.mul(a, b)
            case "/":
                return self.arithmetic.div(a, b)
            case "^":
                return self._power(a, b)
        raise NotSupported(f"{op} between real numbers")

    def _power(self, a: Val, b: Val) -> Val:
        if b.value.ndim == 0 and b.certain and float(b.value).is_integer() and abs(b.value) <= MAX_POWER:
            return self.arithmetic.power(a, int(b.value))
        if a.held is Held.CONSTANT and b.held is Held.CONSTANT:
            return self.arithmetic.constant_power(a, b)
        raise NotSupported("a power with a real exponent outside constants and tables")

    def _call(self, fn: str, args: tuple[Expr, ...], scope: Scope) -> Val:
        vals = [self.real(a, scope) for a in args]
        match fn:
            case "abs":
                return self.arithmetic.abs(vals[0])
            case "max" | "min":
                return self.arithmetic.extreme(vals[0], vals[1], fn == "max")
        return call(self.arithmetic, fn, vals[0])

    def _select(self, e: Select, scope: Scope) -> Val:
        cond = self.truth(e.cond, scope)
        if cond.constant is not None:
            return self.real(e.then if cond.constant else e.other, scope)
        then = self.real(e.then, scope.only(possibly(cond, True)))
        other = self.real(e.other, scope.only(possibly(cond, False)))
        return self.arithmetic.select(cond, then, other)

    def _load(self, e: Load, scope: Scope) -> Val:
        axes, values = gather(e.tensor, [self.index(i, scope) for i in e.indices], self.tensors[e.tensor], scope)
        value = np.asarray(values, np.float64)
        if e.tensor in self.tables:
            return Val(axes, value, 2 * EPS64 * np.abs(value), Held.WIDE)
        low = np.abs(value) < self.numerics.flush
        lost = np.where(low, np.abs(value), 0.0) if np.any(low) else EXACT
        return Val(axes, value, lost if np.any(lost) else EXACT)

    def index(self, e: Expr, scope: Scope) -> Ints:
        """The value of an index expression."""
        match e:
            case Num(value):
                return Ints((), np.asarray(int(value), np.int64))
            case Size(name):
                return Ints((), np.asarray(self.sizes[name], np.int64))
            case Var(name):
                return Ints((name,), scope.positions[name])
            case Named(_, inner):
                return self.index(inner, scope)
            case Neg(arg):
                a = self.index(arg, scope)
                return Ints(a.axes, -a.value)
            case Load(tensor, indices):
                axes, values = gather(tensor, [self.index(i, scope) for i in indices], self.tensors[tensor], scope)
                return Ints(axes, np.asarray(values, np.int64))
            case Bin(op, left, right):
                return combine(INTEGER[op], self.index(left, scope), self.index(right, scope))
            case Call("abs", (arg,)):
                a = self.index(arg, scope)
                return Ints(a.axes, np.abs(a.value))
            case Call("max" | "min" as fn, (left, right)):
                pick = np.maximum if fn == "max" else np.minimum
                return combine(pick, self.index(left, scope), self.index(right, scope))
            case Select():
                return self._index_select(e, scope)
        raise NotSupported(f"{type(e).__name__} as an index")

    def _index_select(self, e: Select, scope: Scope) -> Ints:
        cond = self.truth(e.cond, scope)
        if not np.all(cond.certain):
            raise NotSupported("an index that depends on the comparison of inexact numbers")
        if cond.constant is not None:
            return self.index(e.then if cond.constant else e.other, scope)
        a, b = self.index(e.then, scope.only(cond)), self.index(e.other, scope.only(negation(cond)))
        axes = union(cond.axes, a.axes, b.axes)
        chosen = place(cond.value, cond.axes, axes)
        return Ints(axes, np.where(chosen, place(a.value, a.axes, axes), place(b.value, b.axes, axes)))

    def truth(self, e: Expr, scope: Scope) -> Truth:
        """The value of a condition."""
        match e:
            case Cmp(op, left, right) if left.sort is Sort.INDEX and right.sort is Sort.INDEX:
                return compare_integers(op, self.index(left, scope), self.index(right, scope))
            case Cmp(op, left, right):
                _, (a, b) = self.arithmetic.meet(self.real(left, scope), self.real(right, scope))
                return compare_reals(op, a, b)
            case Logic("true" | "false" as name):
                return Truth((), np.asarray(name == "true"), YES)
            case Logic("not", (arg,)):
                return negation(self.truth(arg, scope))
            case Logic("and" | "or" as op, args):
                return self._junction(op == "and", args, scope)
        raise NotSupported(f"{type(e).__name__} as a condition")

    def _junction(self, conjunctive: bool, args: tuple[Expr, ...], scope: Scope) -> Truth:
        """Each part is needed only where those before it leave the truth open."""
        found = self.truth(args[0], scope)
        for arg in args[1:]:
            part = self.truth(arg, scope.only(possibly(found, conjunctive)))
            sides = (found, part) if conjunctive else (negation(found), negation(part))
            found = conjunction(*sides) if conjunctive else negation(conjunction(*sides))
        return found

    def extent(self, e: Expr, scope: Scope) -> int:
        """The extent of a reduction: one number."""
        ints = self.index(e, scope)
        if ints.value.ndim:
            raise NotSupported("an extent that is not the same for all outputs")
        return int(ints.value)


def _constant(value: float, exact: bool) -> Val:
    return Val((), np.asarray(value), EXACT if exact else np.asarray(abs(value) * EPS64), Held.CONSTANT)
