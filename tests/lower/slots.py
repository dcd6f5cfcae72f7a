"""Schedules executed from their slots, in NumPy and float64.

Loop variables are integer arrays, one array axis a loop, so that every expression is evaluated for all points at once.
A read where its guard holds must lie inside its operand; elsewhere it gives NaN, so that a result that needs it is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from specc.kernels import Access, Attention, Axis, Contraction, Kernel, Pointwise, Recurrent, RowReduction, Store, Table
from specc.ops import Apply, Bin, Call, Cmp, Expr, Logic, Neg, Num, Pi, Rounded, Select, Size, Sort, Var, free_vars

Array = npt.NDArray[Any]
Env = dict[str, Array]

ARITHMETIC = {
    "+": np.add, "-": np.subtract, "·": np.multiply, "/": np.divide, "//": np.floor_divide, "%": np.mod, "^": np.power,
}  # fmt: skip
COMPARE = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
FUNCTIONS = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "tanh": np.tanh, "sin": np.sin,
    "cos": np.cos, "abs": np.abs, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


class OutOfRange(Exception):
    """A read outside its operand at a point where its guard holds."""


def value(e: Expr, env: Mapping[str, Array], sizes: Mapping[str, int]) -> Array:
    """`e` at all points; a reduction or read in a slot is a fault."""
    match e:
        case Num(v, Sort.INDEX):
            return np.asarray(int(v))
        case Num(v):
            return np.asarray(float(v))
        case Pi():
            return np.asarray(np.pi)
        case Size(name):
            return np.asarray(sizes[name])
        case Var(name):
            return env[name]
        case Neg(arg):
            return np.negative(value(arg, env, sizes))
        case Bin(op, left, right, sort):
            a, b = value(left, env, sizes), value(right, env, sizes)
            return ARITHMETIC[op](a, b) if sort is Sort.INDEX else ARITHMETIC[op](a.astype(float), b.astype(float))
        case Cmp(op, left, right):
            return COMPARE[op](value(left, env, sizes), value(right, env, sizes))
        case Logic("true" | "false" as name):
            return np.asarray(name == "true")
        case Logic("not", (arg,)):
            return ~value(arg, env, sizes)
        case Logic(op, args):
            return reduce(np.logical_and if op == "and" else np.logical_or, [value(a, env, sizes) for a in args])
        case Call(fn, args):
            return FUNCTIONS[fn](*(value(a, env, sizes) for a in args))
        case Apply(fn, args):
            given = {p.name: value(a, env, sizes) for p, a in zip(fn.params, args, strict=True)}
            return value(fn.computed or fn.body, given, sizes)
        case Select(cond, then, other):
            return np.where(value(cond, env, sizes), value(then, env, sizes), value(other, env, sizes))
        case Rounded(inner):
            return value(inner, env, sizes)
    raise AssertionError(f"a slot holds {type(e).__name__}")


class Machine:
    """Runs one kernel on given operands."""

    def __init__(self, kernel: Kernel, tensors: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
        self.kernel, self.sizes = kernel, sizes
        self.tensors = {**tensors, **{t.name: table_values(t) for t in kernel.tables}}
        self.results: dict[str, Array] = {}
        for o in kernel.operands:
            if o.output:
                self.results[o.name] = np.full([self.extent(d) for d in o.dims], np.nan)
        self.writes = {name: np.zeros(a.shape, int) for name, a in self.results.items()}

    def extent(self, e: Expr) -> int:
        return int(value(e, {}, self.sizes))

    def run(self) -> dict[str, Array]:
        """The results; every element must have been written once."""
        with np.errstate(all="ignore"):
            match self.kernel.schedule:
                case Pointwise() as p:
                    self.pointwise(p)
                case RowReduction() as r:
                    self.rows(r)
                case Contraction() as c:
                    self.contraction(c)
                case Attention() as a:
                    self.attention(a)
                case Recurrent() as r:
                    self.recurrent(r)
        for name, times in self.writes.items():
            assert (times == 1).all(), f"{name} is not written once everywhere"
        return self.results

    def loops(self, *axes: Axis) -> Env:
        lengths = [self.extent(a.extent) for a in axes]
        return {
            a.var: np.arange(n).reshape([-1 if k == place else 1 for k in range(len(axes))])
            for place, (a, n) in enumerate(zip(axes, lengths, strict=True))
        }

    def load(self, env: Env, accesses: Sequence[Access]) -> None:
        for a in accesses:
            assert a.name not in env, f"`{a.name}` names two things"
            tensor = self.tensors[a.operand]
            indices = np.broadcast_arrays(*(value(i, env, self.sizes) for i in a.indices))
            held = np.asarray(True) if a.guard is None else value(a.guard, env, self.sizes)
            inside = np.asarray(True)
            for i, n in zip(indices, tensor.shape, strict=True):
                inside = inside & (i >= 0) & (i < n)
            if (held & ~inside).any():
                raise OutOfRange(a.name)
            clipped = tuple(np.clip(i, 0, max(n - 1, 0)) for i, n in zip(indices, tensor.shape, strict=True))
            found = tensor[clipped] if tensor.size else np.zeros(indices[0].shape, tensor.dtype)
            missing = np.nan if found.dtype.kind == "f" else np.iinfo(np.int64).min // 4
            env[a.name] = np.where(held & inside, found, missing)

    def store(self, env: Env, s: Store, shape: tuple[int, ...]) -> None:
        target = self.results[s.operand]
        indices = tuple(np.broadcast_to(value(i, env, self.sizes), shape) for i in s.indices)
        target[indices] = np.broadcast_to(value(s.value, env, self.sizes), shape)
        np.add.at(self.writes[s.operand], indices, 1)

    def pointwise(self, p: Pointwise) -> None:
        for strip in p.strips:
            env = self.loops(*p.rows, Axis(p.inner, Num(strip.length, Sort.INDEX)))  # type: ignore[arg-type]
            shape = np.broadcast_shapes(*(a.shape for a in env.values()))
            self.load(env, p.row_loads)
            for a in p.row_loads:
                assert env[a.name].shape[-1:] in ((), (1,)), f"`{a.name}` differs inside a row"
            self.load(env, strip.loads)
            for s in strip.stores:
                self.store(env, s, shape)

    def rows(self, r: RowReduction) -> None:
        env = self.loops(*r.rows, r.inner)
        shape = np.broadcast_shapes(*(a.shape for a in env.values()))
        self.load(env, r.row_loads)
        for a in r.row_loads:
            assert env[a.name].shape[-1:] in ((), (1,)), f"`{a.name}` differs inside a row"
        self.load(env, r.loads)
        self.load(env, r.vectors)
        for a in r.vectors:
            assert all(n == 1 for n in env[a.name].shape[:-1]), f"`{a.name}` differs between rows"
        for stage in r.stages:
            held = np.broadcast_to(True if stage.where is None else value(stage.where, env, self.sizes), shape)
            body = np.broadcast_to(value(stage.map, env, self.sizes), shape)
            if stage.op == "Σ":
                raw = np.where(held, body, 0.0).sum(-1, keepdims=True)
            else:
                assert stage.op == "Max"
                raw = np.where(held, body, -np.inf).max(-1, keepdims=True, initial=-np.inf)
            env[stage.name] = value(stage.finish, {**env, stage.raw: raw}, self.sizes)
            assert env[stage.name].shape[-1:] in ((), (1,)), "a finish depends on the inner axis"
        for s in r.stores:
            inside = any(r.inner.var in free_vars(i) for i in s.indices)
            self.store(env, s, shape if inside else (*shape[:-1], 1))

    def recurrent(self, r: Recurrent) -> None:
        """Step by step; the chunks are the kernel's own."""
        axes = (*r.heads, r.value, r.key)
        shape = tuple(self.extent(a.extent) for a in axes)
        env = self.loops(*axes)
        self.load(env, r.first_loads)
        state = np.broadcast_to(value(r.first, env, self.sizes), shape)
        for t in range(self.extent(r.time.extent)):
            env = {**self.loops(*axes), r.time.var: np.asarray(t)}
            self.load(env, r.loads)
            parts = (r.decay, r.probe, r.erase, r.added, r.write)
            decay, probe, erase, added, write = (value(e, env, self.sizes) for e in parts)
            rate = 0 if r.rate is None else value(r.rate, env, self.sizes)
            held = (state * probe).sum(-1, keepdims=True)
            state = decay * (state - rate * held * erase) + added * write
            for x in r.readings:
                env[x.accumulator] = (state * value(x.query, env, self.sizes)).sum(-1, keepdims=True)
                self.store(env, x.store, (*shape[:-1], 1))
        if r.last is not None:
            self.store({**self.loops(*axes), r.state: state}, r.last, shape)

    def contraction(self, c: Contraction) -> None:
        env = self.loops(*c.rows, c.columns, c.inner)
        rows = {a.var for a in c.rows}
        left = {n: v for n, v in env.items() if n in rows | {c.inner.var}}
        right = {n: v for n, v in env.items() if n in {c.columns.var, c.inner.var}}
        self.load(left, c.a_loads)
        self.load(right, c.b_loads)
        total = (value(c.a, left, self.sizes) * value(c.b, right, self.sizes)).sum(-1, keepdims=True)
        outer = {n: v for n, v in env.items() if n != c.inner.var}
        self.load(outer, c.loads)
        shape = np.broadcast_shapes(*(v.shape for n, v in env.items() if n != c.inner.var))
        outer[c.accumulator] = np.broadcast_to(total, shape)
        self.store(outer, c.store, shape)

    def attention(self, a: Attention) -> None:
        env = self.loops(a.row, a.head, a.columns, a.keys, a.inner)
        row, head, column, key, inner = (env.pop(x.var) for x in (a.row, a.head, a.columns, a.keys, a.inner))
        m = a.head_map
        kv = np.full((m.heads,), -1)
        for g in range(m.kv_heads):
            for j in range(m.group):
                kv[m.outer * g + m.step * j] = g
        assert (kv >= 0).all(), "a query head has no KV head"
        kv = kv.reshape(head.shape)
        rows: Env = {a.row.var: row}
        self.load(rows, a.row_loads)
        q: Env = {a.row.var: row, a.head.var: head, a.inner.var: inner}
        own = {a.row.var: row} if a.decode else {}
        k: Env = {**own, a.kv_head: kv, a.keys.var: key, a.inner.var: inner}
        v: Env = {**own, a.kv_head: kv, a.keys.var: key, a.columns.var: column}
        self.load(q, (a.q,))
        self.load(k, (a.k,))
        self.load(v, (a.v,))
        dot = (q[a.q.name] * k[a.k.name]).sum(-1, keepdims=True)
        here = {**rows, a.keys.var: key}
        seen = np.asarray(True) if a.visible is None else value(a.visible, here, self.sizes)
        for bound, side in ((a.low, key.__ge__), (a.high, key.__lt__)):
            if bound is not None:
                inside = side(value(bound, rows, self.sizes))
                assert not (seen & ~inside).any(), "a visible key lies outside the range"
                seen = seen & inside
        score = value(a.score, {**here, a.dot: dot}, self.sizes)
        score = np.where(seen, score, -np.inf)
        top = score.max(3, keepdims=True, initial=-np.inf)
        weight = np.where(seen, np.exp(score - np.where(np.isfinite(top), top, 0)), 0)
        weight = weight / np.where(weight.sum(3, keepdims=True) > 0, weight.sum(3, keepdims=True), 1)
        total = np.where(weight == 0, 0, weight * v[a.v.name]).sum(3, keepdims=True)
        shape = np.broadcast_shapes(row.shape, head.shape, column.shape)
        outer = {**rows, a.head.var: head, a.columns.var: column, a.accumulator: np.broadcast_to(total, shape)}
        self.store(outer, a.store, shape)


def table_values(t: Table) -> Array:
    """A table's expression at 0, 1, … in float64."""
    with np.errstate(all="ignore"):
        return np.broadcast_to(value(t.expr, {t.var: np.arange(t.extent)}, {}), t.extent).astype(float)
