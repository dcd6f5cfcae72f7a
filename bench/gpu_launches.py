"""What the launch wrappers of the CUDA target would launch, so that the machine with the GPU needs no C++ compiler."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from specc.kernels import Kernel
from specc.oracle.sizes import dim_value
from specc.targets.cuda import host
from specc.targets.cuda.emit import emit, symbol
from specc.targets.cuda.names import legal
from specc.targets.cuda.run import TYPES
from specc.targets.cuda.session import Planned, plan
from specc.targets.cuda.wrapper import Argument, arguments, needs_workspace

PLACE = 1 << 44
"""Bytes from one stand-in for a tensor to the next."""


def tables(kernel: Kernel, space: str) -> dict[str, Any]:
    """The tables that the kernel reads, filled by its own file."""
    library = host.load(host.build_wrapper(emit(kernel, space)))
    found = {}
    for own, t in zip(legal(kernel).tables, kernel.tables, strict=True):
        found[own.name] = np.zeros(t.extent)
        fill = getattr(library, f"{symbol(kernel, space)}_{own.name}")
        fill(ctypes.c_void_p(found[own.name].ctypes.data))
    return found


def launches(kernel: Kernel, space: str, sizes: Mapping[str, int], dtype: str) -> tuple[list[Any], int]:
    """The launches for contiguous tensors, as gpu_cases.Launch reads them, and how much memory they need beside."""
    library = host.load(host.build_wrapper(emit(kernel, space)))
    ready, name = legal(kernel), symbol(kernel, space)
    extents = [ctypes.c_int64(sizes[s]) for s in kernel.sizes]
    workspace = 0
    if needs_workspace(ready):
        count = getattr(library, f"{name}_workspace")
        count.restype = ctypes.c_int64
        workspace = int(count(*extents))
    given = arguments(ready)
    pointers = [a.name for a in given if a.kind in ("operand", "table", "workspace")]
    values = [_value(a, kernel, ready, sizes, dtype, pointers) for a in given]
    names = {r.name: o.name for r, o in zip(ready.operands, kernel.operands, strict=True)}
    found = plan(library, name, values)
    return [_told(one, [names.get(p, p) for p in pointers]) for one in found], workspace


def _value(
    a: Argument, kernel: Kernel, ready: Kernel, sizes: Mapping[str, int], dtype: str, pointers: list[str]
) -> Any:
    match a.kind:
        case "type":
            return ctypes.c_int(next(n for t, n in TYPES.items() if str(t) == f"torch.{dtype}"))
        case "index_bytes":
            return ctypes.c_int(8)
        case "operand" | "table" | "workspace":
            return ctypes.c_void_p((pointers.index(a.name) + 1) * PLACE)
        case "size":
            return ctypes.c_int64(sizes[kernel.sizes[ready.sizes.index(a.name)]])
        case "stride":
            number = next(n for n, o in enumerate(ready.operands) if o.name == a.operand)
            shape = [dim_value(d, sizes) for d in kernel.operands[number].dims]
            return ctypes.c_int64(prod(shape[a.axis + 1 :]))
    return ctypes.c_void_p(None)


def _told(one: Planned, pointers: list[str]) -> list[Any]:
    return [one.kernel, one.grid, one.block, one.shared_bytes, [_argument(a, pointers) for a in one.arguments]]


def _argument(data: bytes, pointers: list[str]) -> tuple[str | int, int]:
    """A tensor and bytes from its start, or a number and its size."""
    number = int.from_bytes(data, "little")
    place, offset = divmod(number, PLACE)
    return (pointers[place - 1], offset) if len(data) == 8 and 1 <= place <= len(pointers) else (number, len(data))
