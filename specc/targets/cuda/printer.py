"""Scalar expressions as CUDA C++."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from fractions import Fraction
from math import copysign, inf, isinf, nextafter, pi
from types import MappingProxyType

from specc.formula_text import expr_text, snake
from specc.lower.ranges import Range
from specc.ops import (
    Apply,
    Bin,
    Call,
    Cmp,
    Expr,
    Logic,
    Neg,
    Num,
    Pi,
    Rounded,
    ScalarDef,
    Select,
    Size,
    Sort,
    Var,
    substitute,
)
from specc.passes.constants import fold_constants_in
from specc.passes.expand import inline_index_functions
from specc.targets.printing import ATOM, COMPARE, LEVELS, LOOSE, POWER, PRODUCT, SUM, UNARY, ExprPrinter
from specc.targets.text import paragraph

FUNCTIONS = {
    "exp": "exp", "log": "log", "sqrt": "sqrt", "abs": "fabs", "max": "fmax", "min": "fmin", "tanh": "tanh",
    "log1p": "log1p", "expm1": "expm1", "sin": "sin", "cos": "cos",
}  # fmt: skip
"""Overloaded for float and double."""
INDEX_FUNCTIONS = {"abs": "specc::magnitude", "max": "specc::larger_index", "min": "specc::smaller_index"}
TURNS = {"sin": "specc::sine", "cos": "specc::cosine"}
"""Functions of a float64 angle."""


class Printer(ExprPrinter):
    """roles: the storage type of each role, for `Rounded`."""

    def __init__(
        self,
        roles: Mapping[str, str] | None = None,
        doubles: Collection[str] = (),
        nonneg: Collection[str] = (),
        ranges: Mapping[str, Range] = MappingProxyType({}),
    ) -> None:
        super().__init__(doubles, nonneg, ranges)
        self.roles = dict(roles or {})

    def assignment(self, name: str, e: Expr, text: str) -> str:
        if e.sort is Sort.REAL:
            return f"const {'double' if self.is_double(e) else 'real'} {name} = {text};"
        return f"const {'auto' if e.sort is Sort.INDEX else 'bool'} {name} = {text};"

    def _print(self, e: Expr) -> tuple[str, int]:
        match e:
            case Num(value, sort):
                return number(value, sort)
            case Var(name) | Size(name):
                return name, ATOM
            case Neg(arg):
                return "-" + self._part(arg, e, UNARY), UNARY
            case Bin("^", left, Num(n)) if n.denominator == 1 and 2 <= n <= 8:
                return " * ".join([self._part(left, e, POWER)] * int(n)), PRODUCT
            case Bin("//" | "%"):
                return self._floor(e)
            case Bin(op, left, right):
                level = LEVELS[op]
                symbol = "*" if op == "·" else op
                return f"{self._operand(left, e, level)} {symbol} {self._operand(right, e, level + 1)}", level
            case Cmp(op, left, right):
                known = self.settled(e)
                if known is not None:
                    return str(known).lower(), ATOM
                return f"{self._text(left, SUM)} {op} {self._text(right, SUM)}", COMPARE
            case Logic("not", (arg,)):
                return f"!{self._text(arg, ATOM)}", UNARY
            case Logic(op, args) if args:
                return f" {'&&' if op == 'and' else '||'} ".join(self._text(a, COMPARE) for a in args), COMPARE - 1
            case Logic(op):
                return str(op == "true").lower(), ATOM
            case Select(cond, then, other):
                a, b = (self._side(x, e.sort) for x in (then, other))
                return f"{self._text(cond, COMPARE - 1)} ? {a} : {b}", LOOSE + 1
            case Call(fn, args):
                return self._call(fn, args, e.sort), ATOM
            case Apply(fn, args):
                return f"{snake(fn.name)}({', '.join(self._real(a) for a in args)})", ATOM
            case Rounded(inner, role):
                return f"specc::rounded<{self.roles[role]}>({self.expr(inner)})", ATOM
        raise TypeError(f"{type(e).__name__} is not a scalar expression of a kernel: {expr_text(e)}")

    def expr(self, e: Expr) -> str:
        return self._text(e, LOOSE)

    def _operand(self, e: Expr, parent: Bin, level: int) -> str:
        """An operand of arithmetic; where that is real, integers are converted."""
        if parent.sort is not Sort.REAL:
            return self._part(e, parent, level)
        double = self.is_double(parent)
        if isinstance(e, Num):
            text, own = (repr(float(e.value)), ATOM) if double else number(e.value, Sort.REAL)
            return f"({text})" if own < level or e.value < 0 else text
        return self._text(e, level) if e.sort is not Sort.INDEX else f"{'double' if double else 'real'}({self.expr(e)})"

    def _part(self, e: Expr, parent: Expr, level: int) -> str:
        """A part of arithmetic, made one of 64 bits where integers need that."""
        long = parent.sort is Sort.INDEX and e is self.widened(parent)
        return f"int64_t({self.expr(e)})" if long else self._text(e, level)

    def _side(self, e: Expr, sort: Sort) -> str:
        return number(e.value, sort)[0] if isinstance(e, Num) else self.expr(e)

    def _real(self, e: Expr) -> str:
        """An argument of a function of reals."""
        if isinstance(e, Num):
            return f"real({number(e.value, Sort.REAL)[0]})"
        return f"real({self.expr(e)})" if e.sort is Sort.INDEX else self.expr(e)

    def _floor(self, e: Bin) -> tuple[str, int]:
        """Division and remainder that round down; C++ rounds towards zero."""
        if self.is_nonneg(e.left) and self.is_nonneg(e.right):
            symbol = "/" if e.op == "//" else "%"
            return f"{self._text(e.left, PRODUCT)} {symbol} {self._text(e.right, UNARY)}", PRODUCT
        name = "floor_div" if e.op == "//" else "floor_mod"
        return f"specc::{name}({self.expr(e.left)}, {self.expr(e.right)})", ATOM

    def _call(self, fn: str, args: tuple[Expr, ...], sort: Sort) -> str:
        if fn in TURNS and self.is_double(args[0]):
            return f"{TURNS[fn]}({self.expr(args[0])}, real())"
        if sort is Sort.INDEX:
            return f"{INDEX_FUNCTIONS[fn]}({', '.join(self.expr(a) for a in args)})"
        return f"{FUNCTIONS[fn]}({', '.join(self._real(a) for a in args)})"


class _Double(Printer):
    """Everything in float64, for the host."""

    def _print(self, e: Expr) -> tuple[str, int]:
        match e:
            case Num(value, Sort.REAL):
                return repr(float(value)), ATOM if value >= 0 else UNARY
            case Pi():
                return repr(pi), ATOM
            case Bin("^", left, right):
                return f"pow({self._real(left)}, {self._real(right)})", ATOM
            case Apply(fn, args):
                inner = substitute(fn.computed or fn.body, {p.name: a for p, a in zip(fn.params, args, strict=True)})
                return self._print(inner)
        return super()._print(e)

    def is_double(self, e: Expr) -> bool:
        return not isinstance(e, Call | Apply)

    def _real(self, e: Expr) -> str:
        return repr(float(e.value)) if isinstance(e, Num) else f"double({self.expr(e)})"

    def _call(self, fn: str, args: tuple[Expr, ...], sort: Sort) -> str:
        return f"{FUNCTIONS[fn]}({', '.join(self._real(a) for a in args)})"


def double_text(e: Expr) -> str:
    """A real expression in float64."""
    return _Double().expr(e)


def number(value: Fraction, sort: Sort) -> tuple[str, int]:
    """A constant: an integer, a float32 number, or `real(…)` where float32 has to round it."""
    level = ATOM if value >= 0 else UNARY
    if sort is Sort.INDEX and value.denominator == 1:
        return str(int(value)), level
    near = nearest_double(value)
    if single(near) == near == value:
        return f"{near!r}f", level
    return f"real({near!r})", ATOM


def nearest_double(value: Fraction) -> float:
    """The float64 number nearest to `value`, or beside it where rounding that to float32 would round twice.

    Raises OverflowError for numbers that float64 does not have."""
    near = float(value)
    if value == Fraction(near):
        return near
    towards = nextafter(near, inf if value > Fraction(near) else -inf)
    return towards if single(near) != single(towards) and _closer(value, towards, near) else near


def _closer(value: Fraction, a: float, b: float) -> bool:
    """Whether `a` becomes the float32 number nearest to `value`, and `b` does not."""
    near, far = single(a), single(b)
    return not isinf(near) and (isinf(far) or abs(Fraction(near) - value) < abs(Fraction(far) - value))


def single(x: float) -> float:
    """`x` rounded to float32."""
    try:
        return float(struct.unpack("f", struct.pack("f", x))[0])
    except OverflowError:
        return copysign(inf, x)


def function_source(fn: ScalarDef) -> list[str]:
    """Lines of a device function, printed from the `computed as` form of `fn` where it has one."""
    body = fold_constants_in(inline_index_functions(fn.computed or fn.body))
    *lines, result = Printer().block([("result", body)])
    head = f"{fn.name}({', '.join(p.name for p in fn.params)}) = {expr_text(fn.body)}"
    doc = paragraph(head, 4) + (paragraph(f"computed as {expr_text(fn.computed)}", 4) if fn.computed else [])
    params = ", ".join(f"real {p.name}" for p in fn.params)
    return [
        *(f"/// {line}" for line in doc),
        f"__device__ __forceinline__ real {snake(fn.name)}({params}) {{",
        *(f"    {line}" for line in lines),
        f"    return {result.removeprefix('const real result = ')}",
        "}",
    ]
