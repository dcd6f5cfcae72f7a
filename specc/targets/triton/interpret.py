"""Runs Triton kernels on CPU tensors, as a GPU would compute them, and watches what they do.

    with interpreted() as trace:
        launcher(x, w, out)
    assert (trace.write_counts(out) == 1).all()

Inside the block every launch of a jitted function is interpreted: the very source that is compiled for a GPU.
Compared with the interpreter Triton ships, roundings are a GPU's, and faults that a GPU would hide are raised
as subclasses of KernelFault (see `interpret_faults`). Launch options such as `num_warps` have no effect.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from threading import RLock
from types import TracebackType
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.backends.nvidia.compiler import CUDAOptions
from triton.runtime.interpreter import TensorHandle
from triton.runtime.jit import JITFunction, mangle_type

from specc.targets.triton.interpret_builder import GuardedBuilder, GuardedSemantic
from specc.targets.triton.interpret_faults import (
    DoubleWrite,
    FalseHint,
    IndexWrap,
    KernelError,
    KernelFault,
    MemoryFault,
    Program,
    StorageArithmetic,
)
from specc.targets.triton.interpret_language import interpreting, real_arithmetic
from specc.targets.triton.interpret_numeric import numpy_type, one_thread
from specc.targets.triton.interpret_rewrite import rewritten
from specc.targets.triton.interpret_trace import Launch, Region, Trace, WriteLog, WrittenTensor

__all__ = [
    "DoubleWrite",
    "FalseHint",
    "IndexWrap",
    "KernelError",
    "KernelFault",
    "Launch",
    "MemoryFault",
    "Program",
    "Sampler",
    "StorageArithmetic",
    "Trace",
    "WrittenTensor",
    "interpreted",
]

Sampler = Callable[[str, Program], Iterable[Program]]

_OPTIONS = frozenset(CUDAOptions.__dataclass_fields__)


@dataclass(frozen=True)
class _Mode:
    """How launches run inside one `interpreted` block."""

    trace: Trace
    programs: Sampler | None
    widen: bool
    check_once: bool


_PATCHED = RLock()
"""Held as long as Triton is changed, which all threads share."""


@contextmanager
def interpreted(programs: Sampler | None = None, widen: bool = False, check_once: bool = True) -> Iterator[Trace]:
    """Interprets every kernel launch inside the block, in one thread at a time.

    `programs(kernel, grid)` chooses the program ids that run (all of them if None). `widen` computes in real
    arithmetic: float tensors must be float64, and every floating type in a kernel is float64. `check_once`
    raises DoubleWrite when a launch stores an element twice.

    Raises KernelFault from the launch that has the fault; TypeError and ValueError for a wrong launch.
    """
    mode = _Mode(Trace(), programs, widen, check_once)

    def run(jit: JITFunction[Any], *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        if not warmup:
            _launch(mode, jit, grid, args, kwargs)

    with _PATCHED:
        before = JITFunction.run
        JITFunction.run = run
        try:
            yield mode.trace
        finally:
            JITFunction.run = before


def _launch(mode: _Mode, jit: JITFunction[Any], grid: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    bound = _bind(jit, args, kwargs)
    size = _grid_size(grid, bound)
    chosen = _chosen(mode.programs, jit.__name__, size)
    regions = _regions(bound, mode.widen)
    log = WriteLog()
    builder = GuardedBuilder(list(regions.values()), log)
    builder.set_grid_dim(*size)
    arithmetic = real_arithmetic() if mode.widen else nullcontext()
    with arithmetic, interpreting(GuardedSemantic(builder)), one_thread(), np.errstate(all="ignore"):
        values = {p.name: _argument(builder, p, bound[p.name], regions) for p in jit.params}
        for program in chosen:
            _run_program(jit, builder, program, values)
    if mode.check_once:
        _check_once(jit, log)
    mode.trace.record(Launch(jit.__name__, size, chosen), log)


def _run_program(jit: JITFunction[Any], builder: GuardedBuilder, program: Program, values: Mapping[str, Any]) -> None:
    builder.set_grid_idx(*program)
    try:
        rewritten(jit)(**values)
    except MemoryError:
        raise
    except KernelFault as fault:
        raise fault.located(jit.__name__, program, _line(fault.__traceback__, jit)) from None
    except Exception as error:  # the kernel is arbitrary code: whatever it raises gets its place, and is kept as cause
        refused = KernelError(f"{type(error).__name__}: {error}")
        raise refused.located(jit.__name__, program, _line(error.__traceback__, jit)) from error
    builder.log.close_program(program)


def _line(traceback: TracebackType | None, jit: JITFunction[Any]) -> int | None:
    """The innermost line of the kernel's file on the way to a fault."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == jit.fn.__code__.co_filename:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _check_once(jit: JITFunction[Any], log: WriteLog) -> None:
    try:
        log.check_once()
    except DoubleWrite as fault:
        raise fault.located(jit.__name__, None, None) from None


def _bind(jit: JITFunction[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by parameter; launch options are dropped, other names refused as Triton refuses them."""
    names = [p.name for p in jit.params]
    unknown = [name for name in kwargs if name not in names and name not in _OPTIONS]
    if unknown:
        raise TypeError(f"{jit.__name__} has no parameter and no launch option {', '.join(unknown)}")
    own = {name: value for name, value in kwargs.items() if name in names}
    bound = inspect.signature(jit.fn).bind(*args, **own)
    bound.apply_defaults()
    return dict(bound.arguments)


def _grid_size(grid: Any, bound: dict[str, Any]) -> Program:
    chosen = tuple(grid(bound) if callable(grid) else grid)
    if not 1 <= len(chosen) <= 3:
        raise ValueError(f"a grid has one to three sizes, not {len(chosen)}")
    x, y, z = (int(n) for n in (*chosen, *(1,) * (3 - len(chosen))))
    if y > 65535 or z > 65535:
        raise ValueError(f"grid {chosen}: CUDA takes at most 65535 programs along the second and third axis")
    return x, y, z


def _chosen(programs: Sampler | None, kernel: str, size: Program) -> tuple[Program, ...]:
    if programs is None:
        return tuple(itertools.product(range(size[0]), range(size[1]), range(size[2])))
    chosen = tuple((int(x), int(y), int(z)) for x, y, z in programs(kernel, size))
    outside = [p for p in chosen if not all(0 <= i < n for i, n in zip(p, size, strict=True))]
    if outside:
        raise ValueError(f"program {outside[0]} is outside of grid {size} of {kernel}")
    return chosen


def _regions(bound: Mapping[str, Any], widen: bool) -> dict[tuple[str, int], Region]:
    """The memory of every tensor argument; a tuple's tensors count by position."""
    found = {}
    for name, value in bound.items():
        for i, item in enumerate(value if isinstance(value, tuple) else (value,)):
            if isinstance(item, torch.Tensor):
                _check_tensor(name, item, widen)
                found[name, i] = Region(name, item)
    return found


def _check_tensor(name: str, tensor: torch.Tensor, widen: bool) -> None:
    if tensor.device.type != "cpu":
        raise ValueError(f"{name} is on {tensor.device}; the interpreter takes CPU tensors")
    if widen and tensor.is_floating_point() and tensor.dtype != torch.float64:
        raise ValueError(f"{name} is {tensor.dtype}; real arithmetic takes float64 tensors")


def _argument(builder: GuardedBuilder, parameter: Any, value: Any, regions: Mapping[tuple[str, int], Region]) -> Any:
    """What a kernel sees of an argument: constants as they are, tensors as pointers, numbers as scalars."""
    value = value.value if isinstance(value, tl.constexpr) else value
    if parameter.is_constexpr or value is None:
        return value
    if isinstance(value, tuple):
        return tuple(_plain_argument(builder, v, regions.get((parameter.name, i))) for i, v in enumerate(value))
    return _plain_argument(builder, value, regions.get((parameter.name, 0)), parameter.annotation_type)


def _plain_argument(builder: GuardedBuilder, value: Any, region: Region | None, declared: str = "") -> Any:
    kind = tl.str_to_ty(declared or mangle_type(value), None)
    if region is not None:
        return tl.tensor(builder.pointer(region, tl.str_to_ty(mangle_type(value), None)), kind)
    if not isinstance(value, (bool, int, float)):
        return value
    return tl.tensor(TensorHandle(np.array([value], dtype=numpy_type(kind)), kind), kind)
