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
    Recurrence,
    Reduce,
    Select,
    Size,
    Softmax,
    Sort,
    State,
    Var,
    walk,
)  # fmt: skip
from specc.oracle.arithmetic import COMPARE, Float64
from specc.oracle.arrays import (
    Array,
    Budget,
    Values,
    align,
    both,
    checked,
    gather,
    merge,
    negate,
    scalar,
    shape_of,
)
from specc.oracle.contract import contract
from specc.oracle.scope import Scope, Table


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
                return self._state(e, scope)
            case Neg() | Bin() | Cmp() | Call():
                return self._arithmetic(e, scope)
            case Logic(op, args):
                return self._logic(op, args, scope)
            case Apply(fn, args):
                return self._apply(fn.params, fn.body, fn.sort, args, scope)
            case Select():
                return self._select(e, scope)
            case Reduce():
                return self._reduce(e, scope)
            case Softmax():
                return self._softmax(e, scope)
        raise ValueError(f"a closed formula has no {type(e).__name__}")

    def real(self, e: Expr, scope: Scope) -> Values:
        return self.number.real(self.value(e, scope))

    def _size(self, name: str) -> Values:
        if name not in self.sizes:
            raise ValueError(f"`{name}` has no value: no operand has it as a dimension")
        return scalar(np.int64(self.sizes[name]))

    def _aligned(self, *values: Values) -> tuple[Values, ...]:
        self.budget.check(shape_of(*values))
        return align(*values)[1]

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
                    Values(inner.axes, -inner.data)
                    if sort is Sort.INDEX
                    else self.number.neg(self.number.real(inner))
                )
            case Cmp(op, left, right):
                return self._compare(op, left, right, scope)
            case Call(fn, args, Sort.INDEX):
                parts = self._aligned(*(self.value(a, scope) for a in args))
                ufunc = {"abs": np.abs, "max": np.maximum, "min": np.minimum}[fn]
                return Values(parts[0].axes, ufunc(*(p.data for p in parts)))
            case Call(fn, args):
                return self.number.call(fn, *self._aligned(*(self.real(a, scope) for a in args)))
            case Bin(op, left, right, Sort.INDEX):
                return self._integer(op, left, right, scope)
            case Bin("^", left, Num(n)) if n.denominator == 1 and n >= 0:
                return self.number.power_int(self.real(left, scope), int(n))
            case Bin(op, left, right):
                a, b = self._aligned(self.real(left, scope), self.real(right, scope))
                f = self.number
                return {"+": f.add, "-": f.sub, "·": f.mul, "/": f.div, "^": f.power}[op](a, b)

    def _integer(self, op: str, left: Expr, right: Expr, scope: Scope) -> Values:
        a, b = self._aligned(self.value(left, scope), self.value(right, scope))
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
            a, b = self._aligned(self.value(left, scope), self.value(right, scope))
            return Values(a.axes, COMPARE[op](a.data, b.data))
        a, b = self._aligned(self.real(left, scope), self.real(right, scope))
        return self.number.compare(op, a, b)

    def _logic(self, op: str, args: Sequence[Expr], scope: Scope) -> Values:
        if op == "not":
            return negate(self.value(args[0], scope))
        if op in ("true", "false"):
            return scalar(np.bool_(op == "true"))
        out = self.value(args[0], scope)
        for arg in args[1:]:
            undecided = out if op == "and" else negate(out)
            a, b = self._aligned(out, self.value(arg, scope.where(undecided)))
            out = self.number.both(a, b) if op == "and" else negate(self.number.both(negate(a), negate(b)))
        return out

    def _apply(
        self, params: Sequence[Var], body: Expr, sort: Sort, args: Sequence[Expr], scope: Scope
    ) -> Values:
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
            out = self.number.where(*self._aligned(cond, then, other))
        return self.number.unsure(out, cond)

    def _side(self, e: Expr, sort: Sort, scope: Scope) -> Values:
        return self.real(e, scope) if sort is Sort.REAL else self.value(e, scope)

    def _select_parts(self, e: Select, cond: Values, scope: Scope) -> Values:
        """Each side over its own places of the one axis that decides."""
        axis = cond.axes[0]
        places = (np.flatnonzero(cond.data), np.flatnonzero(~cond.data))
        sides = [
            self._side(s, e.sort, scope.take(axis, p)) for s, p in zip((e.then, e.other), places, strict=True)
        ]
        axes = (axis, *(a for a in merge(*sides) if a != axis))
        lengths = {a: s.length(a) for s in sides for a in s.axes}
        shape = (cond.data.size, *(lengths[a] for a in axes[1:]))
        self.budget.check(shape)
        return self.number.join(
            axes, shape, [(p, s.expand(axes)) for p, s in zip(places, sides, strict=True)]
        )

    def _range(
        self, var: str, extent: Expr, where: Expr | None, scope: Scope
    ) -> tuple[Scope, str, Values | None]:
        """The scope in which `var` runs over the places of its range where `where` holds anywhere; the name of its
        axis; and the mask that says where, if it is not everywhere."""
        ends = self.value(extent, scope)
        n = int(ends.data.max(initial=0))
        inner, axis = scope.over(var, np.arange(n))
        mask: Values | None = None
        if ends.axes:
            x, end = align(inner.vars[var], ends)[1]
            mask = Values(x.axes, x.data < end.data)
        if where is not None:
            held = self.value(where, inner.where(mask))
            mask = held if mask is None else self.number.both(*self._aligned(mask, held))
        if mask is None:
            return inner, axis, None
        mask = self._full(mask, axis, n)
        others = tuple(a for a in mask.axes if a != axis)
        places = np.flatnonzero(mask.any_over(others).data)
        if places.size < n:
            inner, mask = inner.take(axis, places), mask.take(axis, places)
        return inner, axis, mask

    def _full(self, mask: Values, axis: str, n: int) -> Values:
        if axis in mask.axes:
            return mask
        axes = (axis, *mask.axes)
        return mask.expand(axes).map(lambda x: np.broadcast_to(x, (n, *x.shape[1:])), axes)

    def _reduce(self, e: Reduce, scope: Scope) -> Values:
        if e.op == "Σ":
            return self._sum(e, scope)
        inner, axis, mask = self._range(e.var, e.extent, e.where, scope)
        neutral = self.number.number_of(1.0 if e.op == "Π" else -np.inf)
        if inner.vars[e.var].data.size == 0:
            return neutral
        body = self.real(e.body, inner.where(mask))
        if mask is not None:
            body = self.number.where(*self._aligned(mask, body, neutral))
        body = self._full(body, axis, inner.vars[e.var].data.size)
        out = self.number.prod(body, axis) if e.op == "Π" else self.number.max(body, axis)
        return self.number.unsure(out, mask, axis)

    def _sum(self, e: Reduce, scope: Scope) -> Values:
        parts, negative = _factors(e.body)
        where = _conjunction(
            [e.where, *(p.visible for p in parts if isinstance(p, Softmax) and p.var == e.var)]
        )
        inner, axis, mask = self._range(e.var, e.extent, where, scope)
        n = inner.vars[e.var].data.size
        if n == 0:
            return self.number.number_of(0.0)
        values = [self.real(p, inner.where(mask)) for p in parts]
        varying = [v for v in values if axis in v.axes] or [self._full(self.number.number_of(1.0), axis, n)]
        out = contract(self.number, varying, axis, mask, self.budget)
        for fixed in (v for v in values if axis not in v.axes):
            out = self.number.mul(*self._aligned(out, fixed))
        if mask is not None and len(varying) < len(values):
            some = mask.any_over((axis,))
            out = self.number.keep(*self._aligned(some, out))
        out = self.number.unsure(out, mask, axis)
        return self.number.neg(out) if negative else out

    def _softmax(self, e: Softmax, scope: Scope) -> Values:
        """exp(score - maximum) over its sum; the maximum is subtracted exactly, so it is taken as free of error."""
        wanted = scope.vars[e.var]
        outer = scope.without_guard_on(wanted.axes)
        inner, axis, mask = self._range(e.var, e.extent, e.visible, outer)
        positions = inner.vars[e.var].data
        if positions.size == 0:
            return self.number.number_of(0.0)
        score = self._full(self.real(e.score, inner.where(mask)), axis, positions.size)
        seen = (
            score
            if mask is None
            else self.number.where(*self._aligned(mask, score, self.number.number_of(-np.inf)))
        )
        top = Values(tuple(a for a in seen.axes if a != axis), self.number.max(seen, axis).data)
        weight = self.number.call("exp", self.number.sub(*self._aligned(score, top)))
        weight = weight if mask is None else self.number.keep(*self._aligned(mask, weight))
        out = self.number.div(*self._aligned(weight, self.number.sum(weight, axis)))
        out = out if mask is None else self.number.keep(*self._aligned(mask, out))
        return self._at(self.number.unsure(out, mask), axis, positions, wanted)

    def _at(self, weights: Values, axis: str, positions: Array, wanted: Values) -> Values:
        """The weights at the positions that are wanted; 0 at those that are not among `positions`."""
        places = np.clip(np.searchsorted(positions, wanted.data), 0, positions.size - 1)
        there = positions[places] == wanted.data
        if len(wanted.axes) == 1 and wanted.axes[0] not in weights.axes:
            renamed = tuple(wanted.axes[0] if a == axis else a for a in weights.axes)
            found = Values(renamed, weights.data, weights.error)
            if not np.array_equal(places, np.arange(positions.size)):
                found = found.take(wanted.axes[0], places)
        else:
            others = [a for a in weights.axes if a != axis]
            ranges = {a: Values((a,), np.arange(weights.length(a))) for a in others}
            indices = [Values(wanted.axes, places) if a == axis else ranges[a] for a in weights.axes]
            found = gather("softmax", weights, indices, None, self.budget)
        return found if there.all() else self.number.keep(*self._aligned(Values(wanted.axes, there), found))

    def _state(self, e: State, scope: Scope) -> Values:
        rec = self.recs[e.name]
        extents = [int(self.value(n, Scope()).data) for _, n in rec.indices]
        indices = [self.value(i, scope) for i in e.indices]
        rest = [checked(e.name, k, indices[k], extents[k], scope.guard) for k in range(1, len(indices))]
        time = Values(indices[0].axes, np.maximum(indices[0].data, -1))
        time = checked(e.name, 0, Values(time.axes, time.data + 1), extents[0] + 1, scope.guard)
        indices = [Values(time.axes, time.data - 1), *rest]
        table = scope.previous.get(e.name) or self._run(rec, extents, indices)
        places = [Values(i.axes, table.places(k, i.data)) for k, i in enumerate(indices)]
        return gather(e.name, table.values, places, scope.guard, self.budget)

    def _run(self, rec: Recurrence, extents: Sequence[int], indices: Sequence[Values]) -> Table:
        """The recurrence from time 0 on, kept at the times and, where its steps allow it, the places of `indices`."""
        free = _pointwise(rec)
        names = tuple(name for name, _ in rec.indices)
        positions = [np.unique(indices[0].data)]
        for k in range(1, len(names)):
            positions.append(np.unique(indices[k].data) if names[k] in free else np.arange(extents[k]))
        axes, shape = ("time", *names[1:]), tuple(p.size for p in positions)
        self.budget.check(shape)
        vars_ = {n: Values((n,), p) for n, p in zip(names[1:], positions[1:], strict=True)}
        scope = Scope({names[0]: scalar(0), **vars_})
        kept: list[tuple[Array, Values]] = []
        state = self._frame(self.real(rec.init, scope), axes, shape)
        for t in range(-1, int(positions[0].max(initial=-1)) + 1):
            if t >= 0:
                before = {rec.name: Table((np.array([t - 1]), *positions[1:]), state)}
                step = Scope({names[0]: scalar(t), **vars_}, None, before)
                state = self._frame(self.real(rec.step, step), axes, shape)
            place = np.flatnonzero(positions[0] == t)
            kept += [(place, state)] if place.size else []
        return Table(tuple(positions), self.number.join(axes, shape, kept))

    def _frame(self, v: Values, axes: tuple[str, ...], shape: tuple[int, ...]) -> Values:
        """A state at one time over all its axes."""
        return v.expand(axes).map(lambda x: np.broadcast_to(x, (1, *shape[1:])), axes)


def _pointwise(rec: Recurrence) -> tuple[str, ...]:
    """Indices at which a step reads the state only at their own place, so that places can be left out."""
    nodes = list(walk(rec.step))
    reads = [n.indices for n in nodes if isinstance(n, State) and n.name == rec.name]
    bound = {n.var for n in nodes if isinstance(n, Reduce)}
    names = [name for name, _ in rec.indices]
    return tuple(
        name for k, name in enumerate(names) if name not in bound and all(r[k] == Var(name) for r in reads)
    )


def _factors(e: Expr) -> tuple[list[Expr], bool]:
    """The factors of a product, and whether it is negated."""
    match e:
        case Named(_, inner):
            return _factors(inner)
        case Neg(arg, Sort.REAL):
            parts, negative = _factors(arg)
            return parts, not negative
        case Bin("·", left, right, Sort.REAL):
            (a, m), (b, n) = _factors(left), _factors(right)
            return a + b, m != n
    return [e], False


def _conjunction(conditions: Sequence[Expr | None]) -> Expr | None:
    given = tuple(c for c in conditions if c is not None)
    if len(given) > 1:
        return Logic("and", given)
    return given[0] if given else None
