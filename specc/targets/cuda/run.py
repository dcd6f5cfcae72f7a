"""Runs a generated file on the CPU: operands in guarded memory, results and what the launches did."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from specc.ir import Role
from specc.kernels import Kernel, Operand
from specc.ops import Size, Sort
from specc.oracle.sizes import dim_value
from specc.targets.cuda import host
from specc.targets.cuda.emit import SPACE, symbol
from specc.targets.cuda.names import legal
from specc.targets.cuda.session import Buffer, KernelFault, Sampler, Trace, call
from specc.targets.cuda.wrapper import Argument, arguments, needs_workspace

TYPES = {torch.bfloat16: 0, torch.float16: 1, torch.float32: 2, torch.float64: 3}
"""Storage types as launch wrappers number them."""
INTEGERS = (torch.int32, torch.int64)
GUARD = 1 << 16
"""Bytes between operands, so that what passes the end of one does not reach another."""


def run_text(
    kernel: Kernel,
    text: str,
    tensors: Mapping[str, torch.Tensor],
    programs: Sampler | None = None,
    seed: int = 0,
    widen: bool = False,
    space: str = SPACE,
    pitch: int | None = None,
) -> tuple[dict[str, torch.Tensor], Trace]:
    """The results by name, in new memory, and what the launches did. `text`: the kernel's file. `seed` decides the
    order of blocks and of the threads of a block. `widen`: everything in float64. `pitch`: rows of activations, states
    and results start at multiples of so many elements. A result among `tensors` says how its memory lies.

    Raises KernelFault; ValueError for operands that do not fit; HostCompileError; SpecError (E509) where there is no
    C++ compiler.
    """
    library = host.load(host.build(text, widen))
    one = _Call(kernel, tensors, library, symbol(kernel, space), pitch, torch.float64 if widen else torch.float32)
    trace = call(library, one.symbol, one.values(), one.buffers(), seed, programs)
    return one.results(trace), trace


class _Call:
    """The arguments of one call of a launch wrapper."""

    def __init__(
        self,
        kernel: Kernel,
        tensors: Mapping[str, torch.Tensor],
        library: ctypes.CDLL,
        symbol: str,
        pitch: int | None,
        untyped: torch.dtype = torch.float32,
    ) -> None:
        self.kernel, self.symbol, self.pitch = kernel, symbol, pitch
        self.ready = legal(kernel)
        self.names = {r.name: o.name for r, o in zip(self.ready.operands, kernel.operands, strict=True)}
        self.sizes = bind_sizes(kernel, tensors)
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        self.strides: dict[str, tuple[int, ...]] = {}
        self.type = storage_of(kernel, tensors, untyped)
        self.index_bytes = index_bytes(kernel, tensors)
        windows = [(o, *self._window(o, tensors)) for o in kernel.operands]
        room = sum(w.nbytes + GUARD for _, w, _ in windows) + GUARD * (len(kernel.tables) + 1)
        room += sum(8 * t.extent for t in kernel.tables)
        self.arena = np.full(room, 0xFF, dtype=np.uint8)
        self.at = GUARD
        for o, window, skew in windows:
            self.arrays[o.name] = self._placed(window, skew)
        for own, t in zip(self.ready.tables, kernel.tables, strict=True):
            table = self._placed(np.zeros(t.extent), 0)
            getattr(library, f"{symbol}_{own.name}")(ctypes.c_void_p(table.ctypes.data))
            self.arrays[own.name] = table
        self.workspace = self._workspace(library)

    def _workspace(self, library: ctypes.CDLL) -> npt.NDArray[Any]:
        """Memory that launches need beside operands."""
        if not needs_workspace(self.ready):
            return np.zeros(0)
        count = getattr(library, f"{self.symbol}_workspace")
        count.restype = ctypes.c_int64
        sizes = [ctypes.c_int64(self.sizes[s]) for s in self.kernel.sizes]
        return np.full(count(*sizes), np.nan, np.float64 if self.type is torch.float64 else np.float32)

    def _window(self, o: Operand, tensors: Mapping[str, torch.Tensor]) -> tuple[npt.NDArray[Any], int]:
        """The memory from an operand's first element to its last, and how its start lies against 16 bytes."""
        t = self._empty(o) if o.name not in tensors else tensors[o.name]
        if t.dim() and t.stride(-1) != 1 and t.shape[-1] > 1:
            raise ValueError(f"the last axis of `{o.name}` is not contiguous")
        if self.pitch and o.role is not Role.WEIGHT and t.is_floating_point():
            t = spread(t, self.pitch)
        self.strides[o.name] = t.stride()
        reach = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) if t.numel() else 0
        return _bits(torch.as_strided(t, (reach,), (1,))), t.data_ptr() % 16

    def _empty(self, o: Operand) -> torch.Tensor:
        """A result before it is written, at a multiple of 16 bytes."""
        shape = [dim_value(d, self.sizes) for d in o.dims]
        if o.sort is not Sort.REAL:
            return torch.full(shape, -1)
        return torch.full(shape, float("nan"), dtype=stored_type(o, self.type))

    def _placed(self, window: npt.NDArray[Any], skew: int) -> npt.NDArray[Any]:
        start = self.at + (skew - self.arena.ctypes.data - self.at) % 16
        place = self.arena[start : start + window.nbytes].view(window.dtype)
        place[:] = window
        self.at = start + window.nbytes + GUARD - 64
        return place

    def buffers(self) -> list[Buffer]:
        outputs = {o.name for o in self.kernel.operands if o.output}
        own = [Buffer("workspace", self.workspace, True)] if self.workspace.size else []
        return [*(Buffer(n, a, n in outputs) for n, a in self.arrays.items()), *own]

    def values(self) -> list[Any]:
        return [self._value(a) for a in arguments(self.ready)]

    def _value(self, a: Argument) -> Any:
        match a.kind:
            case "type":
                return ctypes.c_int(TYPES[self.type])
            case "index_bytes":
                return ctypes.c_int(self.index_bytes)
            case "workspace":
                return ctypes.c_void_p(self.workspace.ctypes.data)
            case "operand" | "table":
                return ctypes.c_void_p(self.arrays[self.names.get(a.operand, a.operand)].ctypes.data)
            case "size":
                return ctypes.c_int64(self.sizes[self.kernel.sizes[self.ready.sizes.index(a.name)]])
            case "stride":
                return ctypes.c_int64(self.strides[self.names[a.operand]][a.axis])
        return ctypes.c_void_p(None)

    def results(self, trace: Trace) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = {}
        for o in self.kernel.operands:
            if not o.output:
                continue
            shape = [dim_value(d, self.sizes) for d in o.dims]
            dtype = stored_type(o, self.type) if o.sort is Sort.REAL else torch.int64
            flat = torch.from_numpy(self.arrays[o.name].copy()).view(dtype)
            found[o.name] = torch.as_strided(flat, shape, self.strides[o.name]).contiguous()
            counts = torch.from_numpy(trace.counts[o.name])
            inside = torch.as_strided(counts, shape, self.strides[o.name])
            if int(counts.count_nonzero()) > int(inside.count_nonzero()):
                raise KernelFault(f"{o.name} is written between its rows")
            trace.counts[o.name] = inside.contiguous().numpy()
        return found


def spread(tensor: torch.Tensor, pitch: int) -> torch.Tensor:
    """The same values in rows that start at multiples of `pitch` elements, with NaN between them."""
    if tensor.dim() < 2:
        return tensor
    *outer, last = tensor.shape
    room = torch.full((*outer, -(-last // pitch) * pitch), float("nan"), dtype=tensor.dtype)
    room[..., :last] = tensor
    return room[..., :last]


def bind_sizes(kernel: Kernel, tensors: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """Run-time sizes out of shapes. Raises ValueError where they contradict each other or the kernel."""
    sizes: dict[str, int] = {}
    inputs = [o for o in kernel.operands if not o.output]
    for o in inputs:
        if o.name not in tensors or tensors[o.name].dim() != len(o.dims):
            raise ValueError(f"`{o.name}` is missing, or has not {len(o.dims)} axes")
        for d, n in zip(o.dims, tensors[o.name].shape, strict=True):
            if isinstance(d, Size):
                sizes.setdefault(d.name, n)
    for o in inputs:
        wanted = [dim_value(d, sizes) for d in o.dims]
        if wanted != list(tensors[o.name].shape):
            raise ValueError(f"`{o.name}` has shape {list(tensors[o.name].shape)}, expected {wanted}")
    return sizes


def storage_of(kernel: Kernel, tensors: Mapping[str, torch.Tensor], untyped: torch.dtype) -> torch.dtype:
    """The storage type that all real operands but accumulators share; where there are none, that of the results among
    `tensors`, else float64 of accumulators in it, else `untyped`. Raises ValueError."""
    reals = [o for o in kernel.operands if o.sort is Sort.REAL and not o.output]
    given = [o for o in kernel.operands if o.sort is Sort.REAL and o.name in tensors]
    typed = [o for o in reals if o.role is not Role.ACCUMULATOR] or [o for o in given if o.role is not Role.ACCUMULATOR]
    wide = any(tensors[o.name].dtype is torch.float64 for o in reals)
    found = {tensors[o.name].dtype for o in typed} or {torch.float64 if wide else untyped}
    if len(found) != 1 or not found <= TYPES.keys():
        raise ValueError(f"operands are stored in {', '.join(sorted(map(str, found)))}; one type is needed")
    (dtype,) = found
    wrong = [o.name for o in reals if tensors[o.name].dtype != stored_type(o, dtype)]
    if wrong:
        raise ValueError(f"`{wrong[0]}` is stored in {tensors[wrong[0]].dtype}")
    return dtype


def index_bytes(kernel: Kernel, tensors: Mapping[str, torch.Tensor]) -> int:
    """Bytes of the integers that all index operands share. Raises ValueError."""
    found = {o.name: tensors[o.name].dtype for o in kernel.operands if o.sort is Sort.INDEX and not o.output}
    wrong = [n for n, dtype in found.items() if dtype not in INTEGERS]
    if wrong:
        raise ValueError(f"`{wrong[0]}` is stored in {found[wrong[0]]}, not in {' or '.join(map(str, INTEGERS))}")
    if len(set(found.values())) > 1:
        raise ValueError("index operands differ in type")
    return max((dtype.itemsize for dtype in found.values()), default=8)


def stored_type(o: Operand, dtype: torch.dtype) -> torch.dtype:
    found: torch.dtype = getattr(torch, o.stored(str(dtype).removeprefix("torch.")))
    return found


def _bits(flat: torch.Tensor) -> npt.NDArray[Any]:
    """The same memory as numbers that NumPy has."""
    if flat.dtype in (torch.bfloat16, torch.float16):
        found: npt.NDArray[Any] = flat.view(torch.int16).numpy()
        return found
    array: npt.NDArray[Any] = flat.numpy()
    return array
