"""What printers of scalar expressions have in common, whatever the language."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from specc.instantiate import FALSE, TRUE
from specc.lower.ranges import Range, bounds_of, decide
from specc.ops import Apply, Bin, Call, Cmp, Expr, Logic, Neg, Num, ScalarDef, Select, Size, Sort, Var, children, walk
from specc.targets.index_width import fits

ATOM, POWER, UNARY, PRODUCT, SUM, COMPARE, LOOSE = 9, 8, 7, 6, 5, 4, 0
LEVELS = {"+": SUM, "-": SUM, "·": PRODUCT, "/": PRODUCT, "//": PRODUCT, "%": PRODUCT}


class ExprPrinter(ABC):
    """Prints expressions whose `Var`s are local variables of a kernel.

    doubles: names that hold float64 values. nonneg: integer names that are never negative. ranges: of integer names
    that have 32 bits; others have 64.
    """

    def __init__(
        self,
        doubles: Collection[str] = (),
        nonneg: Collection[str] = (),
        ranges: Mapping[str, Range] = MappingProxyType({}),
    ) -> None:
        self.ranges = dict(ranges)
        self.doubles = frozenset(doubles)
        self.nonneg = frozenset(nonneg)
        self.named: dict[Expr, str] = {}

    @abstractmethod
    def _print(self, e: Expr) -> tuple[str, int]:
        """The text of `e`, and how tightly it binds."""

    @abstractmethod
    def assignment(self, name: str, e: Expr, text: str) -> str:
        """The statement that makes `name` a local variable with the value `text` of `e`."""

    def expr(self, e: Expr) -> str:
        """`e` as one expression."""
        return self._text(e, LOOSE)

    def atom(self, e: Expr) -> str:
        """`e` as one expression that can be an operand of anything."""
        return self._text(e, ATOM)

    def block(self, named: Sequence[tuple[str, Expr]], prefix: str = "t") -> list[str]:
        """One assignment for each (name, expression); what occurs twice is computed once, before it is needed."""
        uses = _uses([e for _, e in named])
        shared = sorted((e for e, count in uses.items() if count > 1 and _worth_naming(e)), key=_size)
        lines: list[str] = []
        for name, whole in named:
            inside = set(walk(whole))
            for e in (s for s in shared if s in inside and s not in self.named):
                text = self._text(e, LOOSE)
                self.named[e] = f"{prefix}{len(self.named) + 1}"
                lines.append(self.assignment(self.named[e], e, text))
            lines.append(self.assignment(name, whole, self.expr(whole)))
        return lines

    def _text(self, e: Expr, outer: int) -> str:
        if e in self.named:
            return self.named[e]
        text, level = self._print(e)
        return f"({text})" if level < outer else text

    def is_double(self, e: Expr) -> bool:
        """Whether `e` is computed in float64: it reads a table, outside of a function."""
        if isinstance(e, Call | Apply):
            return False
        if isinstance(e, Var):
            return e.name in self.doubles
        return any(self.is_double(c) for c in children(e))

    def is_long(self, e: Expr) -> bool:
        """Whether an integer expression has 64 bits."""
        match e:
            case Var(name):
                return name not in self.ranges
            case Size():
                return False
            case Select(_, then, other):
                return self.is_long(then) or self.is_long(other)
        return not self._fits(e) or any(self.is_long(c) for c in children(e))

    def widened(self, e: Expr) -> Expr | None:
        """The operand of integer arithmetic that must be made one of 64 bits, if any: 32 bits do not hold what comes
        out, and no operand has more."""
        parts = [c for c in children(e) if not isinstance(c, Num)]
        if not parts or any(c.sort is not Sort.INDEX or self.is_long(c) for c in parts):
            return None
        moving = [c for c in parts if any(isinstance(n, Var) for n in walk(c))]
        return None if self._fits(e) else (moving or parts)[0]

    def settled(self, e: Cmp) -> bool | None:
        """The truth of a comparison with a number that 32 bits do not hold, where the other side has no more."""
        if all(self._fits(c) for c in children(e) if isinstance(c, Num) and c.sort is Sort.INDEX):
            return None
        known = decide(e, self.ranges)
        return known == TRUE if known in (TRUE, FALSE) else None

    def _fits(self, e: Expr) -> bool:
        return fits(bounds_of(e, self.ranges))

    def is_nonneg(self, e: Expr) -> bool:
        """Whether an integer expression is known to be 0 or more."""
        match e:
            case Num(value):
                return value >= 0
            case Size():
                return True
            case Var(name):
                return name in self.nonneg
            case Bin("+" | "·" | "//" | "%", left, right):
                return self.is_nonneg(left) and self.is_nonneg(right)
        return False


def _uses(exprs: Iterable[Expr]) -> Counter[Expr]:
    """How often each subexpression is needed, counting what is inside a repeated one once."""
    uses: Counter[Expr] = Counter()

    def visit(e: Expr) -> None:
        uses[e] += 1
        if uses[e] == 1:
            if isinstance(e, Bin) and e.op == "^":
                uses[e.left] += 1
            for child in children(e):
                visit(child)

    for e in exprs:
        visit(e)
    return uses


def _worth_naming(e: Expr) -> bool:
    return not isinstance(e, Num | Var | Size | Neg | Cmp | Logic) and bool(children(e))


def _size(e: Expr) -> int:
    return sum(1 for _ in walk(e))


def functions_used(exprs: Iterable[Expr]) -> tuple[ScalarDef, ...]:
    """Scalar functions that `exprs` call, each after those that it calls itself."""
    found: dict[str, ScalarDef] = {}

    def visit(e: Expr) -> None:
        for node in walk(e):
            if isinstance(node, Apply) and node.fn.name not in found:
                visit(node.fn.computed or node.fn.body)
                found.setdefault(node.fn.name, node.fn)

    for e in exprs:
        visit(e)
    return tuple(found.values())
