"""What to compile ahead of time: the launches that a generated launcher makes, given tensors without memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from triton.runtime.jit import JITFunction

from specc.ir import Role
from specc.kernels import Attention, Kernel, Operand, Recurrent
from specc.ops import Num, Size, Sort
from specc.targets.triton.host import host_text
from specc.targets.triton.load import load_module, runtime_of
from specc.targets.triton.names import launcher_name

DTYPES: Mapping[str, torch.dtype] = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
_NAMES = {
    torch.bfloat16: "*bf16", torch.float16: "*fp16", torch.float32: "*fp32", torch.float64: "*fp64",
    torch.int32: "*i32", torch.int64: "*i64",
}  # fmt: skip
MANY = 4099
"""A run-time size that no tile limits and that nothing divides."""
INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class CompileSpec:
    """The arguments of `aot.compile_kernel`. `rows`: the number of rows that chose these tiles."""

    fn: JITFunction[Any]
    signature: Mapping[str, str]
    constexprs: Mapping[str, Any]
    divisible: tuple[str, ...]
    num_warps: int
    num_stages: int
    rows: int


def compile_specs(kernel: Kernel, text: str, arch: str, dtype: str) -> list[CompileSpec]:
    """Every launch that the launcher in `text` makes on `arch` with contiguous operands in storage type `dtype`
    ("bfloat16", "float16", "float32"): one for each range of rows, and for each kernel of the file.

    Raises KeyError for an unknown dtype or architecture.
    """
    module = load_module(text, f"compile {arch}")
    runtime: Any = runtime_of(module)
    runtime.architecture = lambda device, known: arch
    width = DTYPES[dtype].itemsize
    found: list[CompileSpec] = []
    covered = 0
    for config in module.CONFIGS[arch][width]:
        rows, covered = covered + 1, config.rows or 0
        with _recorded(found, rows):
            getattr(module, launcher_name(kernel))(*_inputs(kernel, module, DTYPES[dtype], rows))
    return found


def _inputs(kernel: Kernel, module: ModuleType, dtype: torch.dtype, rows: int) -> list[torch.Tensor]:
    sizes = dict.fromkeys(kernel.sizes, MANY)
    sizes |= dict.fromkeys(_row_sizes(kernel), rows)
    types = {o.name: torch.float32 if o.role is Role.ACCUMULATOR else dtype for o in kernel.operands}
    return [_meta(o, sizes, types[o.name]) for o in kernel.operands if not o.output]


def _row_sizes(kernel: Kernel) -> list[str]:
    s = kernel.schedule
    axes = (s.row,) if isinstance(s, Attention) else (s.time,) if isinstance(s, Recurrent) else s.rows
    return [a.extent.name for a in axes if isinstance(a.extent, Size)][:1]


def _meta(o: Operand, sizes: Mapping[str, int], dtype: torch.dtype) -> torch.Tensor:
    shape = [int(d.value) if isinstance(d, Num) else _evaluate(host_text(d), sizes) for d in o.dims]
    return torch.empty(shape, dtype=torch.int32 if o.sort is Sort.INDEX else dtype, device="meta")


def _evaluate(text: str, sizes: Mapping[str, int]) -> int:
    return int(eval(text, {"__builtins__": {"min": min, "max": max, "abs": abs}}, dict(sizes)))  # noqa: S307


@contextmanager
def _recorded(found: list[CompileSpec], rows: int) -> Iterator[None]:
    """Launches inside are written down instead of made."""
    before = JITFunction.run

    def run(jit: JITFunction[Any], *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        found.append(_spec(jit, args, kwargs, rows))

    JITFunction.run = run
    try:
        yield
    finally:
        JITFunction.run = before


def _spec(jit: JITFunction[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], rows: int) -> CompileSpec:
    """As Triton would compile it: a 1 becomes a constant, multiples of 16 are known as such."""
    names = [p.name for p in jit.params]
    given = dict(zip(names, args, strict=False)) | {n: v for n, v in kwargs.items() if n in names}
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    divisible: list[str] = []
    for p in jit.params:
        value = given[p.name]
        if isinstance(value, torch.Tensor):
            signature[p.name] = _NAMES[value.dtype]
            divisible.append(p.name)
        elif p.is_constexpr or (value == 1 and not p.do_not_specialize):
            constants[p.name] = value
        else:
            signature[p.name] = "i32" if value <= INT32_MAX else "i64"
            if value % 16 == 0 and not p.do_not_specialize:
                divisible.append(p.name)
    return CompileSpec(jit, signature, constants, tuple(divisible), kwargs["num_warps"], kwargs["num_stages"], rows)
