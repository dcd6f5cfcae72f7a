"""Reductions of a formula: which are contractions, rows, or softmax-weighted sums, and their bounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from specc.bounds import softmax
from specc.bounds.arithmetic import NotSupported
from specc.bounds.numerics import Summation
from specc.bounds.scope import YES, Scope
from specc.bounds.sums import contraction, row_sum
from specc.bounds.values import EXACT, Held, Truth, Val, full, place, union
from specc.ops import Bin, Expr, Named, Neg, Num, Reduce, Rounded, Softmax, Sort, free_vars

if TYPE_CHECKING:
    from specc.bounds.evaluate import Evaluator

NEUTRAL = {"Σ": 0.0, "Π": 1.0, "Max": -np.inf}
ONE = Val((), np.ones(()), EXACT, Held.CONSTANT)


@dataclass(frozen=True)
class Product:
    """`factors` multiplied, over `divisors` that do not depend on the variable of the sum."""

    factors: tuple[Expr, ...]
    divisors: tuple[Expr, ...] = ()


def take_apart(e: Expr, var: str) -> Product:
    """`e` as a product, from left to right; a sign is a factor -1."""
    match e:
        case Named(_, inner):
            return take_apart(inner, var)
        case Neg(arg):
            a = take_apart(arg, var)
            return Product((Num(Fraction(-1)), *a.factors), a.divisors)
        case Bin("·", left, right, Sort.REAL):
            a, b = take_apart(left, var), take_apart(right, var)
            return Product((*a.factors, *b.factors), (*a.divisors, *b.divisors))
        case Bin("/", left, right) if var not in free_vars(right):
            a = take_apart(left, var)
            return Product(a.factors, (*a.divisors, right))
    return Product((e,))


def total(ev: Evaluator, e: Reduce, scope: Scope) -> Val:
    """The value of a reduction. What does not depend on its variable is taken out of a Σ, as lowering does."""
    inner = scope.bind(e.var, ev.extent(e.extent, scope))
    where = None if e.where is None else ev.truth(e.where, inner)
    if where is not None and not np.all(where.certain):
        raise NotSupported("a reduction over a condition on inexact numbers")
    if where is not None:
        inner = inner.only(where)
    if e.op != "Σ":
        return _extreme_or_product(ev, e, _body(ev, (e.body,), e, where, inner))
    parts = take_apart(e.body, e.var)
    inside = tuple(f for f in parts.factors if e.var in free_vars(f)) or (Num(Fraction(1)),)
    found = [f for f in inside if _softmax_in(f, e.var) is not None]
    if found and where is None:
        out = _weighted(ev, found[0], tuple(f for f in inside if f is not found[0]), e.var, inner)
    else:
        out = _sum(ev, inside, e, where, inner)
    for f in parts.factors:
        if e.var not in free_vars(f):
            out = ev.arithmetic.mul(ev.real(f, scope), out)
    return reduce(ev.arithmetic.div, (ev.real(d, scope) for d in parts.divisors), out)


def _sum(ev: Evaluator, factors: tuple[Expr, ...], e: Reduce, where: Truth | None, scope: Scope) -> Val:
    depth = ev.numerics.depth
    operands = _operands(ev, [ev.real(f, scope) for f in factors]) if where is None else []
    if len(operands) == 2:
        a, b = (full(v, v.axes, scope.shape(v.axes)) for v in operands)
        return contraction(ev.arithmetic, a, b, e.var, _orders(ev, a, b))
    return row_sum(ev.arithmetic, _body(ev, factors, e, where, scope), e.var, depth.row)


def _orders(ev: Evaluator, a: Val, b: Val) -> tuple[Summation, ...]:
    """How a kernel may sum: as a contraction, and where that is a product of a matrix and a vector, as a row too."""
    depth = ev.numerics.depth
    vector = set(a.axes) <= set(b.axes) or set(b.axes) <= set(a.axes)
    return (depth.contraction, depth.row) if vector else (depth.contraction,)


def _operands(ev: Evaluator, vals: list[Val]) -> list[Val]:
    """Factors with the same axes multiplied; two operands are a contraction, one is a row."""
    groups: dict[frozenset[str], Val] = {}
    for v in vals:
        key = frozenset(v.axes)
        groups[key] = v if key not in groups else ev.arithmetic.mul(groups[key], v)
    merged = list(groups.values())
    while len(merged) > 2:
        merged.sort(key=lambda v: v.value.size, reverse=True)
        b, a = merged.pop(), merged.pop()
        merged.append(ev.arithmetic.mul(a, b))
    return merged


def _body(ev: Evaluator, factors: tuple[Expr, ...], e: Reduce, where: Truth | None, scope: Scope) -> Val:
    """The terms of a reduction, one by one, with the neutral element where `where` does not hold."""
    body = reduce(ev.arithmetic.mul, (ev.real(f, scope) for f in factors))
    axes = union(tuple(a for a in body.axes if a != e.var), where.axes if where else (), (e.var,))
    body = full(ev.arithmetic.to_accumulator(body), axes, scope.shape(axes))
    if where is None:
        return body
    chosen = place(where.value, where.axes, axes)
    return Val(axes, np.where(chosen, body.value, NEUTRAL[e.op]), np.where(chosen, body.error, 0.0))


def _extreme_or_product(ev: Evaluator, e: Reduce, body: Val) -> Val:
    at = body.axes.index(e.var)
    axes = body.axes[:at] + body.axes[at + 1 :]
    match e.op:
        case "Max":
            value = np.asarray(np.max(body.value, axis=at, initial=-np.inf))
            high = np.max(body.value + body.error, axis=at, initial=-np.inf)
            low = np.max(body.value - body.error, axis=at, initial=-np.inf)
            with np.errstate(invalid="ignore"):
                error = np.where(high == low, 0.0, np.maximum(high - value, value - low))
            return Val(axes, value, np.asarray(error))
        case "Π":
            out = full(ONE, axes, body.value.shape[:at] + body.value.shape[at + 1 :])
            errors = np.broadcast_to(body.error, body.value.shape)
            for i in range(body.value.shape[at]):
                term = Val(axes, np.asarray(body.value.take(i, at)), np.asarray(errors.take(i, at)))
                out = ev.arithmetic.mul(out, term)
            return out
    raise NotSupported(f"reduction {e.op}")


def _softmax_in(e: Expr, var: str) -> tuple[Softmax, str | None] | None:
    """The softmax over `var` that a factor is, and the role it is rounded to."""
    match e:
        case Named(_, inner):
            return _softmax_in(inner, var)
        case Softmax(name) if name == var:
            return e, None
        case Rounded(Softmax(name) as inner, role) if name == var:
            return inner, role
    return None


def _weights(ev: Evaluator, e: Softmax, scope: Scope, block: int) -> softmax.Weights:
    visible = Truth((), YES, YES) if e.visible is None else ev.truth(e.visible, scope)
    if not np.all(visible.certain):
        raise NotSupported("visibility that depends on inexact numbers")
    score = ev.real(e.score, scope.only(visible))
    return softmax.weights(ev.arithmetic, score, visible, e.var, len(scope.positions[e.var]), block)


def softmax_weights(ev: Evaluator, e: Softmax, scope: Scope) -> Val:
    """Weights at the positions of `e.var` in scope; the sum runs over the whole extent."""
    depth = ev.numerics.depth
    found = _weights(ev, e, scope.bind(e.var, ev.extent(e.extent, scope)), depth.key_block)
    every = found.held
    summed = row_sum(ev.arithmetic, every, e.var, depth.weights)
    at, here = every.axes.index(e.var), scope.positions[e.var]
    error = every.error if every.error.ndim == 0 else every.error.take(here, at)
    picked = Val(every.axes, every.value.take(here, at), error)
    return softmax.zero_if_empty(ev.arithmetic.div(picked, summed), found)


def _weighted(ev: Evaluator, weight: Expr, values: tuple[Expr, ...], var: str, scope: Scope) -> Val:
    """Σ over keys of softmax · values, as one quotient of two sums."""
    node, role = _softmax_in(weight, var) or (None, None)
    assert node is not None
    value = reduce(ev.arithmetic.mul, (ev.real(v, scope) for v in values or (Num(Fraction(1)),)))
    axes = union(value.axes, (var,))
    value = full(ev.arithmetic.to_accumulator(value), axes, scope.shape(axes))
    # Where values are not finite, a kernel may go key by key.
    block = ev.numerics.depth.key_block if np.all(np.isfinite(value.value)) else 1
    found = _weights(ev, node, scope, block)
    summed = row_sum(ev.arithmetic, found.held, var, ev.numerics.depth.weights)
    dtype = None if role is None else ev.stored(role)
    held = found.held if dtype is None else softmax.round_probabilities(found.held, dtype)
    top = softmax.weighted_sum(ev.arithmetic, held, found, value, var)
    return softmax.zero_if_empty(ev.arithmetic.div(top, summed), found)
