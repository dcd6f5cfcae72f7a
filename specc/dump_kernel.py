"""A lowered kernel as text: its schedule, why it was chosen, and every slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from specc.formula_text import dims_text, expr_text, formula_text
from specc.kernels import (
    Access,
    Attention,
    Axis,
    Contraction,
    HeadMap,
    Kernel,
    Operand,
    Pointwise,
    Recurrent,
    RowReduction,
    Stage,
    Store,
    Strip,
    Table,
)


def dump_kernel(kernel: Kernel) -> str:
    """One fact a line, in an order that depends on the kernel alone."""
    return "".join(f"{line}\n" for line in _lines(kernel))


def _lines(k: Kernel) -> Iterator[str]:
    yield f"kernel {k.name}: {k.schedule_name} of {k.op}, {k.phase}"
    yield f"  why {k.reason}"
    yield from (f"  key {key}" for key in k.keys)
    yield from (f"  defined {line}" for line in formula_text(k.formula))
    yield from (f"  computed {line}" for line in formula_text(k.lowered))
    yield f"  sizes {', '.join(k.sizes) or 'none at run time'}"
    yield from (f"  operand {_operand(o)}" for o in k.operands)
    yield from (f"  table {_table(t)}" for t in k.tables)
    yield from (f"  {line}" for line in _schedule(k))


def _operand(o: Operand) -> str:
    facts = [str(o.role), "result" if o.output else "", f"by {', '.join(o.axes)}", "64-bit offsets" if o.wide else ""]
    return f"{o.name} {dims_text(o.dims)}: " + ", ".join(f for f in facts if f)


def _table(t: Table) -> str:
    return f"{t.name}[{t.var} < {t.extent}] = {expr_text(t.expr)}, float64"


def _schedule(k: Kernel) -> Iterator[str]:
    match k.schedule:
        case Pointwise() as p:
            yield _axes("rows", p.rows)
            yield from _reads("row reads", p.row_loads)
            for strip in p.strips:
                yield from _strip(strip, p.inner)
        case RowReduction() as r:
            yield from _row_reduction(r)
        case Contraction() as c:
            yield from _contraction(c)
        case Attention() as a:
            yield from _attention(a)
        case Recurrent() as r:
            yield from _recurrent(r)


def _strip(s: Strip, inner: str) -> Iterator[str]:
    yield f"strip {inner} < {s.length}"
    yield from (f"  {line}" for line in (*_reads("reads", s.loads), *map(_store, s.stores)))


def _row_reduction(r: RowReduction) -> Iterator[str]:
    yield _axes("rows", r.rows)
    yield _axes("row", (r.inner,))
    yield from _reads("row reads", r.row_loads)
    yield from _reads("reads", r.loads)
    yield from _reads("vector reads", r.vectors)
    yield from map(_stage, r.stages)
    yield from map(_store, r.stores)


def _stage(s: Stage) -> str:
    where = "" if s.where is None else f" where {expr_text(s.where)}"
    return f"stage {s.name} = {expr_text(s.finish)} with {s.raw} = {s.op} of {expr_text(s.map)}{where}"


def _contraction(c: Contraction) -> Iterator[str]:
    yield _axes("rows", c.rows)
    yield _axes("columns", (c.columns,))
    yield _axes("inner", (c.inner,))
    yield from _reads("a reads", c.a_loads)
    yield from _reads("b reads", c.b_loads)
    yield f"{c.accumulator} = Σ_{c.inner.var} a · b with a = {expr_text(c.a)}, b = {expr_text(c.b)}"
    yield from _reads("reads", c.loads)
    yield _store(c.store)


def _attention(a: Attention) -> Iterator[str]:
    for what, axis in (("row", a.row), ("head", a.head), ("keys", a.keys), ("inner", a.inner), ("columns", a.columns)):
        yield _axes(what, (axis,))
    yield f"heads {_heads(a.head_map, a.head.var, a.kv_head)}"
    yield from _reads("row reads", a.row_loads)
    yield from _reads("reads", (a.q, a.k, a.v))
    yield f"{a.dot} = Σ_{a.inner.var} {a.q.name} · {a.k.name}"
    yield f"score {expr_text(a.score)}"
    yield f"visible {'always' if a.visible is None else expr_text(a.visible)}"
    low, high = ("none" if e is None else expr_text(e) for e in (a.low, a.high))
    yield f"first key {low}, end of keys {high}"
    weight = f"softmax rounded to {a.probability_role}" if a.round_probabilities else "softmax"
    yield f"{a.accumulator} = Σ_{a.keys.var} {weight} · {a.v.name}"
    yield _store(a.store)


def _recurrent(r: Recurrent) -> Iterator[str]:
    for what, axes in (("steps", (r.time,)), ("heads", r.heads), ("values", (r.value,)), ("keys", (r.key,))):
        yield _axes(what, axes)
    yield from _reads("first reads", r.first_loads)
    yield f"first {r.state} = {expr_text(r.first)}"
    yield from _reads("reads", r.loads)
    yield f"decay {expr_text(r.decay)}"
    if r.rate is not None:
        yield f"take {expr_text(r.rate)} · (Σ_{r.key.var} {r.state} · {expr_text(r.probe)}) · {expr_text(r.erase)}"
    yield f"add {expr_text(r.added)} · {expr_text(r.write)}"
    for x in r.readings:
        yield f"{x.accumulator} = Σ_{r.key.var} {r.state} · {expr_text(x.query)}"
        yield _store(x.store)
    if r.last is not None:
        yield f"last {_store(r.last)}"


def _heads(m: HeadMap, head: str, kv_head: str) -> str:
    members = f"{m.group} of {m.heads} read one of {m.kv_heads}"
    return f"{members}: {head} = {m.outer} · {kv_head} + {m.step} · member"


def _axes(what: str, axes: Iterable[Axis]) -> str:
    return f"{what} {', '.join(f'{a.var} < {expr_text(a.extent)}' for a in axes) or 'one'}"


def _reads(what: str, accesses: Iterable[Access]) -> Iterator[str]:
    for a in accesses:
        guard = "" if a.guard is None else f" where {expr_text(a.guard)}"
        yield f"{what} {a.name} = {a.operand}[{', '.join(map(expr_text, a.indices))}]{guard}"


def _store(s: Store) -> str:
    return f"store {s.operand}[{', '.join(map(expr_text, s.indices))}] = {expr_text(s.value)}"
