"""Walking and rewriting typed expressions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, replace

from specc.terms import (
    Apply,
    Bin,
    Call,
    Cmp,
    Expr,
    Load,
    Logic,
    Named,
    Neg,
    Reduce,
    Rounded,
    Select,
    Softmax,
    State,
    Var,
)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct subexpressions, in reading order (extents and predicates included)."""
    match expr:
        case Load(_, indices) | State(_, indices):
            return indices
        case Neg(arg):
            return (arg,)
        case Bin(_, left, right) | Cmp(_, left, right):
            return (left, right)
        case Logic(_, args) | Call(_, args) | Apply(_, args):
            return args
        case Reduce(_, _, extent, where, body):
            return (extent, body) if where is None else (extent, where, body)
        case Softmax(_, extent, score, visible):
            return (extent, score) if visible is None else (extent, score, visible)
        case Select(cond, then, other):
            return (cond, then, other)
        case Named(_, inner) | Rounded(inner):
            return (inner,)
    return ()


def rebuild(expr: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """The same node with `f` applied to each direct subexpression."""
    changes: dict[str, object] = {}
    for name in _field_names(expr):
        value = getattr(expr, name)
        if isinstance(value, tuple):
            changes[name] = tuple(f(v) for v in value)
        elif isinstance(value, Expr):
            changes[name] = f(value)
    same = all(_same(getattr(expr, name), value) for name, value in changes.items())
    return expr if same else replace(expr, **changes)  # type: ignore[arg-type]


_FIELDS: dict[type, tuple[str, ...]] = {}


def _field_names(expr: Expr) -> tuple[str, ...]:
    names = _FIELDS.get(type(expr))
    if names is None:
        names = _FIELDS[type(expr)] = tuple(f.name for f in fields(expr))
    return names


def _same(old: object, new: object) -> bool:
    if isinstance(old, tuple) and isinstance(new, tuple):
        return all(a is b for a, b in zip(old, new, strict=True))
    return old is new


def walk(expr: Expr) -> Iterator[Expr]:
    """`expr` and all its subexpressions, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def free_vars(expr: Expr) -> tuple[str, ...]:
    """Names of the free index variables, in order of first occurrence."""
    found: dict[str, None] = {}

    def visit(e: Expr, bound: frozenset[str]) -> None:
        if isinstance(e, Var):
            if e.name not in bound:
                found.setdefault(e.name)
        elif isinstance(e, Reduce):
            visit(e.extent, bound)
            for child in children(e)[1:]:
                visit(child, bound | {e.var})
        else:
            if isinstance(e, Softmax) and e.var not in bound:
                found.setdefault(e.var)
            for child in children(e):
                visit(child, bound)

    visit(expr, frozenset())
    return tuple(found)


def fresh(stem: str, taken: Collection[str]) -> str:
    """`stem`, or the first of `stem_2`, `stem_3`, … that is not in `taken`."""
    name, count = stem, 2
    while name in taken:
        name, count = f"{stem}_{count}", count + 1
    return name


def substitute(expr: Expr, variables: Mapping[str, Expr]) -> Expr:
    """Replaces free `Var`s by name, all at once. A reduction whose variable would capture one of a new value is given
    another variable. Raises ValueError where a softmax would be read at something that is no index variable, or at the
    variable it runs over."""
    match expr:
        case Var(name):
            return variables.get(name, expr)
        case Reduce():
            return _substitute_reduce(expr, variables)
        case Softmax():
            return _substitute_softmax(expr, variables)
    return rebuild(expr, lambda e: substitute(e, variables))


def _used(inside: tuple[Expr, ...], variables: Mapping[str, Expr]) -> dict[str, Expr]:
    """Those of `variables` that occur free in any of `inside`."""
    names = {n for e in inside for n in free_vars(e)}
    return {n: v for n, v in variables.items() if n in names}


def _substitute_reduce(e: Reduce, variables: Mapping[str, Expr]) -> Reduce:
    inside = children(e)[1:]
    used = {n: v for n, v in _used(inside, variables).items() if n != e.var}
    taken = {n for v in used.values() for n in free_vars(v)}
    var = e.var
    if var in taken:
        var = fresh(e.var, taken | {n for i in inside for n in free_vars(i)})
        used[e.var] = Var(var)
    where = None if e.where is None else substitute(e.where, used)
    return replace(e, var=var, extent=substitute(e.extent, variables), where=where, body=substitute(e.body, used))


def _substitute_softmax(e: Softmax, variables: Mapping[str, Expr]) -> Softmax:
    target = variables.get(e.var, Var(e.var))
    if not isinstance(target, Var):
        raise ValueError(f"softmax_{e.var} can only be read at an index variable")
    inside = children(e)[1:]
    used = {n: v for n, v in _used(inside, variables).items() if n != e.var}
    if target.name in {n for v in used.values() for n in free_vars(v)}:
        raise ValueError(f"softmax_{e.var} cannot be read at `{target.name}` where its score depends on it as well")
    if target.name != e.var and target.name in {n for i in inside for n in free_vars(i)} - set(used):
        raise ValueError(f"softmax_{e.var} cannot be read at `{target.name}` where its score depends on it as well")
    used[e.var] = target
    visible = None if e.visible is None else substitute(e.visible, used)
    extent = substitute(e.extent, variables)
    return replace(e, var=target.name, extent=extent, score=substitute(e.score, used), visible=visible)
