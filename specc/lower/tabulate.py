"""Powers and functions of an index alone become float64 tables that the launcher fills from the formula."""

from __future__ import annotations

from collections.abc import Mapping

from specc.kernels import Table
from specc.lower.names import Names
from specc.ops import Bin, Call, Expr, Load, Num, Rounded, Size, Sort, Var, free_vars, rebuild, substitute, walk


class Tabulator:
    """Collects tables; equal expressions share one."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.tables: list[Table] = []

    def __call__(self, e: Expr, lengths: Mapping[str, int]) -> Expr:
        """`e` with its largest subexpressions over one index of known length read from tables."""
        names = free_vars(e)
        if e.sort is Sort.REAL and len(names) == 1 and names[0] in lengths and _worthwhile(e):
            return Load(self._table(e, names[0], lengths[names[0]]), (Var(names[0]),))
        return rebuild(e, lambda c: self(c, lengths))

    def _table(self, e: Expr, var: str, length: int) -> str:
        key = substitute(e, {var: Var("i")})
        for table in self.tables:
            if table.expr == key and table.extent == length:
                return table.name
        self.tables.append(Table(self.names.operand("table"), "i", length, key))
        return self.tables[-1].name


def _worthwhile(e: Expr) -> bool:
    """Whether `e` is a function of the index alone, with no rounding in it, and holds a power or a function that costs
    more than a read."""
    nodes = list(walk(e))
    if any(isinstance(n, Load | Size | Rounded) or (isinstance(n, Var) and n.sort is Sort.REAL) for n in nodes):
        return False
    return any(isinstance(n, Call) or _power(n) for n in nodes)


def _power(e: Expr) -> bool:
    return isinstance(e, Bin) and e.op == "^" and not (isinstance(e.right, Num) and e.right.value.denominator == 1)
