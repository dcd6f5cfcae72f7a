"""Formulas evaluated by their definition, over named axes.

A `computed as` form is never used. A side of a conditional is read only where it is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from specc.ops import (
    Apply,
    Bin,
    Call,
    Cmp,
    Expr,
    Formula,
    Load,
    Logic,
    Named,
    Neg,
    Num,
    Pi,
    Reduce,
    Select,
    Size,
    Softmax,
    Sort,
    State,
    Var,
)  # fmt: skip
from specc.oracle.arithmetic import COMPARE, Float64
from specc.oracle.arrays import (
    Array,
    Budget,
    Values,
    align,
    both,
    gather,
    merge,
    negate,
    scalar,
)
from specc.oracle.recurrence import state
from specc.oracle.reductions import reduce, softmax
from specc.oracle.scope import Scope


class Evaluator:
    """Evaluates expressions of one formula on given operands. Raises IndexError where a read is out of range,
    ZeroDivisionError where an index is divided by 0, TooLarge where an intermediate passes the budget."""

    def __init__(
        self,
        formula: Formula,
        tensors: Mapping[str, Array],
        sizes: Mapping[str, int],
        number: Float64,
        budget: Budget,
    ) -> None:
        self.recs = {r.name: r for r in formula.recs}
        self.tensors, self.sizes, self.number, self.budget = tensors, sizes, number, budget

    def value(self, e: Expr, scope: Scope) -> Values:
        """The values of `e` over the axes of the variables it depends on."""
        match e:
            case Num(value, Sort.INDEX):
                return scalar(np.int64(int(value)))
            case Num(value):
                return self.number.number(value)
            case Pi():
                return self.number.pi()
            case Size(name):
                return self._size(name)
            case Var(name):
                return scope.vars[name]
            case Named(_, inner):
                return self.value(inner, scope)
            case Load():
                return self._load(e, scope)
            case State():
                return state(self, e, scope)
            case Neg() | Bin() | Cmp() | Call():
                return self._arithmetic(e, scope)
            case Logic(op, args):
                return self._logic(op, args, scope)
            case Apply(fn, args):
                return self._apply(fn.params, fn.body, fn.sort, args, scope)
            case Select():
                return self._select(e, scope)
            case Reduce():
                return reduce(self, e, scope)
            case Softmax():
                return softmax(self, e, scope)
        raise ValueError(f"a closed formula has no {type(e).__name__}")

    def real(self, e: Expr, scope: Scope) -> Values:
        return self.number.real(self.value(e, scope))

    def _size(self, name: str) -> Values:
        if name not in self.sizes:
            raise ValueError(f"`{name}` has no value: no operand has it as a dimension")
        return scalar(np.int64(self.sizes[name]))

    def aligned(self, *values: Values) -> tuple[Values, ...]:
        """The same values over all their axes together. Raises TooLarge where a result would be."""
        if all(v.axes == values[0].axes for v in values):
            return values
        _, out = align(*values)
        self.budget.check(np.broadcast_shapes(*(v.data.shape for v in out)))
        return out

    def _load(self, e: Load, scope: Scope) -> Values:
        indices = [self.value(i, scope) for i in e.indices]
        found = gather(e.tensor, Values((), self.tensors[e.tensor]), indices, scope.guard, self.budget)
        if e.sort is Sort.INDEX:
            return Values(found.axes, found.data.astype(np.int64))
        return Values(found.axes, self.number.load(found.data))

    def _arithmetic(self, e: Neg | Bin | Cmp | Call, scope: Scope) -> Values:
        match e:
            case Neg(arg, sort):
                inner = self.value(arg, scope)
                return (
                    Values(inner.axes, -inner.data) if sort is Sort.INDEX else self.number.neg(self.number.real(inner))
                )
            case Cmp(op, left, right):
                return self._compare(op, left, right, scope)
            case Call(fn, args, Sort.INDEX):
                parts = self.aligned(*(self.value(a, scope) for a in args))
                ufunc = {"abs": np.abs, "max": np.maximum, "min": np.minimum}[fn]
                return Values(parts[0].axes, ufunc(*(p.data for p in parts)))
            case Call(fn, args):
                return self.number.call(fn, *self.aligned(*(self.real(a, scope) for a in args)))
            case Bin(op, left, right, Sort.INDEX):
                return self._integer(op, left, right, scope)
            case Bin("^", left, Num(n)) if n.denominator == 1 and n >= 0:
                return self.number.power_int(self.real(left, scope), int(n))
            case Bin(op, left, right):
                a, b = self.aligned(self.real(left, scope), self.real(right, scope))
                f = self.number
                return {"+": f.add, "-": f.sub, "·": f.mul, "/": f.div, "^": f.power}[op](a, b)

    def _integer(self, op: str, left: Expr, right: Expr, scope: Scope) -> Values:
        a, b = self.aligned(self.value(left, scope), self.value(right, scope))
        x, y = a.data, b.data
        if op in ("//", "%") and not y.all():
            zero = Values(b.axes, y == 0)
            if scope.guard is None or both(zero, scope.guard).data.any():  # type: ignore[union-attr]
                raise ZeroDivisionError(f"an index is divided by 0 with `{op}`")
            y = np.where(y == 0, 1, y)
        out = {
            "+": np.add,
            "-": np.subtract,
            "·": np.multiply,
            "//": np.floor_divide,
            "%": np.mod,
            "^": np.power,
        }[op]
        return Values(a.axes, out(x, y))

    def _compare(self, op: str, left: Expr, right: Expr, scope: Scope) -> Values:
        if left.sort is Sort.INDEX and right.sort is Sort.INDEX:
            a, b = self.aligned(self.value(left, scope), self.value(right, scope))
            return Values(a.axes, COMPARE[op](a.data, b.data))
        a, b = self.aligned(self.real(left, scope), self.real(right, scope))
        return self.number.compare(op, a, b)

    def _logic(self, op: str, args: Sequence[Expr], scope: Scope) -> Values:
        if op == "not":
            return negate(self.value(args[0], scope))
        if op in ("true", "false"):
            return scalar(np.bool_(op == "true"))
        out = self.value(args[0], scope)
        for arg in args[1:]:
            undecided = out if op == "and" else negate(out)
            a, b = self.aligned(out, self.value(arg, scope.where(undecided)))
            out = self.number.both(a, b) if op == "and" else negate(self.number.both(negate(a), negate(b)))
        return out

    def _apply(self, params: Sequence[Var], body: Expr, sort: Sort, args: Sequence[Expr], scope: Scope) -> Values:
        values = {
            p.name: self.value(a, scope) if p.sort is Sort.INDEX else self.real(a, scope)
            for p, a in zip(params, args, strict=True)
        }
        out = self.value(body, Scope(values, scope.guard))
        return out if sort is not Sort.REAL else self.number.real(out)

    def _select(self, e: Select, scope: Scope) -> Values:
        cond = self.value(e.cond, scope)
        if cond.data.all() or not cond.data.any():
            chosen = e.then if cond.data.all() else e.other
            inner = scope if cond.data.size else scope.where(cond)
            return self.number.unsure(self._side(chosen, e.sort, inner), cond)
        if len(cond.axes) == 1:
            out = self._select_parts(e, cond, scope)
        else:
            then = self._side(e.then, e.sort, scope.where(cond))
            other = self._side(e.other, e.sort, scope.where(negate(cond)))
            out = self.number.where(*self.aligned(cond, then, other))
        return self.number.unsure(out, cond)

    def _side(self, e: Expr, sort: Sort, scope: Scope) -> Values:
        return self.real(e, scope) if sort is Sort.REAL else self.value(e, scope)

    def _select_parts(self, e: Select, cond: Values, scope: Scope) -> Values:
        """Each side over its own places of the one axis that decides."""
        axis = cond.axes[0]
        places = (np.flatnonzero(cond.data), np.flatnonzero(~cond.data))
        sides = [self._side(s, e.sort, scope.take(axis, p)) for s, p in zip((e.then, e.other), places, strict=True)]
        axes = (axis, *(a for a in merge(*sides) if a != axis))
        lengths = {a: s.length(a) for s in sides for a in s.axes}
        shape = (cond.data.size, *(lengths[a] for a in axes[1:]))
        self.budget.check(shape)
        return self.number.join(axes, shape, [(p, s.expand(axes)) for p, s in zip(places, sides, strict=True)])
