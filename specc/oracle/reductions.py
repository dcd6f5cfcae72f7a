"""Sums, products, maxima and softmax over an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from specc.ops import Bin, Expr, Logic, Named, Neg, Reduce, Softmax, Sort
from specc.oracle.arrays import Array, Values, align, gather
from specc.oracle.contract import contract
from specc.oracle.scope import Scope

if TYPE_CHECKING:
    from specc.oracle.evaluate import Evaluator


def _range(ev: Evaluator, var: str, extent: Expr, where: Expr | None, scope: Scope) -> tuple[Scope, str, Values | None]:
    """The scope in which `var` runs over the places of its range where `where` holds anywhere; the name of
    its axis; and the mask that says where, if it is not everywhere."""
    ends = ev.value(extent, scope)
    n = int(ends.data.max(initial=0))
    inner, axis = scope.over(var, np.arange(n))
    mask: Values | None = None
    if ends.axes:
        x, end = align(inner.vars[var], ends)[1]
        mask = Values(x.axes, x.data < end.data)
    if where is not None:
        held = ev.value(where, inner.where(mask))
        mask = held if mask is None else ev.number.both(*ev.aligned(mask, held))
    if mask is None:
        return inner, axis, None
    mask = full(mask, axis, n)
    others = tuple(a for a in mask.axes if a != axis)
    places = np.flatnonzero(mask.any_over(others).data)
    if places.size < n:
        inner, mask = inner.take(axis, places), mask.take(axis, places)
    return inner, axis, mask


def full(v: Values, axis: str, n: int) -> Values:
    """The same value `n` times along `axis`, if it does not have that axis."""
    if axis in v.axes:
        return v
    axes = (axis, *v.axes)
    return v.expand(axes).map(lambda x: np.broadcast_to(x, (n, *x.shape[1:])), axes)


def reduce(ev: Evaluator, e: Reduce, scope: Scope) -> Values:
    """Σ, Π or Max of the body over the places of the range where its predicate holds; of none: 0, 1, -inf."""
    if e.op == "Σ":
        return _sum(ev, e, scope)
    inner, axis, mask = _range(ev, e.var, e.extent, e.where, scope)
    neutral = ev.number.number_of(1.0 if e.op == "Π" else -np.inf)
    if inner.vars[e.var].data.size == 0:
        return neutral
    body = ev.real(e.body, inner.where(mask))
    if mask is not None:
        body = ev.number.where(*ev.aligned(mask, body, neutral))
    body = full(body, axis, inner.vars[e.var].data.size)
    out = ev.number.prod(body, axis) if e.op == "Π" else ev.number.max(body, axis)
    return ev.number.unsure(out, mask, axis)


def _sum(ev: Evaluator, e: Reduce, scope: Scope) -> Values:
    parts, negative = _factors(e.body)
    where = _conjunction([e.where, *(p.visible for p in parts if isinstance(p, Softmax) and p.var == e.var)])
    inner, axis, mask = _range(ev, e.var, e.extent, where, scope)
    n = inner.vars[e.var].data.size
    if n == 0:
        return ev.number.number_of(0.0)
    values = [ev.real(p, inner.where(mask)) for p in parts]
    varying = [v for v in values if axis in v.axes] or [full(ev.number.number_of(1.0), axis, n)]
    out = contract(ev.number, varying, axis, mask, ev.budget)
    for fixed in (v for v in values if axis not in v.axes):
        out = ev.number.mul(*ev.aligned(out, fixed))
    if mask is not None and len(varying) < len(values):
        some = mask.any_over((axis,))
        out = ev.number.keep(*ev.aligned(some, out))
    out = ev.number.unsure(out, mask, axis)
    return ev.number.neg(out) if negative else out


def softmax(ev: Evaluator, e: Softmax, scope: Scope) -> Values:
    """exp(score - shift) over its sum. Any shift gives the same value, so the maximum counts as exact."""
    wanted = scope.vars[e.var]
    outer = scope.without_guard_on(wanted.axes)
    inner, axis, mask = _range(ev, e.var, e.extent, e.visible, outer)
    positions = inner.vars[e.var].data
    if positions.size == 0:
        return ev.number.number_of(0.0)
    score = full(ev.real(e.score, inner.where(mask)), axis, positions.size)
    seen = score if mask is None else ev.number.where(*ev.aligned(mask, score, ev.number.number_of(-np.inf)))
    top = Values(tuple(a for a in seen.axes if a != axis), ev.number.max(seen, axis).data)
    weight = ev.number.call("exp", ev.number.sub(*ev.aligned(score, top)))
    weight = weight if mask is None else ev.number.keep(*ev.aligned(mask, weight))
    out = ev.number.div(*ev.aligned(weight, ev.number.sum(weight, axis)))
    out = out if mask is None else ev.number.keep(*ev.aligned(mask, out))
    return _at(ev, ev.number.unsure(out, mask), axis, positions, wanted)


def _at(ev: Evaluator, weights: Values, axis: str, positions: Array, wanted: Values) -> Values:
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
        found = gather("softmax", weights, indices, None, ev.budget)
    return found if there.all() else ev.number.keep(*ev.aligned(Values(wanted.axes, there), found))


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
