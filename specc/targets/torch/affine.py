"""Index expressions in a normal form: an integer combination of variables, sizes and whatever is not linear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from specc.instantiate import compare
from specc.limits import MAX_MAGNITUDE
from specc.ops import Bin, Call, Cmp, Expr, Logic, Named, Neg, Num, Select, Sort, Var, free_vars, rebuild
from specc.passes.powers import LARGEST


@dataclass(frozen=True)
class Linear:
    """`Σ coefficient · atom + const`; atoms in order of first occurrence, none with coefficient 0."""

    terms: tuple[tuple[Expr, int], ...]
    const: int


def linear(e: Expr) -> Linear:
    """The normal form of an index expression."""
    match e:
        case Num(value) if value.denominator == 1:
            return Linear((), int(value))
        case Named(_, inner):
            return linear(inner)
        case Neg(arg):
            return scale(linear(arg), -1)
        case Bin("+", left, right):
            return add(linear(left), linear(right))
        case Bin("-", left, right):
            return add(linear(left), scale(linear(right), -1))
        case Bin("·", left, right):
            a, b = linear(left), linear(right)
            if not a.terms or not b.terms:
                return scale(a, b.const) if not b.terms else scale(b, a.const)
    return _atom(e)


def _atom(e: Expr) -> Linear:
    inner = rebuild(e, normal)
    match inner:
        case Bin("//", left, Num(value)) if value == 1:
            return linear(left)
        case Bin("%", _, Num(value)) if value == 1:
            return Linear((), 0)
        case Num(value):
            return Linear((), int(value))
    return Linear(((inner, 1),), 0)


def add(a: Linear, b: Linear) -> Linear:
    total = dict(a.terms)
    for atom, coefficient in b.terms:
        total[atom] = total.get(atom, 0) + coefficient
    return Linear(tuple((t, c) for t, c in total.items() if c), a.const + b.const)


def scale(a: Linear, factor: int) -> Linear:
    return Linear(tuple((t, c * factor) for t, c in a.terms if factor), a.const * factor)


def integer(value: int) -> Num:
    return Num(Fraction(value), Sort.INDEX)


def expression(form: Linear) -> Expr:
    """The expression of a normal form, positive terms first."""
    out: Expr | None = None
    for atom, coefficient in sorted(form.terms, key=lambda t: t[1] < 0):
        term = atom if abs(coefficient) == 1 else Bin("·", integer(abs(coefficient)), atom, Sort.INDEX)
        if out is None:
            out = term if coefficient > 0 else Neg(term, Sort.INDEX)
        else:
            out = Bin("+" if coefficient > 0 else "-", out, term, Sort.INDEX)
    if out is None:
        return integer(form.const)
    if form.const == 0:
        return out
    return Bin("+" if form.const > 0 else "-", out, integer(abs(form.const)), Sort.INDEX)


def normal(e: Expr) -> Expr:
    """`e` with every index expression in it in normal form."""
    if e.sort is Sort.INDEX and isinstance(e, Bin | Neg | Named):
        return expression(linear(e))
    return rebuild(e, normal)


def difference(a: Expr, b: Expr) -> Linear:
    return add(linear(a), scale(linear(b), -1))


def same(a: Expr, b: Expr) -> bool:
    """Whether two index expressions are equal by their normal forms."""
    return difference(a, b) == Linear((), 0)


def plus(a: Expr, b: Expr) -> Expr:
    return expression(add(linear(a), linear(b)))


def minus(a: Expr, b: Expr) -> Expr:
    return expression(difference(a, b))


def shift_of(e: Expr) -> tuple[str, Expr] | None:
    """(v, c) when `e` is `v + c` with one variable v and a `c` without variables."""
    form = linear(e)
    moving = [(t, c) for t, c in form.terms if free_vars(t)]
    if len(moving) != 1 or moving[0][1] != 1 or not isinstance(moving[0][0], Var):
        return None
    rest = Linear(tuple(t for t in form.terms if t != moving[0]), form.const)
    return moving[0][0].name, expression(rest)


def decide(e: Expr, at: Mapping[str, int]) -> bool:
    """Truth of a condition on index variables and numbers alone. Raises ValueError for anything else."""
    match e:
        case Cmp(op, left, right):
            return compare(op, Fraction(value(left, at)), Fraction(value(right, at)))
        case Logic("not", (arg,)):
            return not decide(arg, at)
        case Logic("and", args):
            return all(decide(a, at) for a in args)
        case Logic("or", args):
            return any(decide(a, at) for a in args)
        case Logic("true" | "false" as op):
            return op == "true"
        case Select(cond, then, other):
            return decide(then if decide(cond, at) else other, at)
    raise ValueError("not a condition on indices")


def value(e: Expr, at: Mapping[str, int]) -> int:
    """The value of an index expression over variables and numbers. Raises ValueError for anything else."""
    match e:
        case Num(number) if number.denominator == 1:
            return int(number)
        case Var(name) if name in at:
            return at[name]
        case Neg(arg):
            return -value(arg, at)
        case Bin(op, left, right) if e.sort is Sort.INDEX:
            found = _apply(op, value(left, at), value(right, at))
            if found.bit_length() > MAX_MAGNITUDE:
                raise ValueError(f"`{op}` gives an index that no tensor has")
            return found
        case Call("abs", (arg,)):
            return abs(value(arg, at))
        case Call("max" | "min" as fn, (left, right)):
            pick = max if fn == "max" else min
            return pick(value(left, at), value(right, at))
        case Select(cond, then, other):
            return value(then if decide(cond, at) else other, at)
    raise ValueError("not an index expression over variables and numbers")


def _apply(op: str, a: int, b: int) -> int:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "·":
            return a * b
        case "//" if b:
            return a // b
        case "%" if b:
            return a % b
        case "^" if 0 <= b <= LARGEST:
            return int(a**b)
    raise ValueError(f"no value for `{op}`")
