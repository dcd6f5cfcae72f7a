"""Expressions in their canonical spelling, with as few parentheses as the grammar allows."""

from __future__ import annotations

from fractions import Fraction

from specc import syntax as s

SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
COMPARE = {"<=": "≤", ">=": "≥", "!=": "≠"}
IF, OR, AND, NOT, COMPARISON, SUM, PRODUCT, FACTORS, UNARY, POWER, ATOM = range(11)
"""Levels of the grammar, loosest first."""
PLAIN_DIGITS = 16
"""Longest number written without an exponent."""


def format_expr(e: s.Expr) -> str:
    """The canonical text of `e`: parsing it gives `e` back."""
    return _text(e)


def format_number(n: s.Number) -> str:
    """`5376`, `0.044715`, `1e-6`; a whole number has a point if it was written with one, and only then."""
    digits, exponent = _decimal(n.value)
    top = len(digits) + exponent
    if exponent >= 0 and top <= PLAIN_DIGITS:
        return digits + "0" * exponent + (".0" if n.decimal else "")
    if exponent < 0 and top > -4 and len(digits) <= PLAIN_DIGITS:
        padded = digits.rjust(1 - exponent, "0")
        return f"{padded[:exponent]}.{padded[exponent:]}"
    if not n.decimal:
        return f"{digits}e{exponent}"
    point = "." + (digits[1:] or "0") if len(digits) > 1 or "." in n.text else ""
    return f"{digits[0]}{point}e{top - 1}"


def _decimal(value: Fraction) -> tuple[str, int]:
    """Digits and exponent of a decimal number: value = digits · 10^exponent, no trailing zero."""
    exponent = 0
    while (value * Fraction(10) ** -exponent).denominator != 1:
        exponent -= 1
    digits = str((value * Fraction(10) ** -exponent).numerator)
    if value == 0:
        return "0", 0
    stripped = digits.rstrip("0") if exponent == 0 else digits
    return stripped, exponent + len(digits) - len(stripped)


def level(e: s.Expr) -> int:
    """The level of the grammar's rule that `e` needs."""
    match e:
        case s.If():
            return IF
        case s.Unary(_, "not", _):
            return NOT
        case s.Unary(_, _, arg):
            return PRODUCT if isinstance(arg, s.Big) else UNARY
        case s.Chain():
            return COMPARISON
        case s.Big():
            return PRODUCT
        case s.Binary(_, "^", _, _):
            return POWER
        case s.Binary(_, op, _, right):
            return {"or": OR, "and": AND, "+": SUM, "-": SUM}.get(op, PRODUCT if isinstance(right, s.Big) else FACTORS)
    return ATOM


def at_level(e: s.Expr, least: int) -> str:
    """The text of `e` where the grammar asks for the level `least`."""
    text = _text(e)
    return text if level(e) >= least else f"({text})"


def _list(items: tuple[s.Expr, ...]) -> str:
    return ", ".join(_text(i) for i in items)


def _text(e: s.Expr) -> str:
    match e:
        case s.Number():
            return format_number(e)
        case s.Name(_, name):
            return name
        case s.Dots():
            return ".."
        case s.Index(_, name, indices):
            return f"{name}[{_list(indices)}]"
        case s.Call(_, "sqrt", (s.Name() | s.Number() as arg,)):
            return f"√{_text(arg)}"
        case s.Call(_, name, args):
            return f"{'√' if name == 'sqrt' and len(args) == 1 else name}({_list(args)})"
        case s.Unary(_, "not", arg):
            return f"not {at_level(arg, NOT)}"
        case s.Unary(_, _, arg):
            return f"-{_text(arg) if isinstance(arg, s.Big) else at_level(arg, UNARY)}"
        case s.Binary():
            return _binary(e)
        case s.Chain(_, ops, args):
            rest = (f" {COMPARE.get(op, op)} {at_level(a, SUM)}" for op, a in zip(ops, args[1:], strict=True))
            return at_level(args[0], SUM) + "".join(rest)
        case s.Big():
            return _big(e)
        case s.Softmax(_, var, score, predicate):
            where = "" if predicate is None else f" | {_text(predicate)}"
            return f"softmax_{var}({_text(score)}{where})"
        case s.If(_, cond, then, other):
            return f"if {at_level(cond, OR)} then {at_level(then, OR)} else {_text(other)}"


def _binary(e: s.Binary) -> str:
    match e.op:
        case "^":
            return _power(e)
        case "or":
            return f"{at_level(e.left, OR)} or {at_level(e.right, AND)}"
        case "and":
            return f"{at_level(e.left, AND)} and {at_level(e.right, NOT)}"
        case "+" | "-":
            return f"{at_level(e.left, SUM)} {e.op} {at_level(e.right, PRODUCT)}"
    right = _text(e.right) if isinstance(e.right, s.Big) else at_level(e.right, UNARY)
    tight = e.op in "·/" and isinstance(e.left, s.Number | s.Name) and isinstance(e.right, s.Number | s.Name)
    return f"{at_level(e.left, FACTORS)}{e.op if tight else f' {e.op} '}{right}"


def _power(e: s.Binary) -> str:
    if isinstance(e.right, s.Number) and not e.right.decimal:
        return at_level(e.left, ATOM) + str(e.right.value).translate(SUPERSCRIPT)
    return f"{at_level(e.left, ATOM)} ^ {at_level(e.right, UNARY)}"


def _big(e: s.Big) -> str:
    if e.bound is None and e.predicate is None:
        head = f"{e.op}_{e.var}"
    else:
        bound = "" if e.bound is None else f" < {at_level(e.bound, SUM)}"
        where = "" if e.predicate is None else f" | {_text(e.predicate)}"
        head = f"{e.op}_{{{e.var}{bound}{where}}}"
    return f"{head} {at_level(e.body, PRODUCT)}"
