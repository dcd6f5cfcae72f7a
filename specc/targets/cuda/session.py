"""One call of a launch wrapper on the CPU: what memory it may touch, in which order threads run, what it did."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from specc.targets.cuda import host

Program = tuple[int, int, int]
Sampler = Callable[[str, Program], Iterable[Program]]


class KernelFault(RuntimeError):
    """A kernel did what no kernel may: the message says what, where, and in which block."""


@dataclass(frozen=True)
class Buffer:
    """Memory that kernels may read; an output is written, and read only where it was."""

    name: str
    array: npt.NDArray[Any]
    output: bool = False


@dataclass(frozen=True)
class Launched:
    """One launch: its kernel, blocks along each axis, threads along each axis, and the blocks that ran."""

    kernel: str
    grid: Program
    block: Program
    shared_bytes: int
    programs: tuple[Program, ...]


@dataclass
class Trace:
    """What the launches did. `counts`: how often each element of an output was written. `slow_blocks`: how many blocks
    gave up the fast way for one that only data which is not finite calls for."""

    launches: list[Launched] = field(default_factory=list)
    counts: dict[str, npt.NDArray[np.uint8]] = field(default_factory=dict)
    slow_blocks: int = 0

    def written(self, name: str) -> npt.NDArray[np.int64]:
        """The indices of the written elements of an output."""
        return np.argwhere(self.counts[name])


def call(
    library: ctypes.CDLL,
    symbol: str,
    arguments: Sequence[Any],
    buffers: Sequence[Buffer],
    seed: int = 0,
    programs: Sampler | None = None,
) -> Trace:
    """Calls a launch wrapper. `seed` decides the order of blocks and of the threads of a block; `programs` says which
    blocks run (all, if None).

    Raises KernelFault, and ValueError where the wrapper refuses its arguments."""
    with host.RUNTIME_LOCK:
        runtime = host.runtime()
        runtime.specc_host_clear()
        runtime.specc_host_seed(ctypes.c_uint64(seed))
        runtime.specc_host_forget()
        for b in buffers:
            place, sizes = ctypes.c_void_p(b.array.ctypes.data), (b.array.nbytes, b.array.itemsize)
            runtime.specc_host_buffer(b.name.encode(), place, *map(ctypes.c_size_t, sizes), int(b.output))
        trace = Trace()
        callback = _on_launch(runtime, trace, programs)
        runtime.specc_host_on_launch(callback)
        status = getattr(library, symbol)(*arguments)
        failure = runtime.specc_host_failure().decode()
        if failure:
            raise KernelFault(failure)
        if status:
            raise ValueError(f"the launch wrapper returned {status}")
        trace.slow_blocks = runtime.specc_host_slow_blocks()
        for b in buffers:
            if b.output:
                trace.counts[b.name] = _counts(runtime, b)
        return trace


def _counts(runtime: ctypes.CDLL, b: Buffer) -> npt.NDArray[np.uint8]:
    counts = np.zeros(b.array.shape, dtype=np.uint8)
    if counts.size:
        ctypes.memmove(counts.ctypes.data, runtime.specc_host_writes(b.name.encode()), counts.size)
    return counts


ON_LAUNCH = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint32))


def _on_launch(runtime: ctypes.CDLL, trace: Trace, programs: Sampler | None) -> Any:
    """Writes a launch down, and picks the blocks that run."""

    def launched(name: bytes, shape: Any) -> None:
        x, y, z = grid = (shape[0], shape[1], shape[2])
        kernel = name.decode()
        chosen = tuple(every_program(kernel, grid) if programs is None else programs(kernel, grid))
        trace.launches.append(Launched(kernel, grid, (shape[3], shape[4], shape[5]), shape[6], chosen))
        flat = [a + x * (b + y * c) for a, b, c in chosen]
        runtime.specc_host_choose((ctypes.c_uint32 * len(flat))(*flat), ctypes.c_size_t(len(flat)))

    return ON_LAUNCH(launched)


def every_program(kernel: str, grid: Program) -> Iterable[Program]:
    """All blocks of a launch."""
    x, y, z = grid
    return ((n % x, n // x % y, n // (x * y)) for n in range(x * y * z))


@dataclass(frozen=True)
class Planned:
    """A launch that a wrapper would make. `kernel`: the instance, as C++ names it; `arguments`: the bytes of each."""

    kernel: str
    grid: Program
    block: Program
    shared_bytes: int
    arguments: tuple[bytes, ...]


class _Arguments(ctypes.Structure):
    _fields_ = (
        ("values", ctypes.POINTER(ctypes.c_void_p)),
        ("sizes", ctypes.POINTER(ctypes.c_size_t)),
        ("count", ctypes.c_size_t),
    )


ON_PLAN = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(_Arguments))


def plan(library: ctypes.CDLL, symbol: str, arguments: Sequence[Any]) -> tuple[Planned, ...]:
    """The launches that a wrapper makes of `arguments`, whose pointers may be those of a GPU. Nothing runs.

    Raises ValueError where the wrapper refuses its arguments."""
    runtime = host.runtime()
    found: list[Planned] = []

    def planned(name: bytes, shape: Any, given: Any) -> None:
        a = given.contents
        values = tuple(ctypes.string_at(a.values[n], a.sizes[n]) for n in range(a.count))
        kernel = name.decode().partition("(")[0].removeprefix("void ")
        found.append(Planned(kernel, (shape[0], shape[1], shape[2]), (shape[3], shape[4], shape[5]), shape[6], values))

    callback = ON_PLAN(planned)
    with host.RUNTIME_LOCK:
        runtime.specc_host_clear()
        runtime.specc_host_on_plan(callback)
        try:
            status = getattr(library, symbol)(*arguments)
        finally:
            runtime.specc_host_on_plan(ON_PLAN())
        if status:
            raise ValueError(f"the launch wrapper returned {status}: {runtime.specc_host_failure().decode()}")
    return tuple(found)
