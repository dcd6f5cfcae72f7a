"""Kernels of the CUDA target on the GPU at hand: compiled by NVRTC and launched as planned, both through cuda-core."""

from __future__ import annotations

import ctypes
import tempfile
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from gpu_cases import Case, Launch

LEGACY = 1
"""The default stream, where torch writes 0: CU_STREAM_LEGACY, a handle that is not null."""
NUMBERS = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}


def launcher(case: Case, folder: Path, device: torch.device) -> Any:
    """A function of the operands and `out`, as launchers of the other target are. `folder`: a generated folder."""
    more = kept(case, device)

    def run(*tensors: torch.Tensor, out: Any = None) -> Any:
        results = empty(case, device) if out is None else out if isinstance(out, tuple) else (out,)
        places = addresses(case, tensors, results, more)
        for one in case.launches:
            _launch(one, places, folder / "cuda" / f"{case.kernel}.cu", device)
        return results if len(results) > 1 else results[0]

    return run


def empty(case: Case, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Memory for the results."""
    return tuple(torch.empty(r.shape, dtype=getattr(torch, r.dtype), device=device) for r in case.results)


def kept(case: Case, device: torch.device) -> dict[str, torch.Tensor]:
    """What launches read beside operands."""
    found = {name: torch.as_tensor(values, device=device) for name, values in case.tables.items()}
    if case.workspace:
        found["workspace"] = torch.full((case.workspace,), float("nan"), device=device)
    return found


def addresses(case: Case, tensors: Any, results: Any, more: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors that launches name."""
    operands = zip((o.name for o in case.operands), tensors, strict=True)
    return {**dict(operands), **dict(zip((r.name for r in case.results), results, strict=True)), **more}


def argument(value: str | int, more: int, places: dict[str, torch.Tensor]) -> Any:
    """What cuda-core takes for an argument of a launch."""
    if isinstance(value, str):
        return ctypes.c_uint64(places[value].data_ptr() + more)
    return NUMBERS[more](value)


def _launch(one: Launch, places: dict[str, torch.Tensor], file: Path, device: torch.device) -> None:
    from cuda.core import LaunchConfig, Stream, launch

    kernel = _kernel(file, one.kernel, one.shared_bytes, device)
    config = LaunchConfig(grid=one.grid, block=one.block, shmem_size=one.shared_bytes)
    stream = Stream.from_handle(torch.cuda.current_stream(device).cuda_stream or LEGACY)
    launch(stream, config, kernel, *(argument(value, more, places) for value, more in one.arguments))


@cache
def _kernel(file: Path, name: str, shared_bytes: int, device: torch.device) -> Any:
    """A kernel of a file, compiled, loaded, and allowed the shared memory that it takes."""
    from cuda.bindings import driver
    from cuda.core import Device, ObjectCode

    Device(device.index).set_current()
    major, minor = torch.cuda.get_device_capability(device)
    symbol, code = compiled(file, name, f"sm_{major}{minor}")
    kernel = ObjectCode.from_cubin(code).get_kernel(symbol)
    if shared_bytes:  # with what is static, more than 48 KiB must be asked for
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        (status,) = driver.cuKernelSetAttribute(most, shared_bytes, kernel.handle, driver.CUdevice(device.index))
        if status != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"a block cannot have {shared_bytes} bytes of shared memory: {status.name}")
    return kernel


def compiled(file: Path, name: str, arch: str) -> tuple[str, bytes]:
    """The symbol and the machine code of a kernel, kept for other processes. Raises what NVRTC raises."""
    from cuda.core import Program, ProgramOptions

    text = file.read_text(encoding="utf-8")
    included = "".join(f.read_text(encoding="utf-8") for f in sorted(file.parent.glob("*.cuh")))
    key = sha256("\0".join((included, text, name, arch)).encode()).hexdigest()[:32]
    place = Path(tempfile.gettempdir()) / "specc-gpu-check" / key
    if not place.exists():
        options = ProgramOptions(arch=arch, std="c++17", include_path=[str(file.parent), str(toolkit())])
        done = Program(text, "c++", options).compile("cubin", name_expressions=(name,))
        symbol = done.symbol_mapping[name]
        place.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as fresh:
            fresh.write((symbol if isinstance(symbol, bytes) else symbol.encode()) + b"\0" + bytes(done.code))
        Path(fresh.name).replace(place)
    symbol, _, code = place.read_bytes().partition(b"\0")
    return symbol.decode(), code


def toolkit() -> Path:
    """Where cuda_bf16.h lies: in a wheel of the CUDA toolkit, or in Triton. Raises FileNotFoundError."""
    inside = {"nvidia": ("cu13/include", "cuda_runtime/include"), "triton": ("backends/nvidia/include",)}
    for package, folders in inside.items():
        spec = find_spec(package)
        for root in (spec.submodule_search_locations or ()) if spec else ():
            for folder in folders:
                if (Path(root) / folder / "cuda_bf16.h").is_file():
                    return Path(root) / folder
    raise FileNotFoundError("cuda_bf16.h: pip install nvidia-cuda-runtime")
