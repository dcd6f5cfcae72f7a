"""Compiles Triton kernels ahead of time, for GPUs that are not here, and reports what came out.

report = compile_kernel(kernel, {"x": "*bf16", "n": "i32"}, {"BLOCK": 1024}, arch="sm_90", divisible=["x"],
                        num_warps=4, num_stages=1)
assert report.spill_stores == 0 and report.fits
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDAOptions
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from specc.targets.machine_code import machine_code, resource_usage
from specc.targets.report import SHARED_LIMITS, CompileError, CompileReport

_DIVISOR = 16


def compile_kernel(
    fn: JITFunction[Any],
    signature: Mapping[str, str],
    constexprs: Mapping[str, Any],
    *,
    arch: str,
    divisible: Sequence[str],
    num_warps: int,
    num_stages: int,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> CompileReport:
    """Compiles `fn` for `arch` (a key of SHARED_LIMITS); needs no GPU.

    `signature` gives each runtime parameter its Triton type (`*bf16`, `i32`, `fp32`), `constexprs` the value
    of every other one. `divisible` names pointers and integers that are multiples of 16; without them
    accesses are narrow. `options` are launch options; fused multiply-add is on unless `enable_fp_fusion` says
    otherwise, whatever the version's default.

    Raises CompileError.
    """
    types = _types(fn, signature, constexprs)
    chosen = _options(num_warps, num_stages, options)
    source = ASTSource(fn, types, dict(constexprs), attrs=_hints(fn, signature, divisible))
    with tempfile.TemporaryDirectory(prefix="specc-aot-") as folder, _cache_in(folder):
        compiled = _compile(source, arch, chosen)
        cubin = Path(folder) / "kernel.cubin"
        cubin.write_bytes(compiled.asm["cubin"])
        return _report(compiled.metadata, arch, cubin)


def _types(fn: JITFunction[Any], signature: Mapping[str, str], constexprs: Mapping[str, Any]) -> dict[str, str]:
    """The type of every parameter in order, `constexpr` for constants."""
    names = [p.name for p in fn.params]
    given = {**signature, **dict.fromkeys(constexprs, "constexpr")}
    unknown = [name for name in given if name not in names]
    missing = [name for name in names if name not in given]
    twice = [name for name in signature if name in constexprs]
    runtime = [p.name for p in fn.params if p.is_constexpr and p.name in signature]
    for what, found in (("unknown", unknown), ("missing", missing), ("both typed and constant", twice)):
        if found:
            raise CompileError(f"{fn.__name__}: {what}: {', '.join(found)}")
    if runtime:
        raise CompileError(f"{fn.__name__}: constants are given a type: {', '.join(runtime)}")
    return {name: given[name] for name in names}


def _options(num_warps: int, num_stages: int, options: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [name for name in options if name not in CUDAOptions.__dataclass_fields__]
    if unknown:
        raise CompileError(f"Triton {triton.__version__} has no option {', '.join(unknown)}")
    return {"enable_fp_fusion": True, **options, "num_warps": num_warps, "num_stages": num_stages}


def _hints(
    fn: JITFunction[Any], signature: Mapping[str, str], divisible: Sequence[str]
) -> dict[tuple[int, ...], list[list[Any]]]:
    wrong = [name for name in divisible if not signature.get(name, "").startswith(("*", "i", "u"))]
    if wrong:
        raise CompileError(f"{fn.__name__}: divisibility holds for pointers and integers, not {', '.join(wrong)}")
    names = [p.name for p in fn.params]
    return {(names.index(name),): [["tt.divisibility", _DIVISOR]] for name in divisible}


@contextmanager
def _cache_in(folder: str) -> Iterator[None]:
    """Triton's caches, of kernels and of temporary files, lie in `folder`."""
    before = os.environ.get("TRITON_CACHE_DIR")
    os.environ["TRITON_CACHE_DIR"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["TRITON_CACHE_DIR"]
        else:
            os.environ["TRITON_CACHE_DIR"] = before


def _compile(source: ASTSource, arch: str, options: dict[str, Any]) -> Any:
    if arch not in SHARED_LIMITS:
        raise CompileError(f"unknown architecture {arch}; known are {', '.join(SHARED_LIMITS)}")
    target = GPUTarget("cuda", int(arch.removeprefix("sm_")), 32)
    try:
        return triton.compile(source, target=target, options=options)
    except Exception as error:  # the compiler raises anything, from AssertionError to RuntimeError of its passes
        raise CompileError(f"{source.name} for {arch}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """The innermost message: Triton wraps an error once for each function it happened in."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"


def _report(metadata: Any, arch: str, cubin: Path) -> CompileReport:
    usage = resource_usage(cubin, metadata.name)
    code = machine_code(cubin, metadata.name)
    return CompileReport(
        kernel=metadata.name,
        arch=arch,
        compiler=triton.__version__,
        num_warps=metadata.num_warps,
        num_stages=metadata.num_stages,
        fp_fusion=metadata.enable_fp_fusion,
        registers=usage.registers,
        spill_stores=code.local_bytes("STL"),
        spill_loads=code.local_bytes("LDL"),
        stack=usage.stack,
        shared_bytes=metadata.shared,
        tensor_memory=getattr(metadata, "tmem_size", None) or 0,
        instructions=len(code.names),
        tensor_core=code.tensor_core,
        accesses=code.accesses,
    )
