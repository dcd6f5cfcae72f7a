"""Where a kernel may read and write, and a record of what it wrote.

Writes are kept as runs of byte addresses, so that a record costs memory by what was written, not by the
tensor.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from specc.targets.triton.interpret_faults import DoubleWrite, Program

Runs = NDArray[np.int64]
"""Byte ranges [n, 2]: first address, address past the last."""

_NO_RUNS: Runs = np.zeros((0, 2), dtype=np.int64)


class Region:
    """The memory of one tensor argument: from its first element to the end of its last, of any strides."""

    def __init__(self, argument: str, tensor: torch.Tensor) -> None:
        self.argument = argument
        self.tensor = tensor
        self.itemsize = tensor.element_size()
        self.start = tensor.data_ptr()
        self.size = extent(tensor) * self.itemsize
        self._views: dict[np.dtype[Any], NDArray[Any]] = {}

    def view(self, kind: np.dtype[Any]) -> NDArray[Any]:
        """The region as a flat array that shares its memory."""
        if kind not in self._views:
            memory = (ctypes.c_char * self.size).from_address(self.start)
            self._views[kind] = np.frombuffer(memoryview(memory), dtype=kind, count=self.size // kind.itemsize)
        return self._views[kind]


def extent(tensor: torch.Tensor) -> int:
    """Elements from the first to the last one of a strided tensor, both included."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))


@dataclass(frozen=True)
class Launch:
    """One launch: the kernel's name, its full grid, and the programs that ran, in order."""

    kernel: str
    grid: Program
    programs: tuple[Program, ...]


@dataclass(frozen=True)
class WrittenTensor:
    """A tensor argument a launch stored into, with the number of stored elements (repetitions count)."""

    kernel: str
    argument: str
    tensor: torch.Tensor
    elements: int


@dataclass(frozen=True)
class _Stores:
    """Byte addresses of the elements one program stored into one region."""

    region: Region
    program: Program
    itemsize: int
    runs: Runs
    atomic: bool


def _runs_of(addresses: NDArray[np.int64], itemsize: int) -> Runs:
    """Runs of sorted distinct addresses of elements."""
    if addresses.size == 0:
        return _NO_RUNS
    breaks = np.flatnonzero(np.diff(addresses) != itemsize)
    first = np.concatenate(([0], breaks + 1))
    last = np.concatenate((breaks, [addresses.size - 1]))
    return np.stack((addresses[first], addresses[last] + itemsize), axis=1)


def _runs_with_repeats(addresses: NDArray[np.int64], itemsize: int) -> Runs:
    """Runs that together cover each address as often as it occurs."""
    layers = []
    left = np.sort(addresses)
    while left.size:
        fresh = np.concatenate(([True], left[1:] != left[:-1]))
        layers.append(_runs_of(left[fresh], itemsize))
        left = left[~fresh]
    return np.concatenate(layers) if layers else _NO_RUNS


class WriteLog:
    """The stores of one launch. `calls`: how many programs called each device function."""

    def __init__(self) -> None:
        self.stores: list[_Stores] = []
        self.calls: Counter[str] = Counter()
        self._called: set[str] = set()
        self._open: dict[tuple[int, int, bool], tuple[Region, list[NDArray[np.int64]]]] = {}

    def add(self, region: Region, addresses: NDArray[np.int64], itemsize: int, atomic: bool) -> None:
        """Notes elements that the running program stores."""
        entry = self._open.setdefault((id(region), itemsize, atomic), (region, []))
        entry[1].append(addresses)

    def note_call(self, function: str) -> None:
        """Notes that the running program calls a device function."""
        self._called.add(function)

    def close_program(self, program: Program) -> None:
        """Packs what the program that has ended stored and called."""
        self.calls.update(self._called)
        self._called.clear()
        for (_, itemsize, atomic), (region, parts) in self._open.items():
            runs = _runs_with_repeats(np.concatenate(parts), itemsize)
            self.stores.append(_Stores(region, program, itemsize, runs, atomic))
        self._open.clear()

    def check_once(self) -> None:
        """Raises DoubleWrite if two plain stores meet, across tensors that share memory too."""
        plain = [s for s in self.stores if not s.atomic]
        if not plain:
            return
        runs = np.concatenate([s.runs for s in plain])
        owner = np.repeat(np.arange(len(plain)), [len(s.runs) for s in plain])
        order = np.argsort(runs[:, 0], kind="stable")
        runs, owner = runs[order], owner[order]
        clash = np.flatnonzero(np.maximum.accumulate(runs[:, 1])[:-1] > runs[1:, 0])
        if clash.size:
            later = int(clash[0]) + 1
            earlier = int(np.argmax(runs[:later, 1]))
            raise _double_write(plain[owner[earlier]], plain[owner[later]], int(runs[later, 0]))


def _double_write(first: _Stores, second: _Stores, address: int) -> DoubleWrite:
    offset = (address - second.region.start) // second.itemsize
    fault = DoubleWrite(
        f"element {offset} of {second.region.argument} is stored twice, "
        f"by program {first.program} and by program {second.program}"
    )
    fault.program = second.program
    return fault


@dataclass
class Trace:
    """What the launches inside one `interpreted` block did.

    The trace holds the tensors that were written, so their memory is not reused while it lives.
    """

    launches: list[Launch] = field(default_factory=list)
    _logs: list[tuple[str, WriteLog]] = field(default_factory=list)

    def record(self, launch: Launch, log: WriteLog) -> None:
        """Adds a launch that has ended."""
        self.launches.append(launch)
        self._logs.append((launch.kernel, log))

    def programs_calling(self, function: str) -> int:
        """How many programs called a device function."""
        return sum(log.calls[function] for _, log in self._logs)

    def written_tensors(self) -> tuple[WrittenTensor, ...]:
        """Every tensor argument stored into, by launch and parameter, in order of first store."""
        return tuple(entry for kernel, log in self._logs for entry in _written_in(kernel, log))

    def write_counts(self, tensor: torch.Tensor) -> NDArray[np.int64]:
        """How often each element was stored in all launches, atomics included; has the tensor's shape."""
        size, start = extent(tensor), tensor.data_ptr()
        steps = np.zeros(size + 1, dtype=np.int32)
        for first, past in self._elements_in(tensor, start, size):
            np.add.at(steps, first, 1)
            np.add.at(steps, past, -1)
        flat = np.cumsum(steps[:-1], dtype=np.int32)
        strides = [s * flat.itemsize for s in tensor.stride()]
        view = np.lib.stride_tricks.as_strided(flat, tuple(tensor.shape), strides)
        return view.astype(np.int64)

    def written(self, tensor: torch.Tensor) -> NDArray[np.int64]:
        """The distinct multi-indices [n, ndim] of stored elements, sorted."""
        parts = [
            np.concatenate([np.arange(a, b) for a, b in zip(first, past, strict=True)])
            for first, past in self._elements_in(tensor, tensor.data_ptr(), extent(tensor))
            if first.size
        ]
        offsets = np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)
        return _multi_indices(offsets, tensor)

    def _elements_in(
        self, tensor: torch.Tensor, start: int, size: int
    ) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Stored runs clipped to the tensor, as element offsets (first, past)."""
        itemsize = tensor.element_size()
        found = []
        for _, log in self._logs:
            for stores in log.stores:
                offsets = np.clip((stores.runs - start) // itemsize, 0, size)
                kept = offsets[:, 1] > offsets[:, 0]
                found.append((offsets[kept, 0], offsets[kept, 1]))
        return found


def _written_in(kernel: str, log: WriteLog) -> list[WrittenTensor]:
    found: dict[int, tuple[Region, int]] = {}
    for stores in log.stores:
        elements = int((stores.runs[:, 1] - stores.runs[:, 0]).sum()) // stores.itemsize
        _, before = found.get(id(stores.region), (stores.region, 0))
        found[id(stores.region)] = (stores.region, before + elements)
    return [WrittenTensor(kernel, r.argument, r.tensor, n) for r, n in found.values()]


def _multi_indices(offsets: NDArray[np.int64], tensor: torch.Tensor) -> NDArray[np.int64]:
    """Indices of the elements at storage offsets, without those that lie between the tensor's elements."""
    index = np.zeros((offsets.size, tensor.dim()), dtype=np.int64)
    left = offsets.copy()
    real = [d for d in range(tensor.dim()) if tensor.shape[d] > 1 and tensor.stride(d) > 0]
    strides = tensor.stride()
    for d in sorted(real, key=lambda d: -strides[d]):
        index[:, d] = np.minimum(left // strides[d], tensor.shape[d] - 1)
        left -= index[:, d] * strides[d]
    inside: NDArray[np.int64] = index[left == 0]
    return inside[np.lexsort(inside.T[::-1])] if tensor.dim() else inside
