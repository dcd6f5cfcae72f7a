"""Expressions as Python text, for what launchers compute on the host: grids, compound dimensions, tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

from specc.formula_text import expr_text
from specc.ops import Apply, Bin, Call, Cmp, Expr, Logic, Neg, Num, Pi, Select, Size, Sort, Var, rebuild, substitute
from specc.targets.divisors import divisor

ATOM, POWER, UNARY, PRODUCT, SUM, COMPARE, NOT, AND, OR, LOOSE = 10, 9, 8, 7, 6, 5, 4, 3, 2, 0
LEVELS = {"+": SUM, "-": SUM, "·": PRODUCT, "/": PRODUCT, "//": PRODUCT, "%": PRODUCT}
PLAIN = {"abs": "abs", "max": "max", "min": "min"}
NO_NAMES: Mapping[str, str] = MappingProxyType({})
NONZERO = '''
def nonzero(value: int, text: str) -> int:
    """`value`, which the formula divides by. Raises ValueError where it is 0."""
    if value == 0:
        raise ValueError(f"{text} is 0, and the formula divides by it")
    return value
'''.lstrip()


def host_text(e: Expr, names: Mapping[str, str] = NO_NAMES, level: int = LOOSE) -> str:
    """`e` in Python: integers exact, reals in float64. `names` says how sizes print, if not by their name. Parentheses
    where it would bind less tightly than `level`."""
    text, own = _print(e, names)
    return f"({text})" if own < level else text


def _print(e: Expr, names: Mapping[str, str]) -> tuple[str, int]:
    match e:
        case Num(value, sort):
            return _number(value, sort)
        case Pi():
            return "math.pi", ATOM
        case Size(name) | Var(name):
            return names.get(name, name), ATOM
        case Neg(arg):
            return "-" + host_text(arg, names, UNARY), UNARY
        case Bin("^", left, right):
            return f"math.pow({host_text(left, names)}, {host_text(right, names)})", ATOM
        case Bin(op, left, right):
            own = LEVELS[op]
            symbol = "*" if op == "·" else op
            return f"{host_text(left, names, own)} {symbol} {host_text(right, names, own + 1)}", own
        case Cmp(op, left, right):
            return f"{host_text(left, names, SUM)} {op} {host_text(right, names, SUM)}", COMPARE
        case Logic("not", (arg,)):
            return f"not {host_text(arg, names, NOT)}", NOT
        case Logic(op, args) if args:
            own = AND if op == "and" else OR
            return f" {op} ".join(host_text(a, names, own + 1) for a in args), own
        case Logic(op):
            return str(op == "true"), ATOM
        case Select(cond, then, other):
            return f"{host_text(then, names, OR)} if {host_text(cond, names, OR)} else {host_text(other, names)}", LOOSE
        case Call(fn, args):
            head = PLAIN.get(fn) or f"math.{fn}"
            return f"{head}({', '.join(host_text(a, names) for a in args)})", ATOM
        case Apply(fn, args):
            body = substitute(fn.computed or fn.body, {p.name: a for p, a in zip(fn.params, args, strict=True)})
            return _print(body, names)
    raise TypeError(f"{type(e).__name__} cannot be computed on the host: {expr_text(e)}")


def _number(value: Fraction, sort: Sort) -> tuple[str, int]:
    if value.denominator == 1 and (sort is Sort.INDEX or abs(value) < 2**53):
        return str(value.numerator), ATOM if value >= 0 else UNARY
    text = repr(float(value))
    if Fraction(text) != value and Fraction(float(value)) != value:
        return f"{value.numerator} / {value.denominator}", PRODUCT
    return text, ATOM if value >= 0 else UNARY


def nonzero_text(e: Expr, names: Mapping[str, str] = NO_NAMES) -> str:
    """A divisor in Python, refused where it is 0."""
    return f'nonzero({dim_text(e, names)}, "{expr_text(e)}")'


def dim_text(e: Expr, names: Mapping[str, str]) -> str:
    """A compound dimension in Python, refused where it would divide by 0."""
    return host_text(_settled(e, names), names)


def _settled(e: Expr, names: Mapping[str, str]) -> Expr:
    """`e` with every divisor that may be 0 as a name that is the text of its check."""
    right, inner = divisor(e), rebuild(e, lambda part: _settled(part, names))
    if right is None or not isinstance(inner, Bin):
        return inner
    return replace(inner, right=Var(nonzero_text(right, names)))


def product_text(extents: tuple[Expr, ...]) -> str:
    """The number of points of some axes: `T * 32`."""
    return " * ".join(host_text(e, level=PRODUCT) for e in extents) or "1"
