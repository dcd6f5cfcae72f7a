"""Reductions and scans of Triton, on whole arrays at a time.

A combining function is applied to halves, as a GPU does it, and not element by element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from specc.targets.triton.interpret_faults import IndexWrap
from specc.targets.triton.interpret_memory import refuse_storage_type
from specc.targets.triton.interpret_numeric import Array, numpy_type

Combine = Callable[..., Any]


def _tensor(data: Array, kind: Any) -> Any:
    """A tensor of the array's shape; an array without axes is a scalar."""
    data = data.astype(numpy_type(kind), copy=False)
    if data.ndim == 0:
        return tl.tensor(TensorHandle(data.reshape(1), kind), kind)
    return tl.tensor(TensorHandle(data, kind), tl.block_type(kind, list(data.shape)))


def _plain(x: Any) -> Any:
    return x.value if isinstance(x, tl.constexpr) else x


def _fast_reduction(combine: Combine) -> Callable[..., Any] | None:
    standard = tl.standard
    found: dict[int, Callable[..., Any]] = {
        id(standard._sum_combine): np.sum,
        id(standard._elementwise_max): np.fmax.reduce,
        id(standard._elementwise_min): np.fmin.reduce,
    }
    return found.get(id(combine))


def _folded(fold: Callable[..., Any], data: Array) -> Array:
    """Folds the last axis; NumPy widens integer sums, so one that leaves the element type shows."""
    out = np.asarray(fold(data, axis=-1))
    if data.dtype.kind in "iu" and out.size:
        limits = np.iinfo(data.dtype)
        if int(out.min()) < limits.min or int(out.max()) > limits.max:
            raise IndexWrap(f"a reduction leaves the range of {data.dtype.name}")
    return out


def _combined(combine: Combine, left: list[Array], right: list[Array], kinds: list[Any]) -> list[Array]:
    """The combining function on arrays of equal shape."""
    operands = [_tensor(data, kind) for data, kind in zip((*left, *right), (*kinds, *kinds), strict=True)]
    out = combine(*operands)
    parts = out if isinstance(out, (tuple, tl.tuple)) else (out,)
    shape = left[0].shape
    return [np.broadcast_to(part.handle.data, shape) for part in parts]


def _halved(data: list[Array], combine: Combine, kinds: list[Any]) -> list[Array]:
    """Reduces the last axis, whose length is a power of two, by combining neighbours."""
    while data[0].shape[-1] > 1:
        left = [np.ascontiguousarray(d[..., 0::2]) for d in data]
        right = [np.ascontiguousarray(d[..., 1::2]) for d in data]
        data = _combined(combine, left, right, kinds)
    return [d[..., 0] for d in data]


def reduce_along(
    input: Any,
    axis: Any,
    combine_fn: Combine,
    keep_dims: Any = False,
    _semantic: Any = None,
    _generator: Any = None,
) -> Any:
    """`tl.reduce` of a tensor, or of a tuple of tensors of one shape. `axis=None` reduces all axes."""
    if isinstance(input, tl.tensor):
        return reduce_along((input,), axis, combine_fn, keep_dims)[0]
    axis, keep = _plain(axis), bool(_plain(keep_dims))
    refuse_storage_type(*(x.handle for x in input))
    kinds = [x.dtype for x in input]
    rank = input[0].handle.data.ndim
    data = [x.handle.data.reshape(-1) if axis is None else np.moveaxis(x.handle.data, axis, -1) for x in input]
    fast = _fast_reduction(combine_fn)
    out = [_folded(fast, data[0])] if fast else _halved(data, combine_fn, kinds)
    if keep:
        out = [o.reshape((1,) * rank) if axis is None else np.expand_dims(o, axis) for o in out]
    return tuple(_tensor(o, kind) for o, kind in zip(out, kinds, strict=True))


def scan_along(
    input: Any,
    axis: Any,
    combine_fn: Combine,
    reverse: Any = False,
    _semantic: Any = None,
    _generator: Any = None,
) -> Any:
    """`tl.associative_scan` of a tensor, or of a tuple of tensors of one shape."""
    if isinstance(input, tl.tensor):
        return scan_along((input,), axis, combine_fn, reverse)[0]
    axis, reverse = _plain(axis), bool(_plain(reverse))
    refuse_storage_type(*(x.handle for x in input))
    kinds = [x.dtype for x in input]
    data = [np.moveaxis(x.handle.data, axis, -1) for x in input]
    data = [np.ascontiguousarray(d[..., ::-1] if reverse else d) for d in data]
    data = _scanned(data, combine_fn, kinds)
    data = [np.moveaxis(d[..., ::-1] if reverse else d, -1, axis) for d in data]
    return tuple(_tensor(np.ascontiguousarray(d), kind) for d, kind in zip(data, kinds, strict=True))


def _scanned(data: list[Array], combine: Combine, kinds: list[Any]) -> list[Array]:
    """Inclusive scan of the last axis in doubling steps."""
    if combine is tl.standard._sum_combine:
        return [_folded(np.cumsum, data[0])]
    step = 1
    while step < data[0].shape[-1]:
        left = [np.concatenate((d[..., :step], d[..., :-step]), axis=-1) for d in data]
        both = _combined(combine, left, data, kinds)
        pairs = zip(data, both, strict=True)
        data = [np.concatenate((d[..., :step], new[..., step:]), axis=-1) for d, new in pairs]
        step *= 2
    return data
