"""Contraction: `Σ_k a·b` on tensor cores, with an epilogue."""

from __future__ import annotations

from fractions import Fraction

from specc.ir import Role
from specc.kernels import Axis, Contraction, Store
from specc.lower.access import Reader
from specc.lower.conditions import Conditions, needed_where
from specc.lower.draft import Fit, NoFit, axes_of, single, static
from specc.lower.merge import merge_branches
from specc.lower.names import Names, names_of
from specc.ops import (
    Bin,
    Expr,
    Formula,
    Load,
    Neg,
    Num,
    Reduce,
    Rounded,
    Softmax,
    Sort,
    Var,
    free_vars,
    walk,
)
from specc.passes.rewrite import bottom_up, exchange

MINUS_ONE = Num(Fraction(-1))


def contraction(formula: Formula) -> Fit:
    """Raises NoFit unless the result holds one Σ over a static axis of a product whose factors part into rows and
    columns."""
    q = single(formula)
    *rows, columns = axes_of(q)
    if not rows:
        raise NoFit("its result has columns only, no rows")
    body = bottom_up(q.expr, merge_branches)
    total = _total(body)
    inner = Axis(total.var, total.extent)
    static(inner.extent, f"the inner axis `{inner.var}`")
    static(columns.extent, f"the columns `{columns.var}`")
    scale, a, b = _sides(total, {r.var for r in rows}, columns.var)
    names = names_of(formula)
    acc = names.internal("acc")
    left, right, outer = (_Side(formula, names, axes) for axes in ((*rows, inner), (columns, inner), (*rows, columns)))
    where = needed_where(body, total)
    a, b = _operand(left(a, where), Role.ACTIVATION), _operand(right(b, where), Role.WEIGHT)
    result: Expr = Var(acc, Sort.REAL)
    result = result if scale is None else Bin("·", scale, result, Sort.REAL)
    epilogue = outer.read(exchange(body, total, result))
    store = Store(q.tensor.name, tuple(Var(i) for i in q.indices), epilogue)
    found = (x.read.accesses for x in (left, right, outer))
    a_loads, b_loads, loads = found
    schedule = Contraction(tuple(rows), columns, inner, a_loads, b_loads, a, b, acc, loads, store)
    reason = f"one Σ over `{total.var}` of a product that parts into rows and columns `{columns.var}`"
    return Fit(schedule, (), reason)


def _total(body: Expr) -> Reduce:
    sums = {n: None for n in walk(body) if isinstance(n, Reduce)}
    if len(sums) != 1 or any(isinstance(n, Softmax) for n in walk(body)):
        raise NoFit("it is not one sum of products")
    (total,) = sums
    if total.op != "Σ" or total.where is not None:
        raise NoFit("its reduction is not a plain Σ")
    return total


class _Side:
    """Reads what depends on some of the axes."""

    def __init__(self, formula: Formula, names: Names, axes: tuple[Axis, ...]) -> None:
        self.axes = {a.var: a.extent for a in axes}
        self.read = Reader(formula, names, self.axes)

    def __call__(self, e: Expr, where: Conditions) -> Expr:
        """`e`, which is needed where the conditions hold; those that depend on other axes cannot guard it."""
        if all(self.read.in_range(n) for n in walk(e) if isinstance(n, Load)):
            return self.read(e)
        guard, complete = where.over(set(self.axes))
        if not complete:
            raise NoFit("an operand may only be read under a condition that mixes rows and columns")
        return self.read(e, lazy=guard if guard is None else self.read(guard))


def factors(e: Expr) -> list[Expr]:
    """`e` as a product, from left to right; a sign is a factor -1."""
    if isinstance(e, Neg):
        return [MINUS_ONE, *factors(e.arg)]
    if isinstance(e, Bin) and e.op == "·":
        return [*factors(e.left), *factors(e.right)]
    return [e]


def product(items: list[Expr]) -> Expr | None:
    """The inverse of `factors`."""
    out: Expr | None = None
    for item in items:
        out = item if out is None else Bin("·", out, item, Sort.REAL)
    return out


def _sides(total: Reduce, rows: set[str], column: str) -> tuple[Expr | None, Expr, Expr]:
    """The factors without any variable, those of the rows, and those of the columns."""
    scale: list[Expr] = []
    left: list[Expr] = []
    right: list[Expr] = []
    for f in factors(total.body):
        names = set(free_vars(f))
        if not names:
            scale.append(f)
        elif names <= {column, total.var} and (column in names or left):
            right.append(f)
        elif names <= rows | {total.var}:
            left.append(f)
        else:
            listed = ", ".join(f"`{n}`" for n in sorted(names - {total.var}))
            raise NoFit(f"a factor of its sum depends on rows and columns at once, {listed}")
    a, b = product(left), product(right)
    if a is None or b is None or not _reads(a, total.var) or not _reads(b, total.var):
        raise NoFit("one side of the product does not depend on the inner axis")
    return product(scale), a, b


def _operand(e: Expr, role: Role) -> Expr:
    """What goes to the tensor core: a read as it is, anything computed rounded to the storage type first."""
    return e if isinstance(e, Var | Rounded) else Rounded(e, role)


def _reads(e: Expr, var: str) -> bool:
    return any(isinstance(n, Load) and var in free_vars(n) for n in walk(e))
