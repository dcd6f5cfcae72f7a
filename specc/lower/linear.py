"""Recurrences of a matrix state that are linear in it, with a transition of rank one: found by algebra on the step.

    R_t = γ_t · (R_{t-1} - u_t · (R_{t-1} p_t) w_tᵀ) + x_t y_tᵀ

The state has one key axis, along which p, w and y run, one value axis, along which x runs, and any number of head axes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from specc.formula_text import expr_text
from specc.kernels import Axis
from specc.lower.draft import NoFit
from specc.ops import Bin, Expr, Neg, Num, Recurrence, Reduce, Sort, State, Var, free_vars, substitute, walk
from specc.passes.rewrite import bottom_up
from specc.passes.simplify import identities

ONE, ZERO = Num(Fraction(1)), Num(Fraction(0))


@dataclass(frozen=True)
class Term:
    """A summand: ± the product of `factors`, times an element of the state, or a sum over `var` of such elements."""

    negative: bool
    factors: tuple[Expr, ...]
    state: State | None = None
    var: str | None = None
    extent: Expr | None = None

    def times(self, *factors: Expr) -> Term:
        return replace(self, factors=(*self.factors, *factors))


@dataclass(frozen=True)
class LinearState:
    """The parts of the recurrence above, each over the index variables of time, heads, and its own axis. `rate` is None
    where nothing is taken from the state, and then `probe` and `erase` are 0."""

    name: str
    time: Axis
    heads: tuple[Axis, ...]
    value: Axis
    key: Axis
    first: Expr
    decay: Expr
    rate: Expr | None
    probe: Expr
    erase: Expr
    added: Expr
    """x, along the value axis."""
    write: Expr
    """y, along the key axis."""


def has_state(e: Expr) -> bool:
    return any(isinstance(n, State) for n in walk(e))


def terms(e: Expr) -> tuple[Term, ...]:
    """`e`, which is linear in its state, as a sum. Raises NoFit where it is not."""
    if not has_state(e):
        return (Term(False, (e,)),)
    match e:
        case State():
            return (Term(False, (), e),)
        case Neg(arg):
            return tuple(replace(t, negative=not t.negative) for t in terms(arg))
        case Bin("+" | "-" as op, left, right):
            second = terms(right) if op == "+" else terms(Neg(right, Sort.REAL))
            return (*terms(left), *second)
        case Bin("·", left, right) if not (has_state(left) and has_state(right)):
            factor, rest = (right, left) if has_state(left) else (left, right)
            return tuple(t.times(factor) for t in terms(rest))
        case Bin("/", left, right) if not has_state(right):
            return tuple(t.times(Bin("/", ONE, right, Sort.REAL)) for t in terms(left))
        case Reduce("Σ", where=None):
            return tuple(_summed(t, e) for t in terms(e.body))
    raise NoFit(f"`{expr_text(e)}` is not linear in the state")


def _summed(t: Term, e: Reduce) -> Term:
    inside = [f for f in t.factors if e.var in free_vars(f)]
    outside = tuple(f for f in t.factors if e.var not in free_vars(f))
    if t.state is not None and e.var in free_vars(t.state):
        if t.var is not None:
            raise NoFit("a sum over two axes of the state")
        return replace(t, var=e.var, extent=e.extent)
    if t.var is not None and any(t.var in free_vars(f) for f in inside):
        raise NoFit("a sum inside of a sum over the state")
    return replace(t, factors=(*outside, Reduce("Σ", e.var, e.extent, None, product(inside))))


def product(factors: Iterable[Expr]) -> Expr:
    """Their product, simplified; 1 of none."""
    out: Expr = ONE
    for f in factors:
        out = bottom_up(Bin("·", out, f, Sort.REAL), identities)
    return out


def signed(negative: bool, e: Expr) -> Expr:
    return bottom_up(Neg(e, Sort.REAL), identities) if negative else e


def before(time: str) -> Expr:
    """The index of the step before."""
    return Bin("-", Var(time), Num(Fraction(1), Sort.INDEX), Sort.INDEX)


def summed_place(t: Term, names: tuple[str, ...]) -> int | None:
    """The axis of the state over which a term sums, None where it reads the element itself. Raises NoFit for any other
    reading."""
    assert t.state is not None
    found: int | None = None
    for n, (index, name) in enumerate(zip(t.state.indices[1:], names, strict=True)):
        if t.var is not None and index == Var(t.var) and found is None:
            found = n
        elif index != Var(name):
            raise NoFit(f"it reads the state at `{expr_text(t.state)}`")
    if t.var is not None and found is None:
        raise NoFit(f"it sums `{expr_text(t.state)}`")
    return found


def linear_state(rec: Recurrence, key: int | None = None) -> LinearState:
    """`rec` as a LinearState; `key`: the axis (without time) that its readers sum over. Raises NoFit."""
    (time, steps), *axes = rec.indices
    names = tuple(n for n, _ in axes)
    found = terms(rec.step)
    kept = [t for t in found if t.state is not None]
    if any(t.state is not None and t.state.indices[0] != before(time) for t in kept):
        raise NoFit("a step reads another state than the one before")
    places = {summed_place(t, names) for t in kept} - {None} | ({key} if key is not None else set())
    if len(places) > 1 or len(axes) < 2:
        raise NoFit("sums run over different axes of the state" if len(axes) > 1 else "the state is no matrix")
    place = next(iter(places), None)
    parts = _Parts(time, names, len(names) - 1 if place is None else place, found)
    return parts.assemble(rec, steps)


class _Parts:
    """Sorts the terms of a step."""

    def __init__(self, time: str, names: tuple[str, ...], key: int, found: tuple[Term, ...]) -> None:
        self.time, self.names, self.key = time, names, names[key]
        found = tuple(replace(t, factors=tuple(g for f in t.factors for g in _factors(f))) for t in found)
        self.whole = [t for t in found if t.state is not None and t.var is None]
        self.sums = [t for t in found if t.var is not None]
        self.free = [t for t in found if t.state is None]

    def assemble(self, rec: Recurrence, steps: Expr) -> LinearState:
        factors = self._decay_factors()
        decay = product(factors)
        rate, probe, erase = self._taken(factors)
        value = self._value_axis(e for e in (decay, rate, probe, erase) if e is not None)
        added, write = self._given(value)
        extents = dict(rec.indices)
        heads = tuple(Axis(n, extents[n]) for n in self.names if n not in (value, self.key))
        return LinearState(
            rec.name, Axis(self.time, steps), heads, Axis(value, extents[value]), Axis(self.key, extents[self.key]),
            rec.init, decay, rate, probe, erase, added, write,
        )  # fmt: skip

    def _decay_factors(self) -> tuple[Expr, ...]:
        if len(self.whole) != 1 or self.whole[0].negative:
            raise NoFit("the state before does not stand once in the step, with a factor")
        factors = tuple(f for f in self.whole[0].factors if f != ONE)
        if any(self.key in free_vars(f) for f in factors):
            raise NoFit(f"the decay differs along `{self.key}`, over which sums run")
        return factors

    def _taken(self, decay: tuple[Expr, ...]) -> tuple[Expr | None, Expr, Expr]:
        if not self.sums:
            return None, ZERO, ZERO
        if len(self.sums) > 1:
            raise NoFit("the transition has more than rank one")
        (t,) = self.sums
        rest = list(t.factors)
        for f in decay:
            if f not in rest:
                raise NoFit(f"`{expr_text(f)}` decays the state, but not what is taken from it")
            rest.remove(f)
        assert t.var is not None
        probe = [f for f in rest if t.var in free_vars(f)]
        erase = [f for f in rest if self.key in free_vars(f)]
        if any(f in erase for f in probe):
            raise NoFit("what is taken does not part into a sum and a vector")
        rate = signed(not t.negative, product(f for f in rest if f not in probe and f not in erase))
        return rate, substitute(product(probe), {t.var: Var(self.key)}), product(erase)

    def _value_axis(self, shared: Iterable[Expr]) -> str:
        taken = {n for e in shared for n in free_vars(e)}
        taken |= {n for t in self.free for f in t.factors if self.key in free_vars(f) for n in free_vars(f)}
        names = [n for n in self.names if n != self.key and n not in taken]
        if not names:
            raise NoFit("no axis of the state is one of values alone")
        return names[-1]

    def _given(self, value: str) -> tuple[Expr, Expr]:
        if len(self.free) != 1:
            raise NoFit("what is added is not one product" if self.free else "nothing is added to the state")
        (t,) = self.free
        write = [f for f in t.factors if self.key in free_vars(f)]
        if any(value in free_vars(f) for f in write):
            raise NoFit("what is added does not part into values and keys")
        return signed(t.negative, product(f for f in t.factors if f not in write)), product(write)


def _factors(e: Expr) -> list[Expr]:
    match e:
        case Neg(arg):
            return [Num(Fraction(-1)), *_factors(arg)]
        case Bin("·", left, right):
            return [*_factors(left), *_factors(right)]
        case Bin("/", left, right):
            return [*_factors(left), Bin("/", ONE, right, Sort.REAL)]
    return [e]
