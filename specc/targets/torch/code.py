"""Python expressions as text with their precedence, spelt the way `ruff format` spells them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction

from specc.limits import MAX_MAGNITUDE


class Level(IntEnum):
    """Python's precedence, loosest first."""

    TERNARY = 1
    OR = 2
    AND = 3
    NOT = 4
    COMPARE = 5
    BITOR = 6
    BITAND = 8
    SUM = 10
    PRODUCT = 11
    UNARY = 12
    POWER = 13
    ATOM = 14


OPERATORS: dict[str, tuple[str, Level]] = {
    "+": ("+", Level.SUM), "-": ("-", Level.SUM),
    "·": ("*", Level.PRODUCT), "/": ("/", Level.PRODUCT), "//": ("//", Level.PRODUCT), "%": ("%", Level.PRODUCT),
    "&": ("&", Level.BITAND), "|": ("|", Level.BITOR), "and": ("and", Level.AND), "or": ("or", Level.OR),
}  # fmt: skip
SIMPLE = re.compile(r"-?[A-Za-z_][A-Za-z_0-9.]*|-?[0-9.]+(e[+-]?[0-9]+)?")


@dataclass(frozen=True)
class Code:
    """An expression. `level` is that of its outermost operator."""

    text: str
    level: Level = Level.ATOM

    def at(self, level: int) -> str:
        """The text, in parentheses where it binds looser than `level`."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def atom(self) -> str:
        return self.at(Level.ATOM)

    @property
    def simple(self) -> bool:
        """Whether it is a name, an attribute or a number, signed or not."""
        return SIMPLE.fullmatch(self.text) is not None

    def method(self, name: str, *args: str) -> Code:
        """`self.name(args)`."""
        return Code(f"{self.atom}.{name}({', '.join(args)})")


def binary(op: str, left: Code, right: Code) -> Code:
    """`left op right`, grouped as the tree is: nothing is re-associated."""
    symbol, level = OPERATORS[op]
    return Code(f"{left.at(level)} {symbol} {right.at(level + 1)}", level)


def compare(op: str, left: Code, right: Code) -> Code:
    return Code(f"{left.at(Level.BITOR)} {op} {right.at(Level.BITOR)}", Level.COMPARE)


def negative(arg: Code) -> Code:
    return Code(f"-{arg.at(Level.UNARY)}", Level.UNARY)


def power(base: Code, exponent: Code) -> Code:
    gap = "" if base.simple and exponent.simple else " "
    return Code(f"{base.atom}{gap}**{gap}{exponent.at(Level.UNARY)}", Level.POWER)


def ternary(condition: Code, then: Code, other: Code) -> Code:
    text = f"{then.at(Level.OR)} if {condition.at(Level.OR)} else {other.text}"
    return Code(text, Level.TERNARY)


def call(function: str, *args: Code | str) -> Code:
    return Code(f"{function}({', '.join(a if isinstance(a, str) else a.text for a in args)})")


def number(value: Fraction) -> Code:
    """The shortest literal that gives `value` back as a float64, or a quotient of integers. Raises ValueError for a
    number that float64 does not reach."""
    if abs(value) >= 1 << MAX_MAGNITUDE:
        raise ValueError("a number in it is too large for float64")
    if value.denominator == 1 and abs(value) < 10**15:
        text = str(value.numerator)
    elif value.denominator == 1:
        text = repr(float(value))
    else:
        text = repr(float(value))
        if Fraction(text) != value:
            return Code(f"{value.numerator} / {value.denominator}", Level.PRODUCT)
    return Code(text, Level.UNARY if text.startswith("-") else Level.ATOM)


FULL = ":"


def slice_text(start: Code | None, stop: Code | None) -> str:
    """`a:b`, with blanks round the colon where a bound is more than a name or number."""
    given = [c for c in (start, stop) if c is not None]
    if all(c.simple for c in given):
        return f"{start.text if start else ''}:{stop.text if stop else ''}"
    left = f"{start.text} " if start else ""
    return f"{left}: {stop.text}" if stop else f"{left}:"


def subscript(base: Code, items: Sequence[str]) -> Code:
    """`base[items]`: trailing whole axes are dropped, and two or more leading ones are written `...`."""
    kept = list(items)
    while kept and kept[-1] == FULL:
        kept.pop()
    if not kept:
        return base
    lead = next((n for n, item in enumerate(kept) if item != FULL), len(kept))
    whole = len(kept) == len(items)
    if whole and lead >= 2:
        kept = ["...", *kept[lead:]]
    return Code(f"{base.atom}[{', '.join(kept)}]")


def permuted(base: Code, order: Sequence[int]) -> Code:
    """`base` with its axes in `order`."""
    if list(order) == sorted(order):
        return base
    return base.method("permute", *(str(n) for n in order))
