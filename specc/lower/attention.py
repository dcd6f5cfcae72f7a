"""Attention: `Σ_l softmax_l(score | visible)·v`, with its visible range and head map solved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specc.ir import Role
from specc.kernels import Access, Attention, Axis, Store
from specc.lower.access import Reader, depends_on
from specc.lower.contraction import factors, product
from specc.lower.draft import Fit, NoFit, axes_of, single, static
from specc.lower.heads import head_map
from specc.lower.names import Names, names_of
from specc.lower.visible import visible_range
from specc.ops import Bin, Expr, Formula, FormulaEquation, Load, Reduce, Rounded, Softmax, Sort, Var, free_vars, walk
from specc.passes.rewrite import exchange


@dataclass(frozen=True)
class _Parts:
    """The pieces of the formula before reads are named. `role`: what softmax weights are rounded to."""

    total: Reduce
    softmax: Softmax
    role: str | None
    value: Load
    dot: Reduce
    scale: Expr | None


def attention(formula: Formula) -> Fit:
    """Raises NoFit unless the result is one softmax-weighted sum of values with a scaled query-key product."""
    q = single(formula)
    axes = axes_of(q)
    if len(axes) != 3:
        raise NoFit("the result has other axes than row, head, column")
    row, head, columns = axes
    parts = _parts(q)
    keys, inner = Axis(parts.softmax.var, parts.softmax.extent), Axis(parts.dot.var, parts.dot.extent)
    static(inner.extent, "the inner axis of the query-key product")
    static(columns.extent, "the axis of value columns")
    names = names_of(formula)
    kv_head, dot, acc = (names.internal(n) for n in ("kv_head", "dot", "acc"))
    query, key = _query_key(parts.dot, keys.var)
    heads, (key, value) = head_map(head, kv_head, key, parts.value)
    decode = _check_places(query, key, value, (row.var, head.var, keys.var, kv_head, inner.var, columns.var))
    row_loads, score, visible, result = _row_slots(formula, parts, (row, keys), names, (dot, acc))
    low, high = visible_range(visible, keys.var)
    schedule = Attention(
        decode=decode,
        row=row,
        head=head,
        keys=keys,
        inner=inner,
        columns=columns,
        q=_access("q", query, names),
        k=_access("k", key, names),
        v=_access("v", value, names),
        row_loads=row_loads,
        dot=dot,
        score=score,
        visible=visible,
        low=low,
        high=high,
        head_map=heads,
        kv_head=kv_head,
        accumulator=acc,
        store=Store(q.tensor.name, tuple(Var(i) for i in q.indices), result),
        # The product with the values is formed in storage, whatever the profile says of the weights.
        round_probabilities=True,
        probability_role=Role(parts.role or Role.CACHE),
    )
    own = "each row has its own keys (decode)" if decode else "rows share the keys (prefill)"
    return Fit(schedule, (), f"softmax over `{keys.var}` times values; {own}; {heads.group} query heads a KV head")


def _parts(q: FormulaEquation) -> _Parts:
    total = _weighted_sum(q.expr)
    softmax: list[tuple[Softmax, str | None]] = []
    values: list[Load] = []
    scale: list[Expr] = []
    for f in factors(total.body):
        inner, role = (f.expr, f.role) if isinstance(f, Rounded) else (f, None)
        if isinstance(inner, Softmax) and inner.var == total.var:
            softmax.append((inner, role))
        elif isinstance(f, Load) and total.var in free_vars(f):
            values.append(f)
        elif total.var not in free_vars(f):
            scale.append(f)
        else:
            raise NoFit("the softmax is weighted by something else than one value")
    if len(softmax) != 1 or len(values) != 1:
        raise NoFit(f"its sum holds {len(softmax)} softmax weights and {len(values)} values, not one of each")
    weight, role = softmax[0]
    if weight.extent != total.extent:
        raise NoFit(f"softmax and sum run over different ranges of `{total.var}`")
    return _Parts(total, weight, role, values[0], _dot(weight), product(scale))


def _weighted_sum(e: Expr) -> Reduce:
    sums = {n: None for n in walk(e) if isinstance(n, Reduce) and any(isinstance(x, Softmax) for x in walk(n.body))}
    outer = [n for n in sums if n.op == "Σ" and n.where is None]
    if len(outer) != 1:
        raise NoFit("it is not one sum weighted by a softmax")
    return outer[0]


def _dot(softmax: Softmax) -> Reduce:
    dots = list({n: None for n in walk(softmax.score) if isinstance(n, Reduce)})
    if len(dots) != 1 or dots[0].op != "Σ" or dots[0].where is not None:
        raise NoFit("the score holds no single query-key product")
    return dots[0]


def _query_key(dot: Reduce, key: str) -> tuple[Load, Load]:
    """The two reads of the product; the key is the one placed by the key position."""
    match factors(dot.body):
        case [Load() as a, Load() as b] if dot.var in free_vars(a) and dot.var in free_vars(b):
            if (key in free_vars(a)) != (key in free_vars(b)):
                return (a, b) if key in free_vars(b) else (b, a)
    raise NoFit("the query-key product is not Σ of a query and a key")


def _check_places(q: Load, k: Load, v: Load, names: Sequence[str]) -> bool:
    """Whether each row has keys of its own. Raises NoFit where q, k or v depends on other axes than it may."""
    row, head, key, kv_head, inner, column = names
    wanted = (
        ("query", q, {row, head, inner}, set[str]()),
        ("key", k, {key, inner}, {row, kv_head}),
        ("value", v, {key, column}, {row, kv_head}),
    )
    for what, load, needed, optional in wanted:
        if any(isinstance(n, Load) for i in load.indices for n in walk(i)):
            raise NoFit(f"an index of the {what} comes from data")
        found = set(free_vars(load))
        if not needed <= found <= needed | optional:
            listed = ", ".join(f"`{n}`" for n in sorted(found)) or "nothing"
            raise NoFit(f"the {what} depends on {listed}")
    if (row in free_vars(k)) != (row in free_vars(v)):
        raise NoFit(f"only one of key and value depends on `{row}`")
    return row in free_vars(k)


def _access(stem: str, load: Load, names: Names) -> Access:
    return Access(names.read(load.tensor, load.indices, stem), load.tensor, load.indices)


def _row_slots(
    formula: Formula, parts: _Parts, axes: tuple[Axis, Axis], names: Names, made: tuple[str, str]
) -> tuple[tuple[Access, ...], Expr, Expr | None, Expr]:
    """Reads of a row; score, visibility and result over them. Raises NoFit where they depend on more."""
    (row, keys), (dot, acc) = axes, (Var(n, Sort.REAL) for n in made)
    total: Expr = acc if parts.scale is None else Bin("·", parts.scale, acc, Sort.REAL)
    score = exchange(parts.softmax.score, parts.dot, dot)
    result = exchange(formula.equations[0].expr, parts.total, total)
    visible = parts.softmax.visible
    named = (("the score", score), ("the result beside its sum", result), ("the predicate", visible))
    for what, e in named:
        if e is not None and any(isinstance(n, Reduce | Softmax) for n in walk(e)):
            raise NoFit(f"{what} holds another reduction")
    read = Reader(formula, names, {a.var: a.extent for a in axes})
    score, visible, result = read(score), None if visible is None else read(visible), read(result)
    known = {row.var}
    for access in read.accesses:
        _check_slot(f"the place of `{access.operand}`", depends_on(access), known)
        known.add(access.name)
    _check_slot("the score", free_vars(score), known | {keys.var, dot.name})
    _check_slot("the result beside its sum", free_vars(result), known | {acc.name})
    _check_slot("the predicate", () if visible is None else free_vars(visible), known | {keys.var})
    return read.accesses, score, visible, result


def _check_slot(what: str, found: tuple[str, ...], known: set[str]) -> None:
    others = sorted(set(found) - known)
    if others:
        raise NoFit(f"{what} depends on {', '.join(f'`{n}`' for n in others)}")
