"""Runs a generated kernel on symbols: its own text, with `tl` made of NumPy arrays of SymPy expressions.

Every number is exact, so casts do nothing and a result is the expression that the kernel computes.
"""

from __future__ import annotations

import itertools
import math
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from specc.kernels import Kernel
from specc.ops import Bin, Expr, Formula, Load, Named, Neg, Num, Reduce, Size, State, Var
from specc.targets.triton.emit import emit

Array = np.ndarray[Any, Any]


class _Type:
    """A type; all are exact here."""


class Tile:
    """An array of numbers, places or truths."""

    def __init__(self, data: Any) -> None:
        self.data = np.asarray(data)
        self.dtype, self.shape = FLOAT, self.data.shape

    def to(self, _: object) -> Tile:
        return self

    def __getitem__(self, key: Any) -> Tile:
        return Tile(self.data[key])

    def __neg__(self) -> Tile:
        return Tile(-self.data)

    def __bool__(self) -> bool:
        return bool(self.data)

    def __index__(self) -> int:
        return int(self.data)


class Pointer:
    """Places in a buffer."""

    def __init__(self, buffer: Array, places: Any) -> None:
        self.buffer, self.places = buffer, np.asarray(places)
        self.dtype = types.SimpleNamespace(element_ty=FLOAT)

    def __add__(self, other: Any) -> Pointer:
        return Pointer(self.buffer, self.places + _data(other))


FLOAT = _Type()


def _data(x: Any) -> Any:
    return x.data if isinstance(x, Tile) else x


def _operator(name: str) -> Callable[[Tile, Any], Tile]:
    def apply(self: Tile, other: Any) -> Any:
        if isinstance(other, Pointer):
            return other + self
        return Tile(getattr(np.asarray(self.data), name)(np.asarray(_exact(_data(other)))))

    return apply


for _name in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "lt", "le", "gt", "ge", "eq"):
    setattr(Tile, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(Tile, f"__r{_name}__", _operator(f"__r{_name}__"))


def _exact(x: Any) -> Any:
    """Numbers of the text as integers or rationals."""
    return sympy.Rational(x) if isinstance(x, float) else x


class Language:
    """What the kernels use of `triton.language`."""

    bfloat16 = float32 = FLOAT
    int1 = constexpr = _Type()

    def __init__(self) -> None:
        self.program: Sequence[int] = ()

    def program_id(self, axis: int) -> Tile:
        return Tile(self.program[axis])

    def arange(self, start: int, end: int) -> Tile:
        return Tile(np.arange(start, end))

    def full(self, shape: Any, value: Any, dtype: object) -> Tile:
        return Tile(np.full(shape, _exact(value), object if not isinstance(value, bool) else bool))

    def zeros(self, shape: Any, dtype: object) -> Tile:
        return Tile(np.full(shape, sympy.Integer(0), object))

    def load(self, pointer: Pointer, mask: Any = None, other: Any = None) -> Tile:
        places, held = np.broadcast_arrays(pointer.places, True if mask is None else _data(mask))
        assert (places[held] >= 0).all() and (places[held] < pointer.buffer.size).all()
        found = np.full(places.shape, _exact(other if other is not None else 0), object)
        found[held] = pointer.buffer.reshape(-1)[places[held]]
        return Tile(found)

    def store(self, pointer: Pointer, value: Tile, mask: Any = None) -> None:
        places, held = np.broadcast_arrays(pointer.places, True if mask is None else _data(mask))
        pointer.buffer.reshape(-1)[places[held]] = np.broadcast_to(value.data, places.shape)[held]

    def where(self, cond: Tile, a: Any, b: Any) -> Tile:
        parts = np.broadcast_arrays(
            cond.data, np.asarray(_exact(_data(a)), object), np.asarray(_exact(_data(b)), object)
        )
        return Tile(np.where(*parts))

    def sum(self, x: Tile, axis: int) -> Tile:
        return Tile(np.sum(x.data, axis=axis))

    def cumsum(self, x: Tile, axis: int) -> Tile:
        return Tile(np.cumsum(x.data, axis=axis))

    def cumprod(self, x: Tile, axis: int) -> Tile:
        return Tile(np.cumprod(x.data, axis=axis))

    def trans(self, x: Tile) -> Tile:
        return Tile(x.data.T)

    def dot(self, a: Tile, b: Tile, total: Tile, input_precision: str = "") -> Tile:
        return Tile(total.data + _matmul(a.data, b.data))

    def minimum(self, a: Any, b: Any) -> Tile:
        return Tile(np.minimum(_data(a), _data(b)))


def _matmul(a: Array, b: Array) -> Array:
    """A product of matrices that skips zeros."""
    out = np.full((a.shape[0], b.shape[1]), sympy.Integer(0), object)
    for i, k in itertools.product(range(a.shape[0]), range(a.shape[1])):
        if a[i, k] != 0:
            for j in range(b.shape[1]):
                if b[k, j] != 0:
                    out[i, j] += a[i, k] * b[k, j]
    return out


def run(kernel: Kernel, tensors: Mapping[str, Array], sizes: Mapping[str, int], **tiles: int) -> dict[str, Array]:
    """The results of `kernel` on arrays of symbols, with the given tiles."""
    text = emit(kernel)
    start, end = text.index("@triton.jit"), text.index("\nCONFIGS")
    tl = Language()
    jit = types.SimpleNamespace(jit=lambda f=None, **_: f if f is not None else lambda g: g)
    names: dict[str, Any] = {"tl": tl, "triton": jit}
    exec(compile("from __future__ import annotations\n" + text[start:end], "kernel", "exec"), names)
    buffers = {n: np.array(t, object) for n, t in tensors.items()}
    shapes = {o.name: tuple(_extent(d, sizes) for d in o.dims) for o in kernel.operands}
    buffers |= {o.name: np.full(shapes[o.name], None, object) for o in kernel.operands if o.output}
    given: dict[str, Any] = {f"{n}_ptr": Pointer(b, 0) for n, b in buffers.items()}
    for o in kernel.operands:
        strides = [math.prod(shapes[o.name][k + 1 :]) for k in range(len(o.dims))]
        given |= {f"{o.name}_stride_{a}": s for a, s in zip(o.axes, strides, strict=True)}
    given |= {**sizes, "CUT_K": 64, **tiles}
    function = names[f"{kernel.name}_kernel"]
    wanted = function.__code__.co_varnames[: function.__code__.co_argcount]
    heads = math.prod(_extent(a.extent, sizes) for a in kernel.schedule.heads)  # type: ignore[union-attr]
    blocks = -(-_extent(kernel.schedule.value.extent, sizes) // tiles["BLOCK_V"])  # type: ignore[union-attr]
    for tl.program in itertools.product(range(heads), range(blocks)):
        function(**{n: given[n] for n in wanted})
    return {o.name: buffers[o.name] for o in kernel.operands if o.output}


def _extent(e: Any, sizes: Mapping[str, int]) -> int:
    return sizes[e.name] if hasattr(e, "name") else int(e.value)


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "·": operator.mul, "/": lambda a, b: sympy.sympify(a) / b,
    "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip


class Definition:
    """A formula by its definition, element by element, on arrays of symbols."""

    def __init__(self, formula: Formula, tensors: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
        self.recs = {r.name: r for r in formula.recs}
        self.tensors, self.sizes = tensors, sizes
        self.states: dict[tuple[str, tuple[int, ...]], Any] = {}

    def value(self, e: Expr, at: Mapping[str, int]) -> Any:
        match e:
            case Num(n):
                return int(n) if n.denominator == 1 else sympy.Rational(n.numerator, n.denominator)
            case Var(name):
                return at[name]
            case Size(name):
                return self.sizes[name]
            case Named(_, inner):
                return self.value(inner, at)
            case Neg(arg):
                return -self.value(arg, at)
            case Bin(op, left, right):
                return ARITHMETIC[op](self.value(left, at), self.value(right, at))
            case Load(name, indices):
                return self.tensors[name][tuple(self.value(i, at) for i in indices)]
            case State(name, indices):
                return self.state(name, tuple(self.value(i, at) for i in indices))
            case Reduce("Σ", var, extent, None, body):
                return sum((self.value(body, {**at, var: n}) for n in range(self.value(extent, at))), sympy.Integer(0))
        raise AssertionError(f"no symbols for {type(e).__name__}")

    def state(self, name: str, place: tuple[int, ...]) -> Any:
        if (name, place) not in self.states:
            rec = self.recs[name]
            at = dict(zip((n for n, _ in rec.indices), place, strict=True))
            self.states[name, place] = sympy.expand(self.value(rec.init if place[0] < 0 else rec.step, at))
        return self.states[name, place]


def evaluate(formula: Formula, tensors: Mapping[str, Array], sizes: Mapping[str, int]) -> dict[str, Array]:
    """The results of a closed formula on arrays of symbols."""
    definition, found = Definition(formula, tensors, sizes), {}
    for q in formula.equations:
        shape = [_extent(d, sizes) for d in q.tensor.dims]
        found[q.tensor.name] = np.empty(shape, object)
        for place in np.ndindex(*shape):
            at = dict(zip(q.indices, place, strict=True))
            found[q.tensor.name][place] = definition.value(q.expr, at)
    return found
