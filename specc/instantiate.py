"""Closing an op over the constants of a node: names become values, `..` becomes axes, conditionals are decided."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from specc.limits import MAX_MAGNITUDE
from specc.ops import (
    Bin,
    Call,
    Cmp,
    Equation,
    Expr,
    Formula,
    FormulaEquation,
    FormulaTensor,
    Given,
    Lead,
    Load,
    Logic,
    Named,
    Neg,
    Num,
    Op,
    Recurrence,
    Reduce,
    Select,
    Size,
    Sort,
    TensorSig,
    Var,
    free_vars,
    fresh,
    rebuild,
    substitute,
)

TRUE, FALSE = Logic("true", ()), Logic("false", ())

Value = Expr | str | bool
"""A constant: a closed expression (nat, real), a label, or a flag."""


def instantiate(
    op: Op,
    values: Mapping[str, Value],
    lead: Sequence[tuple[str, Expr]] = (),
    given: Collection[str] = (),
) -> Formula:
    """`op` with its dims and constants replaced by `values`, `..` by the (index, dim) pairs of `lead`, and only those
    optional operands that `given` names. Sizes that `values` does not have stay run-time sizes. Raises ValueError where
    a leading index is the index of a result too."""
    known = {p.name: p.default for p in op.params if p.default is not None} | dict(values)
    close = _Closer(known, tuple(Var(n) for n, _ in lead), frozenset(given) | frozenset(known))
    dims = tuple(d for _, d in lead)
    inputs = tuple(close.tensor(t, dims) for t in op.inputs if not t.optional or t.name in given)
    equations = tuple(_equation(q, close, dims) for q in op.equations)
    recs = tuple(
        Recurrence(r.name, tuple((v, close(n)) for v, n in r.indices), close(r.init), close(r.step)) for r in op.recs
    )
    return Formula(op.name, inputs, equations, recs, tuple(n for n, _ in lead))


def _equation(q: Equation, close: _Closer, dims: tuple[Expr, ...]) -> FormulaEquation:
    indices: list[str] = []
    for index in q.indices:
        indices += [v.name for v in close.lead] if isinstance(index, Lead) else [index.name]
    if len(set(indices)) < len(indices):
        raise ValueError(f"a leading index of `{q.tensor.name}` is one of its own: {', '.join(indices)}")
    return FormulaEquation(close.tensor(q.tensor, dims), tuple(indices), close(q.expr))


class _Closer:
    def __init__(self, values: Mapping[str, Value], lead: tuple[Var, ...], given: frozenset[str]) -> None:
        self.values, self.lead, self.given = values, lead, given

    def tensor(self, t: TensorSig, lead: tuple[Expr, ...]) -> FormulaTensor:
        dims: list[Expr] = []
        for d in t.dims:
            dims += lead if isinstance(d, Lead) else [self(d)]
        return FormulaTensor(t.name, tuple(dims), t.sort)

    def __call__(self, e: Expr) -> Expr:
        match e:
            case Size(name, sort) if name in self.values:
                value = _value(self.values[name], sort)
                return Named(name, value, sort) if sort is Sort.REAL else value
            case Given(name):
                return TRUE if name in self.given else FALSE
            case Select(cond, then, other):
                decided = self(cond)
                if decided in (TRUE, FALSE):
                    return self(then if decided == TRUE else other)
                return Select(decided, self(then), self(other), e.sort)
            case Load(name, indices, sort):
                flat: list[Expr] = []
                for i in indices:
                    flat += self.lead if isinstance(i, Lead) else [self(i)]
                return Load(name, tuple(flat), sort)
            case Reduce(_, var) if Var(var) in self.lead:
                return self(_renamed(e, self.lead))
        return fold(rebuild(e, self))


def _renamed(e: Reduce, lead: tuple[Var, ...]) -> Reduce:
    """`e` over a variable that is none of the leading axes."""
    inside = (e.body,) if e.where is None else (e.where, e.body)
    var = fresh(e.var, {v.name for v in lead} | {n for i in inside for n in free_vars(i)})
    new = {e.var: Var(var)}
    where = None if e.where is None else substitute(e.where, new)
    return replace(e, var=var, where=where, body=substitute(e.body, new))


def _value(value: Value, sort: Sort) -> Expr:
    match value:
        case bool():
            return TRUE if value else FALSE
        case str():
            raise ValueError(f"label {value!r} has no value in a formula")
        case Num():
            return replace(value, sort=sort)
    return value


def fold(e: Expr) -> Expr:
    """Decides comparisons of numbers and adds up index arithmetic over numbers; one node, not its children."""
    match e:
        case Bin(op, Num(a), Num(b), Sort.INDEX):
            result = _integer(op, a, b)
            large = result is not None and result.numerator.bit_length() > MAX_MAGNITUDE
            return e if result is None or large else Num(result, Sort.INDEX)
        case Neg(Num(a, Sort.INDEX)):
            return Num(-a, Sort.INDEX)
        case Call("abs", (Num(a),), sort):
            return Num(abs(a), sort)
        case Call("max" | "min" as fn, (Num(a), Num(b)), sort):
            return Num(max(a, b) if fn == "max" else min(a, b), sort)
        case Cmp(op, Num(a), Num(b)):
            return TRUE if compare(op, a, b) else FALSE
        case Logic("not", (arg,)) if arg in (TRUE, FALSE):
            return FALSE if arg == TRUE else TRUE
        case Logic("and" | "or" as op, args) if args:
            return _junction(op, args)
    return e


def _integer(op: str, a: Fraction, b: Fraction) -> Fraction | None:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "·":
            return a * b
        case "//" if b != 0:
            return Fraction(a // b)
        case "%" if b != 0:
            return a % b
        case "^" if 0 <= b <= 64 and b.denominator == 1:
            return a ** int(b)
    return None


_RELATIONS: Mapping[str, Callable[[Fraction | float, Fraction | float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def compare(op: str, a: Fraction | float, b: Fraction | float) -> bool:
    """`a op b` for one of `< <= > >= == !=`."""
    return _RELATIONS[op](a, b)


def _junction(op: str, args: tuple[Expr, ...]) -> Expr:
    decisive, neutral = (FALSE, TRUE) if op == "and" else (TRUE, FALSE)
    if decisive in args:
        return decisive
    rest = tuple(a for a in args if a != neutral)
    if not rest:
        return neutral
    return rest[0] if len(rest) == 1 else Logic(op, rest)


def close_expr(e: Expr, values: Mapping[str, Value], given: Collection[str] = ()) -> Expr:
    """A dimension or condition of an op with `values` put in, folded as far as it goes."""
    return _Closer(values, (), frozenset(given) | frozenset(values))(e)
