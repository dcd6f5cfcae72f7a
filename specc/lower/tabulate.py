"""Powers and functions of an index alone become float64 tables that the launcher fills from the formula."""

from __future__ import annotations

from specc.kernels import Table
from specc.ops import Bin, Call, Expr, Load, Num, Sort, Var, free_vars, rebuild, substitute, walk


class Tabulator:
    """Collects tables; equal expressions share one."""

    def __init__(self, lengths: dict[str, int]) -> None:
        self.lengths = lengths
        self.tables: list[Table] = []

    def __call__(self, e: Expr) -> Expr:
        """`e` with its largest subexpressions over one index read from tables."""
        names = free_vars(e)
        if e.sort is Sort.REAL and len(names) == 1 and names[0] in self.lengths and _worthwhile(e):
            return Load(self._table(e, names[0]), (Var(names[0]),))
        return rebuild(e, self)

    def _table(self, e: Expr, var: str) -> str:
        key = substitute(e, {var: Var("i")})
        for table in self.tables:
            if table.expr == key and table.extent == self.lengths[var]:
                return table.name
        name = "table" if not self.tables else f"table_{len(self.tables) + 1}"
        self.tables.append(Table(name, "i", self.lengths[var], key))
        return name


def _worthwhile(e: Expr) -> bool:
    """Whether `e` reads no operand and holds a power or a function that costs more than a read."""
    nodes = list(walk(e))
    if any(isinstance(n, Load) or (isinstance(n, Var) and n.sort is Sort.REAL) for n in nodes):
        return False
    return any(isinstance(n, Call) or _power(n) for n in nodes)


def _power(e: Expr) -> bool:
    return isinstance(e, Bin) and e.op == "^" and not (isinstance(e.right, Num) and e.right.value.denominator == 1)
