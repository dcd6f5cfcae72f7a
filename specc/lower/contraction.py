"""Contraction: `Σ_k a·b` on tensor cores, with an epilogue."""

from __future__ import annotations

from fractions import Fraction

from specc.ir import Role
from specc.kernels import Axis, Contraction, Store
from specc.lower.access import Reader
from specc.lower.draft import Fit, NoFit, axes_of, single, static
from specc.ops import (
    Bin,
    Expr,
    Formula,
    Load,
    Neg,
    Num,
    Reduce,
    Rounded,
    Select,
    Softmax,
    Sort,
    Var,
    free_vars,
    rebuild,
    walk,
)
from specc.passes.rewrite import bottom_up

ACC = "acc"
MINUS_ONE = Num(Fraction(-1))


def contraction(formula: Formula) -> Fit:
    """Raises NoFit unless the result holds one Σ over a static axis of a product whose factors part into rows and
    columns."""
    q = single(formula)
    *rows, columns = axes_of(q)
    body = bottom_up(q.expr, _merge_branches)
    sums = {n for n in walk(body) if isinstance(n, Reduce)}
    if len(sums) != 1 or any(isinstance(n, Softmax) for n in walk(body)):
        raise NoFit("it is not one sum of products")
    (total,) = sums
    if total.op != "Σ" or total.where is not None:
        raise NoFit("its reduction is not a plain Σ")
    static(total.extent, f"the inner axis `{total.var}`")
    static(columns.extent, f"the columns `{columns.var}`")
    scale, a, b = _sides(total, {r.var for r in rows}, columns.var)
    read_a, read_b, read = (Reader(formula.inputs) for _ in range(3))
    a, b = _operand(read_a(a), Role.ACTIVATION), _operand(read_b(b), Role.WEIGHT)
    acc: Expr = Var(ACC, Sort.REAL)
    epilogue = read(_replace(body, total, acc if scale is None else Bin("·", scale, acc, Sort.REAL)))
    schedule = Contraction(
        tuple(rows),
        columns,
        Axis(total.var, total.extent),
        tuple(read_a.found.values()),
        tuple(read_b.found.values()),
        a,
        b,
        ACC,
        tuple(read.found.values()),
        Store(q.tensor.name, tuple(Var(i) for i in q.indices), epilogue),
    )
    reason = f"one Σ over `{total.var}` of a product that parts into rows and columns `{columns.var}`"
    return Fit(schedule, (), reason)


def _merge_branches(e: Expr) -> Expr:
    """if c then Σ_k a·b else Σ_k a·b' = Σ_k a·(if c then b else b')."""
    match e:
        case Select(cond, Reduce("Σ", v, n, None, x), Reduce("Σ", w, m, None, y)) if v == w and n == m:
            fx, fy = factors(x), factors(y)
            common = [f for f in fx if f in fy]
            rest_x, rest_y = (
                _product([f for f in fx if f not in common]),
                _product([f for f in fy if f not in common]),
            )
            if rest_x is not None and rest_y is not None and v not in free_vars(cond):
                chosen = Select(cond, rest_x, rest_y, Sort.REAL)
                merged = _product([*common, chosen])
                assert merged is not None
                return Reduce("Σ", v, n, None, merged)
    return e


def factors(e: Expr) -> list[Expr]:
    """`e` as a product, from left to right; a sign is a factor -1."""
    if isinstance(e, Neg):
        return [MINUS_ONE, *factors(e.arg)]
    if isinstance(e, Bin) and e.op == "·":
        return [*factors(e.left), *factors(e.right)]
    return [e]


def _product(items: list[Expr]) -> Expr | None:
    if not items:
        return None
    out = items[0]
    for item in items[1:]:
        out = Bin("·", out, item, Sort.REAL)
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
            raise NoFit(f"a factor mixes rows and columns, {sorted(names)}")
    a, b = _product(left), _product(right)
    if a is None or b is None or not _reads(a, total.var) or not _reads(b, total.var):
        raise NoFit("one side of the product does not depend on the inner axis")
    return _product(scale), a, b


def _operand(e: Expr, role: Role) -> Expr:
    """What goes to the tensor core: a read as it is, anything computed rounded to the storage type first."""
    return e if isinstance(e, Var | Rounded) else Rounded(e, role)


def _reads(e: Expr, var: str) -> bool:
    return any(isinstance(n, Load) and var in free_vars(n) for n in walk(e))


def _replace(e: Expr, old: Expr, new: Expr) -> Expr:
    return new if e == old else rebuild(e, lambda c: _replace(c, old, new))
