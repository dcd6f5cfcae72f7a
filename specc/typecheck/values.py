"""What an expression of a Model Spec denotes: an exact number, a symbolic real such as `√5376`, or a truth
value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ParamSpec, TypeGuard, TypeVar

from specc import syntax as s
from specc.diagnostics import Collector, Diagnostic, SpecError, Stop, nearest
from specc.formula_text import expr_text
from specc.instantiate import FALSE, TRUE, compare
from specc.limits import MAX_BITS, MAX_SIZE
from specc.ops import ELEMENTARY, Bin, Call, Expr, Neg, Num, Pi, Sort, rebuild, walk
from specc.source import Span

RUNTIME = {"T": "tokens", "B": "sequences", "S": "cached positions"}
"""Run-time sizes that a domain can give. `L`, the keys that a prefill sees, has the range of `S`."""
T = TypeVar("T")
P = ParamSpec("P")
Lookup = Callable[[s.Name], Expr]
Meanings = Mapping[str, Expr | None]
"""What names mean; None for one whose mistake is reported already."""


class Sizes(dict[str, Expr | None]):
    """What names mean, and which of them are sizes: by name the value, and where it is defined."""

    def __init__(self, names: Meanings) -> None:
        super().__init__(names)
        self.defined: dict[str, tuple[Expr, Span]] = dict(names.defined) if isinstance(names, Sizes) else {}

    def define(self, name: str, value: Expr, span: Span) -> None:
        self[name] = value
        self.defined[name] = value, span

    def definition(self, name: str) -> tuple[Expr, Span] | None:
        """The value of a size and its place; None for what is no size, or has another meaning by now."""
        found = self.defined.get(name)
        return found if found is not None and self.get(name) is found[0] else None


def mistake(code: str, message: str, span: Span | None, help: str = "") -> SpecError:
    """The error of one mistake."""
    return SpecError([Diagnostic(code, message, span, help)])


def attempt(report: Collector, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """What `action` gives, or None after its mistakes were put into `report`."""
    try:
        return action(*args, **kwargs)
    except Stop:
        raise
    except SpecError as error:
        report.take(error)
        return None


def number(value: Fraction | int, decimal: bool = False) -> Num:
    value = Fraction(value)
    return Num(value, Sort.INDEX if value.denominator == 1 else Sort.REAL, decimal)


def decimal(e: Expr) -> bool:
    """Whether a number that is written as a decimal fraction stands in `e`."""
    return any(isinstance(n, Num) and n.decimal for n in walk(e))


def as_real(e: Expr) -> Expr:
    """`e` with its integer literals made real, as an op's real constant."""
    if isinstance(e, Num):
        return replace(e, sort=Sort.REAL)
    e = rebuild(e, as_real)
    return replace(e, sort=Sort.REAL) if isinstance(e, Bin | Neg) else e


@dataclass(frozen=True)
class Table:
    """Looks names up; `π` is known everywhere. `words` may be meant by a name that is not known."""

    names: Meanings
    words: tuple[str, ...] = ()

    def __call__(self, name: s.Name) -> Expr:
        """Raises SpecError, an empty one for a name that means None."""
        if name.name in self.names:
            value = self.names[name.name]
            if value is None:
                raise SpecError([])
            return value
        if name.name in ("π", "pi"):
            return Pi()
        help_ = nearest(name.name, (*self.names, *self.words))
        if name.name in RUNTIME:
            help_ = f"give `{name.name} in [1, …]` under `domain`: the {RUNTIME[name.name]}"
        raise mistake("E201", f"unknown name `{name.name}`", name.span, help_)


def table(names: Meanings) -> Table:
    return Table(names)


def evaluate(e: s.Expr, lookup: Lookup) -> Expr:
    """`e` with names looked up and exact arithmetic done. Raises SpecError."""
    match e:
        case s.Number(_, value):
            return number(value, e.decimal)
        case s.Name():
            return lookup(e)
        case s.Unary(_, "not", arg):
            return FALSE if condition(arg, lookup) else TRUE
        case s.Unary(_, _, arg):
            inner = evaluate(arg, lookup)
            return number(-inner.value, inner.decimal) if isinstance(inner, Num) else Neg(inner, inner.sort)
        case s.Binary(_, "and" | "or" as op, left, right):
            sides = (condition(left, lookup), condition(right, lookup))
            return TRUE if (all(sides) if op == "and" else any(sides)) else FALSE
        case s.Binary(_, op, left, right):
            return arithmetic(op, evaluate(left, lookup), evaluate(right, lookup), e.span)
        case s.Chain(_, ops, args):
            values = [rational(a, lookup) for a in args]
            return TRUE if all(map(compare, ops, values, values[1:])) else FALSE
        case s.If(_, cond, then, other):
            return evaluate(then if condition(cond, lookup) else other, lookup)
        case s.Call():
            return _call(e, lookup)
    raise mistake("E203", "this has no value in a Model Spec", e.span, "write an expression over numbers and sizes")


def rational(e: s.Expr, lookup: Lookup) -> Fraction:
    """The exact value of `e`. Raises SpecError where it is irrational, a run-time size, or a condition."""
    value = evaluate(e, lookup)
    if not isinstance(value, Num):
        raise mistake("E202", "expected a number with an exact value", e.span)
    return value.value


def natural(e: s.Expr, lookup: Lookup, what: str, least: int = 1) -> int:
    """The integer that `e` is, at least `least`. Raises SpecError (E202, E206) that speaks of `what`, or of the size
    that makes it wrong, once for all that use it."""
    value = evaluate(e, lookup)
    if _whole(value) and value.value >= least:
        if value.value > MAX_SIZE:
            raise mistake("E206", f"{what} is too large", e.span, f"at most {MAX_SIZE}")
        return int(value.value)
    kind = "a positive integer" if least == 1 else f"an integer of at least {least}"
    names = lookup.names if isinstance(lookup, Table) and isinstance(lookup.names, Sizes) else Sizes({})
    for name in _factors(e):
        found = names.definition(name.name)
        if found is not None and isinstance(found[0], Num) and not (_whole(found[0]) and found[0].value >= 1):
            message = f"size `{name.name}` is {_written(found[0])}, not {kind}"
            raise mistake("E202", message, found[1], f"it is used for {what}")
    raise mistake("E202", f"{what} is {_written(value)}, not {kind}", e.span)


def _whole(e: Expr) -> TypeGuard[Num]:
    """Whether `e` is an integer, and none that is written as a decimal fraction."""
    return isinstance(e, Num) and e.value.denominator == 1 and not e.decimal


def _written(e: Expr) -> str:
    """The text of `e`; of `30.0` with the point that keeps it from being an integer."""
    return expr_text(e) + (".0" if isinstance(e, Num) and e.decimal and e.value.denominator == 1 else "")


def _factors(e: s.Expr) -> Iterator[s.Name]:
    """The names of which `e` is the product."""
    match e:
        case s.Name():
            yield e
        case s.Binary(_, "·", left, right):
            yield from _factors(left)
            yield from _factors(right)


def condition(e: s.Expr, lookup: Lookup) -> bool:
    """Whether `e` holds. Raises SpecError where `e` is not a condition."""
    value = evaluate(e, lookup)
    if value not in (TRUE, FALSE):
        raise mistake("E203", "expected a condition", e.span, "such as `i % 6 == 5`")
    return value == TRUE


def arithmetic(op: str, a: Expr, b: Expr, span: Span) -> Expr:
    """`a op b`, computed where both are numbers."""
    if Sort.BOOL in (a.sort, b.sort):
        raise mistake("E203", "expected a number, found a condition", span)
    if op in ("//", "%") and (Sort.REAL in (a.sort, b.sort) or decimal(a) or decimal(b)):
        raise mistake("E203", f"`{op}` takes integers", span)
    if op in ("/", "//", "%") and isinstance(b, Num) and b.value == 0:
        raise mistake("E203", "division by zero", span)
    if isinstance(a, Num) and isinstance(b, Num):
        result = _exact(op, a.value, b.value, span)
        if result is not None:
            return number(_bounded(result, span), a.decimal or b.decimal)
    return Bin(op, a, b, Sort.REAL if op in ("/", "^") or Sort.REAL in (a.sort, b.sort) else Sort.INDEX)


def _exact(op: str, a: Fraction, b: Fraction, span: Span) -> Fraction | None:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "·":
            return a * b
        case "/":
            return a / b
        case "//":
            return Fraction(a // b)
        case "%":
            return a % b
    return _power(a, b, span)


def _power(a: Fraction, b: Fraction, span: Span) -> Fraction | None:
    if a == 0 and b < 0:
        raise mistake("E203", "division by zero", span)
    if b.denominator != 1:
        return None
    if abs(b) * max(a.numerator.bit_length(), a.denominator.bit_length()) > 2 * MAX_BITS:
        raise mistake("E203", "number out of range", span)
    return Fraction(a ** int(b))


def _bounded(value: Fraction, span: Span) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise mistake("E203", "number out of range", span)
    return value


def _call(e: s.Call, lookup: Lookup) -> Expr:
    arity = ELEMENTARY.get(e.name)
    if arity is None:
        raise mistake("E203", f"unknown function `{e.name}`", e.span, nearest(e.name, ELEMENTARY))
    if arity != len(e.args):
        raise mistake("E203", f"`{e.name}` takes {arity} arguments, {len(e.args)} are given", e.span)
    args = [evaluate(a, lookup) for a in e.args]
    numbers = [a for a in args if isinstance(a, Num)]
    if len(numbers) == len(args):
        exact = _function(e.name, [a.value for a in numbers], e.span)
        if exact is not None:
            return number(exact, any(a.decimal for a in numbers))
    return Call(e.name, tuple(as_real(a) for a in args), Sort.REAL)


def _function(name: str, args: list[Fraction], span: Span) -> Fraction | None:
    match name:
        case "max":
            return max(args)
        case "min":
            return min(args)
        case "abs":
            return abs(args[0])
        case "sqrt" if args[0] < 0:
            raise mistake("E203", "square root of a negative number", span)
        case "log" if args[0] <= 0:
            raise mistake("E203", "logarithm of a number that is not positive", span)
        case "sqrt":
            p, q = math.isqrt(args[0].numerator), math.isqrt(args[0].denominator)
            return Fraction(p, q) if (p * p, q * q) == (args[0].numerator, args[0].denominator) else None
    return None
