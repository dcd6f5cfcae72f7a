"""Runs a lowered formula in float32, elementwise and with sums in a random order: a kernel that conforms. Constants are
folded in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from specc.bounds import round_to
from specc.ops import (
    Bin,
    Call,
    Cmp,
    Expr,
    Formula,
    Load,
    Logic,
    Neg,
    Num,
    Pi,
    Reduce,
    Rounded,
    Select,
    Size,
    Softmax,
    Sort,
    Var,
)

F = np.float32
COMPARE: dict[str, Callable[..., Any]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
INDEX: dict[str, Callable[..., Any]] = {
    "+": np.add, "-": np.subtract, "·": np.multiply, "//": np.floor_divide, "%": np.mod,
}  # fmt: skip


@dataclass
class Simulator:
    """Every index variable has an array axis of its own, in order of binding. `blocks` is the key block of an online
    softmax; 0: weights are divided by their sum before they meet the values."""

    tensors: Mapping[str, Any]
    sizes: Mapping[str, int]
    storage: Mapping[str, str]
    rng: np.random.Generator
    tables: tuple[str, ...] = ()
    blocks: int = 16

    def run(self, formula: Formula) -> dict[str, Any]:
        """Outputs in float32, before the store."""
        return {q.tensor.name: self._output(q) for q in formula.equations}

    def _output(self, q: Any) -> Any:
        env: dict[str, Any] = {}
        shape = tuple(int(self.value(d, env)) for d in q.tensor.dims)
        for v, n in zip(q.indices, shape, strict=True):
            env = self._bind(env, v, n)
        out = np.asarray(self.value(q.expr, env), F)
        return np.broadcast_to(out.reshape(out.shape + (1,) * (len(shape) - out.ndim)), shape)

    @staticmethod
    def _bind(env: dict[str, Any], var: str, n: int) -> dict[str, Any]:
        rank = max((a.ndim for a in env.values()), default=0) + 1
        wide = {k: a.reshape(a.shape + (1,) * (rank - a.ndim)) for k, a in env.items()}
        return {**wide, var: np.arange(n).reshape((1,) * (rank - 1) + (n,))}

    def value(self, e: Expr, env: dict[str, Any]) -> Any:
        match e:
            case Num(value, sort):
                return int(value) if sort is Sort.INDEX else float(value)
            case Pi():
                return math.pi
            case Size(name):
                return self.sizes[name]
            case Var(name):
                return env[name]
            case Load():
                return self._load(e, env)
            case Neg(arg):
                return -self.value(arg, env)
            case Bin("^", left, Num(n)):
                return self._power(self.value(left, env), int(n))
            case Bin(op, left, right, sort):
                return self._binary(op, self.value(left, env), self.value(right, env), sort)
            case Cmp(op, left, right):
                return COMPARE[op](self.value(left, env), self.value(right, env))
            case Logic("not", (arg,)):
                return ~np.asarray(self.value(arg, env))
            case Logic(op, args) if args:
                join = np.logical_and if op == "and" else np.logical_or
                out = self.value(args[0], env)
                for a in args[1:]:
                    out = join(out, self.value(a, env))
                return out
            case Select(cond, then, other):
                return np.where(self.value(cond, env), self.value(then, env), self.value(other, env))
            case Call(fn, args):
                return self._call(fn, [self.value(a, env) for a in args])
            case Rounded(Softmax()):
                raise AssertionError("handled by the sum around it")
            case Rounded(inner, role):
                return round_to(np.asarray(self.value(inner, env), np.float64), self.storage[role]).astype(F)
            case Reduce():
                return self._reduce(e, env)
        raise AssertionError(type(e).__name__)

    def _load(self, e: Load, env: dict[str, Any]) -> Any:
        tensor = np.asarray(self.tensors[e.tensor])
        index = [np.clip(self.value(i, env), 0, n - 1) for i, n in zip(e.indices, tensor.shape, strict=True)]
        out = tensor[tuple(np.broadcast_arrays(*index))]
        return out if e.tensor in self.tables or np.issubdtype(tensor.dtype, np.integer) else out.astype(F)

    @staticmethod
    def _power(x: Any, n: int) -> Any:
        x = x if isinstance(x, float) else np.asarray(x, F)
        out = x
        for _ in range(n - 1):
            out = out * x
        return out

    @staticmethod
    def _binary(op: str, a: Any, b: Any, sort: Sort) -> Any:
        if sort is Sort.INDEX:
            return INDEX[op](a, b)
        if isinstance(a, float | int) and isinstance(b, float | int):
            return {"+": a + b, "-": a - b, "·": a * b, "/": a / b if b else math.nan}[op]
        wide = any(getattr(x, "dtype", None) == np.float64 for x in (a, b))
        a, b = (np.asarray(x, np.float64 if wide else F) for x in (a, b))
        with np.errstate(divide="ignore", invalid="ignore"):
            return {"+": np.add, "-": np.subtract, "·": np.multiply, "/": np.divide}[op](a, b)

    @staticmethod
    def _call(fn: str, args: list[Any]) -> Any:
        if fn in ("max", "min"):
            return (np.maximum if fn == "max" else np.minimum)(*args)
        x = args[0]
        if isinstance(x, float):
            return float(getattr(math, fn)(x))
        if getattr(x, "dtype", None) == np.float64:
            turns = x / (2 * np.pi)
            turn = (turns - np.floor(turns + 0.5)).astype(F)
            return {"sin": np.sin, "cos": np.cos}[fn](2 * np.pi * turn.astype(np.float64)).astype(F)
        return getattr(np, fn)(np.asarray(x, F))

    def _reduce(self, e: Reduce, env: dict[str, Any]) -> Any:
        inner = self._bind(env, e.var, int(self.value(e.extent, env)))
        weight = _weight(e.body)
        if weight is not None:
            return self._attention(weight, e, inner)
        body = self._full(self.value(e.body, inner), inner)
        if e.where is not None:
            body = np.where(self.value(e.where, inner), body, {"Σ": F(0), "Max": F(-np.inf)}[e.op])
        if e.op == "Max":
            return np.max(body, axis=-1)
        return self._sum(body)

    @staticmethod
    def _full(x: Any, env: dict[str, Any]) -> Any:
        shape = np.broadcast_shapes(*(a.shape for a in env.values()))
        x = np.asarray(x, F)
        return np.broadcast_to(x.reshape(x.shape + (1,) * (len(shape) - x.ndim)), shape)

    def _sum(self, x: Any) -> Any:
        """Pairs of random neighbours until one is left; or one after another."""
        x = x[..., self.rng.permutation(x.shape[-1])] if x.shape[-1] <= 256 else x
        if self.rng.random() < 0.5 and x.shape[-1] <= 256:
            out = x[..., 0]
            for i in range(1, x.shape[-1]):
                out = out + x[..., i]
            return out
        while x.shape[-1] > 1:
            n = x.shape[-1] // 2
            rest = x[..., 2 * n :]
            x = np.concatenate([x[..., :n] + x[..., n : 2 * n], rest], axis=-1)
        return x[..., 0]

    def _attention(self, weight: tuple[Softmax, str | None], e: Reduce, env: dict[str, Any]) -> Any:
        node, role = weight
        score = self._full(self.value(node.score, env), env)
        seen = np.ones(score.shape, bool)
        if node.visible is not None:
            seen = np.broadcast_to(self.value(node.visible, env), score.shape)
        value = self._full(self.value(_other_factor(e.body), env), env)
        shape = score.shape[:-1]
        if not self.blocks:
            return self._normalised(score, seen, value, role)
        top, total, acc = np.full(shape, F(-np.inf)), np.zeros(shape, F), np.zeros(shape, F)
        for start in range(0, score.shape[-1], self.blocks):
            part = slice(start, start + self.blocks)
            s = np.where(seen[..., part], score[..., part], F(-np.inf))
            new = np.maximum(top, s.max(-1))
            safe = np.where(np.isinf(new), F(0), new)
            p = np.exp(s - safe[..., None])
            shrink = np.where(np.isinf(top), F(0), np.exp(top - safe))
            total = total * shrink + self._sum(p)
            held = p if role is None else round_to(p.astype(np.float64), self.storage[role]).astype(F)
            acc = acc * shrink + self._sum(held * value[..., part])
            top = new
        return np.where(total > 0, acc / np.where(total > 0, total, F(1)), F(0))

    def _normalised(self, score: Any, seen: Any, value: Any, role: str | None) -> Any:
        s = np.where(seen, score, F(-np.inf))
        top = s.max(-1, keepdims=True)
        p = np.exp(s - np.where(np.isinf(top), F(0), top))
        total = self._sum(p)[..., None]
        share = p / np.where(total > 0, total, F(1))
        held = share if role is None else round_to(share.astype(np.float64), self.storage[role]).astype(F)
        return self._sum(held * value)


def _weight(e: Expr) -> tuple[Softmax, str | None] | None:
    match e:
        case Bin("·", Rounded(Softmax() as s, role), _):
            return s, role
        case Bin("·", Softmax() as s, _):
            return s, None
    return None


def _other_factor(e: Expr) -> Expr:
    assert isinstance(e, Bin)
    return e.right
