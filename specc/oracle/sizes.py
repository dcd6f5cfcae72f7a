"""Run-time sizes from the shapes of operands, and the places of results that are wanted."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from specc.formula_text import expr_text
from specc.ops import Bin, Expr, Formula, FormulaEquation, FormulaTensor, Neg, Num, Size, Sort
from specc.oracle.arrays import Array

DIM: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "·": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
Chosen = Mapping[str, Mapping[str, Any]]
"""Per result, per index variable: positions, or a slice."""


def bind(formula: Formula, tensors: Mapping[str, Array], sizes: Mapping[str, int] | None = None) -> dict[str, int]:
    """Run-time sizes out of the shapes of all inputs. Raises ValueError where operands are missing, unknown,
    of a wrong rank or kind, or where shapes contradict each other, the formula or `sizes`."""
    known = {t.name for t in formula.inputs}
    unknown = [n for n in tensors if n not in known]
    if unknown:
        raise ValueError(f"{formula.op} has no operand `{unknown[0]}`; it has {', '.join(sorted(known))}")
    found = dict(sizes or {})
    origin = dict.fromkeys(found, "the given sizes")
    for t in formula.inputs:
        _check_operand(formula, t, tensors)
        for dim, n in zip(t.dims, tensors[t.name].shape, strict=True):
            if isinstance(dim, Size) and found.setdefault(dim.name, n) != n:
                where = origin[dim.name]
                raise ValueError(f"{dim.name} is {n} in `{t.name}` but {found[dim.name]} in {where}")
            if isinstance(dim, Size):
                origin.setdefault(dim.name, f"`{t.name}`")
    for t in formula.inputs:
        _check_shape(t, tensors[t.name].shape, found)
    return found


def _check_operand(formula: Formula, t: FormulaTensor, tensors: Mapping[str, Array]) -> None:
    if t.name not in tensors:
        raise ValueError(f"{formula.op} needs operand `{t.name}`{_dims(t.dims)}")
    array = tensors[t.name]
    if array.ndim != len(t.dims):
        raise ValueError(f"`{t.name}` has shape {list(array.shape)}, expected {_dims(t.dims)}")
    kinds, wanted = ("iu", "integers") if t.sort is Sort.INDEX else ("fiub", "real numbers")
    if array.dtype.kind not in kinds or array.dtype.itemsize > 8:
        raise ValueError(f"`{t.name}` holds {array.dtype}, expected {wanted}")


def _check_shape(t: FormulaTensor, shape: tuple[int, ...], sizes: Mapping[str, int]) -> None:
    for k, (dim, n) in enumerate(zip(t.dims, shape, strict=True)):
        right = dim_value(dim, sizes)
        if right != n:
            raise ValueError(f"axis {k} of `{t.name}` has length {n}, expected {right}")


def _dims(dims: tuple[Expr, ...]) -> str:
    """`[T, 32, 256]`; a dimension that is computed shows as `…`."""
    return "[" + ", ".join(str(_plain(d)) for d in dims) + "]"


def _plain(dim: Expr) -> int | str:
    match dim:
        case Num(value):
            return int(value)
        case Size(name):
            return name
    return "…"


def dim_value(dim: Expr, sizes: Mapping[str, int]) -> int:
    """A dimension as a number. Raises ValueError where it has no value, or a size of it has none."""
    match dim:
        case Num(value):
            return int(value)
        case Size(name):
            if name not in sizes:
                raise ValueError(f"size {name} has no value: no operand has it as a dimension")
            return sizes[name]
        case Neg(arg):
            return -dim_value(arg, sizes)
        case Bin(op, left, right):
            a, b = dim_value(left, sizes), dim_value(right, sizes)
            if op in ("//", "%") and b == 0:
                raise ValueError(f"{expr_text(dim)} has no value: {expr_text(right)} is 0")
            return DIM[op](a, b)
    raise ValueError(f"a dimension is an index expression over sizes, not {type(dim).__name__}")


def places(q: FormulaEquation, sizes: Mapping[str, int], at: Chosen | None) -> dict[str, Array]:
    """The positions of each index variable of an equation. Raises ValueError, IndexError."""
    chosen = dict((at or {}).get(q.tensor.name, {}))
    unknown = [v for v in chosen if v not in q.indices]
    if unknown:
        raise ValueError(f"`{q.tensor.name}` has no index {unknown[0]}; it has {', '.join(q.indices)}")
    extents = {v: dim_value(d, sizes) for v, d in zip(q.indices, q.tensor.dims, strict=True)}
    return {v: _positions(q.tensor.name, v, n, chosen.get(v, slice(None))) for v, n in extents.items()}


def _positions(tensor: str, var: str, n: int, wanted: Any) -> Array:
    if isinstance(wanted, slice):
        return np.arange(n)[wanted]
    out = np.atleast_1d(np.asarray(wanted))
    if out.ndim != 1 or (out.size and out.dtype.kind not in "iu"):
        raise ValueError(f"positions of {var} in `{tensor}` are a list of integers or a slice")
    if out.size and (out.min() < 0 or out.max() >= n):
        wrong = int(out.max() if out.max() >= n else out.min())
        raise IndexError(f"position {wrong} of {var} in `{tensor}` is outside 0 to {n - 1}")
    return out.astype(np.int64)
