"""What the launch wrappers of the CUDA target would launch, so that the machine with the GPU needs no C++ compiler."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from specc.kernels import Kernel, Operand
from specc.ops import Sort
from specc.oracle.sizes import dim_value
from specc.targets.cuda import host
from specc.targets.cuda.emit import emit, symbol
from specc.targets.cuda.names import legal
from specc.targets.cuda.run import TYPES
from specc.targets.cuda.session import Planned, plan
from specc.targets.cuda.wrapper import Argument, arguments, needs_workspace

PLACE = 1 << 44
"""Bytes from one stand-in for a tensor to the next."""
SAME_WIDTH = {"bfloat16": "float16"}
"""What NumPy has in place of a type."""


def tables(kernel: Kernel, space: str) -> dict[str, Any]:
    """The tables that the kernel reads, filled by its own file."""
    library = host.load(host.build_wrapper(emit(kernel, space)))
    found = {}
    for own, t in zip(legal(kernel).tables, kernel.tables, strict=True):
        found[own.name] = np.zeros(t.extent)
        fill = getattr(library, f"{symbol(kernel, space)}_{own.name}")
        fill(ctypes.c_void_p(found[own.name].ctypes.data))
    return found


@dataclass(frozen=True)
class Given:
    """How the tensors of a launch are stored: their reals, their integers, and how many elements inputs of reals lie
    past a multiple of 16 bytes."""

    dtype: str
    index: str = "int64"
    skew: int = 0

    def bytes_past(self, o: Operand) -> int:
        moved = o.sort is Sort.REAL and not o.output
        return self.skew * np.dtype(SAME_WIDTH.get(own := o.stored(self.dtype), own)).itemsize if moved else 0


def launches(kernel: Kernel, space: str, sizes: Mapping[str, int], given: Given) -> tuple[list[Any], int]:
    """The launches for contiguous tensors, as gpu_cases.Launch reads them, and how much memory they need beside."""
    library = host.load(host.build_wrapper(emit(kernel, space)))
    ready, name = legal(kernel), symbol(kernel, space)
    extents = [ctypes.c_int64(sizes[s]) for s in kernel.sizes]
    workspace = 0
    if needs_workspace(ready):
        count = getattr(library, f"{name}_workspace")
        count.restype = ctypes.c_int64
        workspace = int(count(*extents))
    wanted = arguments(ready)
    pointers = [a.name for a in wanted if a.kind in ("operand", "table", "workspace")]
    own = {r.name: o for r, o in zip(ready.operands, kernel.operands, strict=True)}
    past = {p: given.bytes_past(own[p]) if p in own else 0 for p in pointers}
    values = [_value(a, kernel, ready, sizes, given, past) for a in wanted]
    places = [(own[p].name if p in own else p, past[p]) for p in pointers]
    return [_told(one, places) for one in plan(library, name, values)], workspace


def _value(
    a: Argument, kernel: Kernel, ready: Kernel, sizes: Mapping[str, int], given: Given, past: Mapping[str, int]
) -> Any:
    """`past`: of each pointer, in their order, the bytes from a multiple of 16."""
    match a.kind:
        case "type":
            return ctypes.c_int(next(n for t, n in TYPES.items() if str(t) == f"torch.{given.dtype}"))
        case "index_bytes":
            return ctypes.c_int(np.dtype(given.index).itemsize)
        case "operand" | "table" | "workspace":
            return ctypes.c_void_p((list(past).index(a.name) + 1) * PLACE + past[a.name])
        case "size":
            return ctypes.c_int64(sizes[kernel.sizes[ready.sizes.index(a.name)]])
        case "stride":
            number = next(n for n, o in enumerate(ready.operands) if o.name == a.operand)
            shape = [dim_value(d, sizes) for d in kernel.operands[number].dims]
            return ctypes.c_int64(prod(shape[a.axis + 1 :]))
    return ctypes.c_void_p(None)


def _told(one: Planned, places: Sequence[tuple[str, int]]) -> list[Any]:
    return [one.kernel, one.grid, one.block, one.shared_bytes, [_argument(a, places) for a in one.arguments]]


def _argument(data: bytes, places: Sequence[tuple[str, int]]) -> tuple[str | int, int]:
    """A tensor and bytes from its start, or a number and its size."""
    number = int.from_bytes(data, "little")
    place, offset = divmod(number, PLACE)
    if len(data) != 8 or not 1 <= place <= len(places):
        return number, len(data)
    name, past = places[place - 1]
    return name, offset - past
