"""Typed formulas as text, for pages, headers of generated files and messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from specc.ops import (
    Apply,
    Bin,
    Call,
    Cmp,
    Expr,
    Formula,
    Given,
    Lead,
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
    State,
    Var,
    children,
)

LEVEL = {"or": 1, "and": 2, "cmp": 4, "+": 5, "-": 5, "·": 6, "/": 6, "//": 6, "%": 6, "neg": 7, "^": 8}
SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
COMPARE = {"<=": "≤", ">=": "≥", "==": "=", "!=": "≠"}


EXACT = 2**20
"""Largest denominator, a power of two, with which a number is written exactly."""


def number_text(value: Fraction) -> str:
    """`5376`, `1e-06`, `0.044715`, `1/3`: the shortest text that gives the value back. A float64 with a longer tail is
    written as the shortest decimal that rounds to it: `73.32121111929344`."""
    if value.denominator == 1:
        return str(value.numerator)
    try:
        text = repr(float(value))
    except OverflowError:
        return f"{value.numerator}/{value.denominator}"
    binary = value.denominator & (value.denominator - 1) == 0 and value.denominator > EXACT
    if Fraction(text) == value or (binary and float(value) == value):
        return text
    texts = [f"{value.numerator}/{value.denominator}", *_decimal(value)]
    return min(texts, key=len)


def _decimal(value: Fraction) -> Iterator[str]:
    """All digits of a fraction, if they end."""
    places = max(_exponent(value.denominator, 2), _exponent(value.denominator, 5))
    shifted = value * 10**places
    if shifted.denominator == 1:
        digits = str(abs(shifted.numerator)).rjust(places + 1, "0")
        yield f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _exponent(number: int, prime: int) -> int:
    """How often `prime` divides `number`."""
    found = 0
    while number % prime == 0:
        number, found = number // prime, found + 1
    return found


def expr_text(e: Expr) -> str:
    """A formula on one line; a `let` is shown by its value."""
    return _text(e, 0)


def _wrap(text: str, level: int, outer: int) -> str:
    return f"({text})" if level < outer else text


def _text(e: Expr, outer: int) -> str:
    match e:
        case Num(value):
            text = number_text(value)
            return _wrap(text, 6 if "/" in text else 7 if value < 0 else 9, outer)
        case Pi():
            return "π"
        case Size(name) | Var(name):
            return name
        case Lead():
            return ".."
        case Load(name, indices) | State(name, indices):
            return f"{name}[{', '.join(_text(i, 0) for i in indices)}]"
        case Neg(arg):
            return _wrap("-" + _text(arg, 7), 7, outer)
        case Bin():
            return _wrap(_binary(e), LEVEL[e.op], outer)
        case Cmp(op, left, right):
            return _wrap(f"{_text(left, 5)} {COMPARE.get(op, op)} {_text(right, 5)}", 4, outer)
        case Logic(op, args):
            return _logic(op, args, outer)
        case Call("sqrt", (arg,)):
            return f"√{_text(arg, 9)}" if isinstance(arg, Size | Var | Num | Pi) else f"√({_text(arg, 0)})"
        case Call(fn, args):
            return f"{fn}({', '.join(_text(a, 0) for a in args)})"
        case Apply(definition, args):
            return f"{definition.name}({', '.join(_text(a, 0) for a in args)})"
        case Reduce():
            return _wrap(_reduce(e), 6, outer if outer != 6 else 0)
        case Softmax(var, _, score, visible):
            given = "" if visible is None else f" | {_text(visible, 0)}"
            return f"softmax_{var}({_text(score, 0)}{given})"
        case Select(cond, then, other):
            return _wrap(f"if {_text(cond, 0)} then {_text(then, 0)} else {_text(other, 0)}", 0, outer)
        case Given(name):
            return f"given({name})"
        case Named(_, inner):
            return _text(inner, outer)
        case Rounded(inner, role):
            return f"round_{role}({_text(inner, 0)})"


def _binary(e: Bin) -> str:
    level = LEVEL[e.op]
    if e.op == "^":
        if isinstance(e.right, Num) and e.right.value.denominator == 1 and e.right.value >= 0:
            return _text(e.left, 9) + str(e.right.value.numerator).translate(SUPERSCRIPT)
        return f"{_text(e.left, 9)}^{_text(e.right, 9)}"
    left = f"({_text(e.left, 0)})" if level == 6 and _open(e.left) else _text(e.left, level)
    return f"{left} {e.op} {_text(e.right, level if isinstance(_strip(e.right), Reduce) else level + 1)}"


def _strip(e: Expr) -> Expr:
    return _strip(e.expr) if isinstance(e, Named) else e


def _open(e: Expr) -> bool:
    """Whether the text of `e` ends in a reduction, which would swallow a factor written after it."""
    match e:
        case Reduce():
            return True
        case Named(_, inner) | Neg(inner):
            return _open(inner)
        case Bin(_, _, right):
            return LEVEL[e.op] >= 6 and e.op != "^" and _open(right)
    return False


def _reduce(e: Reduce) -> str:
    where = "" if e.where is None else f" | {_text(e.where, 0)}"
    seen = not where and any(_indexes(e.var, c) for c in children(e)[1:])
    head = f"{e.op}_{e.var}" if seen else f"{e.op}_{{{e.var} < {_text(e.extent, 5)}{where}}}"
    return f"{head} {_text(e.body, 6)}"


def _indexes(var: str, e: Expr) -> bool:
    """Whether `var` alone indexes something in `e`, which tells its range."""
    if isinstance(e, Reduce) and e.var == var:
        return False
    if isinstance(e, Load | State) and Var(var) in e.indices:
        return True
    return any(_indexes(var, c) for c in children(e))


def _logic(op: str, args: tuple[Expr, ...], outer: int) -> str:
    if not args:
        return op
    if op == "not":
        return f"not {_text(args[0], 3)}"
    chain = _chain(args) if op == "and" else None
    return _wrap(chain or f" {op} ".join(_text(a, LEVEL[op] + 1) for a in args), LEVEL[op], outer)


def _chain(args: tuple[Expr, ...]) -> str | None:
    """`a < b <= c` for comparisons that share operands."""
    parts = [a for a in args if isinstance(a, Cmp)]
    if len(parts) != len(args) or any(a.right != b.left for a, b in zip(parts, parts[1:], strict=False)):
        return None
    steps = "".join(f" {COMPARE.get(c.op, c.op)} {_text(c.right, 5)}" for c in parts)
    return _text(parts[0].left, 5) + steps


def formula_text(formula: Formula) -> tuple[str, ...]:
    """One line per recurrence and per result."""
    lines = []
    for rec in formula.recs:
        ranges = ", ".join(f"{v} < {expr_text(n)}" for v, n in rec.indices)
        lines.append(f"{rec.name}[{ranges}] from {expr_text(rec.init)} = {expr_text(rec.step)}")
    lines += [f"{q.tensor.name}[{', '.join(q.indices)}] = {expr_text(q.expr)}" for q in formula.equations]
    return tuple(lines)


def snake(name: str) -> str:
    """`geluTanh` as `gelu_tanh`, the name of a function in generated code."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def dims_text(dims: tuple[Expr, ...]) -> str:
    """`[T, 32, 256]`."""
    return "[" + ", ".join(expr_text(d) for d in dims) + "]"
