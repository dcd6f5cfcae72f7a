"""Scalar expressions as Triton source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
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
    Rounded,
    ScalarDef,
    Select,
    Size,
    Sort,
    Var,
    walk,
)
from specc.passes.constants import fold_constants_in
from specc.passes.expand import inline_index_functions
from specc.targets.printing import (
    ATOM,
    COMPARE,
    LEVELS,
    POWER,
    PRODUCT,
    SUM,
    UNARY,
    ExprPrinter,
    functions_used,
)

FUNCTIONS = {
    "exp": "tl.exp",
    "log": "tl.log",
    "sqrt": "tl.sqrt_rn",
    "abs": "tl.abs",
    "max": "tl.maximum",
    "min": "tl.minimum",
    "tanh": "libdevice.tanh",
    "log1p": "libdevice.log1p",
    "expm1": "libdevice.expm1",
    "sin": "libdevice.sin",
    "cos": "libdevice.cos",
}
"""Float32 functions. `tl` itself has no tanh, log1p or expm1; its sin and cos are the same library calls."""

TURNS = {"sin": "libdevice.sinpi", "cos": "libdevice.cospi"}
"""Functions of a float64 angle: it is reduced to a fraction of a turn in float64, and only then made float32."""


class Printer(ExprPrinter):
    """Prints expressions whose `Var`s are local variables of a kernel.

    roles: the storage type of each role, as an expression of the kernel, for `Rounded`.
    doubles: names that hold float64 values. nonneg: integer names that are never negative.
    """

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
        return f"{name} = {text}"

    def _print(self, e: Expr) -> tuple[str, int]:
        match e:
            case Num(value, sort):
                return _number(value, sort)
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
                return f"{self._real(left, e, level)} {symbol} {self._real(right, e, level + 1)}", level
            case Cmp(op, left, right):
                known = self.settled(e)
                if known is not None:
                    return str(known), ATOM
                return f"{self._text(left, SUM)} {op} {self._text(right, SUM)}", COMPARE
            case Logic("not", (arg,)):
                return f"~{self._text(arg, ATOM)}", UNARY
            case Logic(op, args) if args:
                return f" {'&' if op == 'and' else '|'} ".join(self._text(a, ATOM) for a in args), COMPARE + 1
            case Logic(op):
                return str(op == "true"), ATOM
            case Select(cond, then, other):
                a, b = (_literal(x) if e.sort is Sort.REAL else None for x in (then, other))
                return f"tl.where({self.expr(cond)}, {a or self.expr(then)}, {b or self.expr(other)})", ATOM
            case Call(fn, args):
                return self._call(fn, args), ATOM
            case Apply(fn, args):
                return f"{snake(fn.name)}({', '.join(self.expr(a) for a in args)})", ATOM
            case Rounded(inner, role):
                return self._rounded(inner, role), ATOM
        raise TypeError(f"{type(e).__name__} is not a scalar expression of a kernel: {expr_text(e)}")

    def _real(self, e: Expr, parent: Bin, level: int) -> str:
        """An operand of real arithmetic; integers are converted, to float64 where the partner is one."""
        if parent.sort is Sort.REAL and e.sort is Sort.INDEX and not isinstance(e, Num):
            return f"{self._text(e, ATOM)}.to({'tl.float64' if self.is_double(parent) else 'tl.float32'})"
        if isinstance(e, Num) and parent.sort is Sort.REAL:
            text, own = _number(e.value, Sort.REAL)
            return f"({text})" if own < level else text
        return self._part(e, parent, level)

    def _part(self, e: Expr, parent: Expr, level: int) -> str:
        """A part of arithmetic, made one of 64 bits where integers need that."""
        if parent.sort is not Sort.INDEX or e is not self.widened(parent):
            return self._text(e, level)
        tensor = any(isinstance(n, Var) for n in walk(e))
        return f"{self._text(e, ATOM)}.to(tl.int64)" if tensor else f"tl.full((), {self.expr(e)}, tl.int64)"

    def _floor(self, e: Bin) -> tuple[str, int]:
        """Python's floor division and remainder; Triton's truncate, which differs for negative operands."""
        left, right = self._text(e.left, PRODUCT), self._text(e.right, UNARY)
        if self.is_nonneg(e.left) and self.is_nonneg(e.right):
            return f"{left} {e.op} {right}", PRODUCT
        remainder = f"({left} % {right} + {right}) % {right}"
        if e.op == "%":
            return remainder, PRODUCT
        return f"({self._text(e.left, SUM)} - {remainder}) // {right}", PRODUCT

    def _call(self, fn: str, args: tuple[Expr, ...]) -> str:
        if fn in TURNS and self.is_double(args[0]):
            return f"{TURNS[fn]}(2.0 * turn_fraction({self.expr(args[0])}))"
        sorts = {a.sort for a in args}
        real = len(sorts) > 1 or (Sort.INDEX in sorts and fn not in ("abs", "max", "min"))
        parts = [self._argument(a, real) for a in args]
        return f"{FUNCTIONS[fn]}({', '.join(parts)})"

    def _argument(self, e: Expr, real: bool) -> str:
        if not real or e.sort is not Sort.INDEX:
            return self.expr(e)
        return _literal(e) or f"{self._text(e, ATOM)}.to(tl.float32)"

    def _rounded(self, inner: Expr, role: str) -> str:
        value = self.expr(inner)
        if isinstance(inner, Num):
            value = f"tl.full((), {value}, tl.float32)"
        elif not isinstance(inner, Var | Call | Apply | Select):
            value = f"({value})"
        return f"{value}.to({self.roles[role]}).to(tl.float32)"


def _number(value: Fraction, sort: Sort) -> tuple[str, int]:
    if sort is Sort.INDEX and value.denominator == 1:
        return str(int(value)), ATOM if value >= 0 else UNARY
    return repr(float(value)), ATOM if value >= 0 else UNARY


def _literal(e: Expr) -> str | None:
    """A number as a real literal."""
    return _number(e.value, Sort.REAL)[0] if isinstance(e, Num) else None


def function_source(fn: ScalarDef) -> str:
    """A device function, printed from the `computed as` form of `fn` where it has one."""
    body = fold_constants_in(inline_index_functions(fn.computed or fn.body))
    printer = Printer()
    *lines, result = printer.block([("result", body)])
    result = "return " + result.removeprefix("result = ")
    params = ", ".join(p.name for p in fn.params)
    doc = f"{fn.name}({params}) = {expr_text(fn.body)}"
    if fn.computed is not None:
        doc += f"\n\n    computed as {expr_text(fn.computed)}\n    "
    inner = "\n    ".join([f'"""{doc}"""', *lines, result])
    return f"@triton.jit\ndef {snake(fn.name)}({params}):\n    {inner}\n"


TURN_FRACTION = '''@triton.jit
def turn_fraction(angle):
    """`angle` (float64, radians) in turns, less the nearest whole number, as float32 in [-0.5, 0.5]."""
    turns = angle * 0.15915494309189535
    return (turns - tl.floor(turns + 0.5)).to(tl.float32)
'''
"""Helper that `Printer` calls for sin and cos of a float64 angle."""


def uses_turns(exprs: Iterable[Expr], doubles: Collection[str]) -> bool:
    """Whether printing `exprs` calls `turn_fraction`."""
    printer = Printer(doubles=doubles)
    return any(isinstance(n, Call) and n.fn in TURNS and printer.is_double(n.args[0]) for e in exprs for n in walk(e))


def uses_libdevice(exprs: Iterable[Expr], doubles: Collection[str]) -> bool:
    """Whether printing `exprs`, with the functions they use, calls libdevice."""
    roots = list(exprs)
    roots += [fn.computed or fn.body for fn in functions_used(roots)]
    calls = [n for e in roots for n in walk(e) if isinstance(n, Call)]
    return uses_turns(roots, doubles) or any(FUNCTIONS[c.fn].startswith("libdevice") for c in calls)
