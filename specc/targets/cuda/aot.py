"""Compiles generated files for GPUs that are not here, by NVRTC, and reports what came out."""

from __future__ import annotations

import io
import re
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from specc.kernels import Kernel
from specc.resources import shipped
from specc.targets.cuda.emit import SPACE, filled
from specc.targets.cuda.slots import Instance
from specc.targets.cuda.tiles import GPU, tiles_of
from specc.targets.machine_code import machine_code, resource_usage
from specc.targets.report import CompileError, CompileReport
from specc.targets.tile_table import TileTable

ELEMENTS = {"bfloat16": "__nv_bfloat16", "float16": "__half", "float32": "float"}
INSTALL = "pip install 'specc[cuda]'"


def available() -> bool:
    """Whether NVRTC is installed."""
    return find_spec("cuda") is not None and find_spec("cuda.core") is not None and headers() is not None


def headers() -> Path | None:
    """The headers of the CUDA toolkit, from its wheels."""
    spec = find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(root) / "cu13" / "include"
        if (folder / "cuda_bf16.h").is_file():
            return folder
    return None


def compile_kernel(
    kernel: Kernel, text: str, arch: str, dtype: str, space: str = SPACE, table: TileTable | None = None
) -> list[CompileReport]:
    """Every instance of the kernel in `text` that launches in storage type `dtype` ("bfloat16", "float16", "float32"),
    for `arch` ("sm_90"). `table`: that of the tiles of `text` (the shipped one, if None).

    Raises CompileError; a warning is one too."""
    ready, slots = filled(kernel, tiles_of(GPU, table))
    element = ELEMENTS[dtype]
    instances = slots.instances(ready.name, 4 if dtype == "float32" else 2)
    names = {i: re.sub(r"\bElement\b", element, i.kernel) for i in instances}
    code, symbols = cubin(text, arch, tuple(f"{space}::{n}" for n in names.values()))
    with tempfile.TemporaryDirectory(prefix="specc-aot-") as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(code)
        return [_report(file, i, symbols[f"{space}::{n}"], arch) for i, n in names.items()]


def cubin(text: str, arch: str, expressions: tuple[str, ...]) -> tuple[bytes, dict[str, str]]:
    """Machine code of the kernels that `expressions` name, and their symbols. Raises CompileError."""
    core, include = _core(), headers()
    if include is None:
        raise CompileError(f"the headers of the CUDA toolkit are missing: {INSTALL}")
    folders = [str(shipped("templates") / "cuda"), str(include)]
    options = core.ProgramOptions(arch=arch, std="c++17", include_path=folders)
    log = io.StringIO()
    try:
        done = core.Program(text, "c++", options).compile("cubin", name_expressions=expressions, logs=log)
    except Exception as error:  # NVRTC's errors have a class of their own in each version of cuda-core
        raise CompileError(_reason(log.getvalue() or str(error))) from error
    if "warning" in log.getvalue():
        raise CompileError(_reason(log.getvalue()))
    symbols = {e: s.decode() if isinstance(s, bytes) else str(s) for e, s in done.symbol_mapping.items()}
    return bytes(done.code), symbols


@cache
def _core() -> Any:
    """Raises CompileError where cuda-core is not installed."""
    try:
        import cuda.core as core
    except ImportError as error:
        raise CompileError(f"NVRTC is missing: {INSTALL}") from error
    return core


def _reason(log: str) -> str:
    lines = [line for line in log.splitlines() if "error" in line or "warning" in line]
    return "; ".join(lines[:3]) or log.strip()[-600:]


@cache
def _version() -> str:
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"NVRTC {major}.{minor}"


def _report(file: Path, instance: Instance, symbol: str, arch: str) -> CompileReport:
    usage, code = resource_usage(file, symbol), machine_code(file, symbol)
    return CompileReport(
        kernel=instance.kernel.replace("Element, ", ""),
        arch=arch,
        compiler=_version(),
        num_warps=instance.threads // 32,
        num_stages=1,
        fp_fusion=True,
        registers=usage.registers,
        spill_stores=code.local_bytes("STL"),
        spill_loads=code.local_bytes("LDL"),
        stack=usage.stack,
        shared_bytes=usage.shared + instance.shared_bytes,
        tensor_memory=0,
        instructions=len(code.names),
        tensor_core=code.tensor_core,
        accesses=code.accesses,
    )
