"""Runs a generated file on a GPU: torch tensors as they lie, on the current stream, through cuda-core.

The launch wrapper itself says what to launch: it is built for the CPU and called with the addresses of the tensors, and
its launches are told instead of made. NVRTC compiles the kernels that it names.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import torch

from specc.kernels import Kernel, Operand
from specc.ops import Sort
from specc.oracle.sizes import dim_value
from specc.targets.cuda import host
from specc.targets.cuda.aot import cubin
from specc.targets.cuda.emit import SPACE, symbol
from specc.targets.cuda.names import legal
from specc.targets.cuda.run import TYPES, bind_sizes, index_bytes, storage_of, stored_type
from specc.targets.cuda.session import Planned, plan
from specc.targets.cuda.wrapper import Argument, arguments, needs_workspace

LEGACY = 1
"""The default stream, where torch writes 0: CU_STREAM_LEGACY, a handle that is not null."""


def run_on_device(
    kernel: Kernel,
    text: str,
    tensors: Mapping[str, torch.Tensor],
    space: str = SPACE,
    dtype: str = "float32",
) -> dict[str, torch.Tensor]:
    """The results by name, in new tensors, stored in `dtype` where no operand is real.

    Raises ValueError for tensors that do not fit, and CompileError."""
    outputs, launches, _kept = prepare(kernel, text, tensors, space, dtype)
    device = next(iter(outputs.values())).device
    if device.type != "cuda":
        raise ValueError(f"the tensors are on {device}, not on a GPU")
    with torch.cuda.device(device):
        for one in launches:
            _launch(text, one, device)
    return outputs


def prepare(
    kernel: Kernel,
    text: str,
    tensors: Mapping[str, torch.Tensor],
    space: str = SPACE,
    dtype: str = "float32",
) -> tuple[dict[str, torch.Tensor], tuple[Planned, ...], list[torch.Tensor]]:
    """New results, the launches that fill them, and what else must live until they have run.

    Raises ValueError for tensors that do not fit the kernel or each other."""
    one = _Call(kernel, text, tensors, space, getattr(torch, dtype))
    return one.outputs, plan(one.library, one.symbol, one.values()), list(one.kept.values())


class _Call:
    """The arguments of one call of a launch wrapper."""

    def __init__(
        self, kernel: Kernel, text: str, tensors: Mapping[str, torch.Tensor], space: str, untyped: torch.dtype
    ) -> None:
        self.sizes, self.type = bind_sizes(kernel, tensors), storage_of(kernel, tensors, untyped)
        device, self.index_bytes = _device(kernel, tensors), index_bytes(kernel, tensors)
        self.outputs = {o.name: self._empty(o, device) for o in kernel.operands if o.output}
        self.ready, self.symbol = legal(kernel), symbol(kernel, space)
        self.library = host.load(host.build_wrapper(text))
        own = zip(self.ready.operands, kernel.operands, strict=True)
        everything = {**tensors, **self.outputs}
        self.tensors = {r.name: everything[o.name] for r, o in own}
        self.run_sizes = dict(zip(self.ready.sizes, (self.sizes[s] for s in kernel.sizes), strict=True))
        self.kept = {t.name: _table(text, f"{self.symbol}_{t.name}", t.extent, device) for t in self.ready.tables}
        if needs_workspace(self.ready):
            count = getattr(self.library, f"{self.symbol}_workspace")
            count.restype = ctypes.c_int64
            length = count(*map(ctypes.c_int64, self.run_sizes.values()))
            self.kept["workspace"] = torch.empty(length, dtype=torch.float32, device=device)

    def _empty(self, o: Operand, device: torch.device) -> torch.Tensor:
        dtype = stored_type(o, self.type) if o.sort is Sort.REAL else torch.int64
        return torch.empty([dim_value(d, self.sizes) for d in o.dims], dtype=dtype, device=device)

    def values(self) -> list[Any]:
        return [self._value(a) for a in arguments(self.ready)]

    def _value(self, a: Argument) -> Any:
        match a.kind:
            case "type":
                return ctypes.c_int(TYPES[self.type])
            case "index_bytes":
                return ctypes.c_int(self.index_bytes)
            case "operand":
                return ctypes.c_void_p(self.tensors[a.operand].data_ptr())
            case "table" | "workspace":
                return ctypes.c_void_p(self.kept[a.name].data_ptr())
            case "size":
                return ctypes.c_int64(self.run_sizes[a.name])
            case "stride":
                return ctypes.c_int64(self.tensors[a.operand].stride(a.axis))
        return ctypes.c_void_p(None)


def _device(kernel: Kernel, tensors: Mapping[str, torch.Tensor]) -> torch.device:
    """That of all inputs, whose last axes are contiguous. Raises ValueError."""
    inputs = {o.name: tensors[o.name] for o in kernel.operands if not o.output}
    devices = sorted({str(t.device) for t in inputs.values()})
    if len(devices) != 1:
        raise ValueError(f"the tensors are on {' and '.join(devices)}")
    apart = [n for n, t in inputs.items() if t.dim() and t.stride(-1) != 1 and t.shape[-1] > 1]
    if apart:
        raise ValueError(f"the last axis of `{apart[0]}` is not contiguous")
    return next(iter(inputs.values())).device


@cache
def _table(text: str, function: str, extent: int, device: torch.device) -> torch.Tensor:
    values = np.zeros(extent)
    getattr(host.load(host.build_wrapper(text)), function)(ctypes.c_void_p(values.ctypes.data))
    return torch.from_numpy(values).to(device)


@cache
def _module(text: str, kernel: str, arch: str) -> Any:
    """A kernel of a file, loaded for the current device."""
    from cuda.core import ObjectCode

    code, symbols = cubin(text, arch, (kernel,))
    return ObjectCode.from_cubin(code).get_kernel(symbols[kernel])


def _launch(text: str, one: Planned, device: torch.device) -> None:
    from cuda.core import Device, LaunchConfig, Stream, launch

    Device(device.index).set_current()
    major, minor = torch.cuda.get_device_capability(device)
    config = LaunchConfig(grid=one.grid, block=one.block, shmem_size=one.shared_bytes)
    stream = Stream.from_handle(torch.cuda.current_stream(device).cuda_stream or LEGACY)
    kernel = _module(text, one.kernel, f"sm_{major}{minor}")
    _allow_shared(kernel, one.shared_bytes, device)
    launch(stream, config, kernel, *map(_argument, one.arguments))


def _allow_shared(kernel: Any, shared_bytes: int, device: torch.device) -> None:
    """A kernel has 48 KB for static and dynamic shared memory together, unless it asks for more. Raises RuntimeError
    where the device has not that much."""
    from cuda.bindings import driver

    if not shared_bytes:
        return
    limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    (status,) = driver.cuKernelSetAttribute(limit, shared_bytes, kernel.handle, driver.CUdevice(device.index))
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{shared_bytes} bytes of dynamic shared memory on {device}: {status.name}")


def _argument(data: bytes) -> Any:
    kinds = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}
    return kinds[len(data)].from_buffer_copy(data)
