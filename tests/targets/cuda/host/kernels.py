"""Small kernels of a test, built for the CPU and run."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from specc.targets.cuda import host
from specc.targets.cuda.session import Buffer, Sampler, Trace, call

Array = npt.NDArray[Any]
HEAD = '#include "specc_launch.cuh"\n'
TYPES = {
    "float32": "float", "float64": "double", "int32": "int", "uint32": "unsigned", "uint16": "uint16_t",
    "int64": "int64_t",
}  # fmt: skip
GAP = 4096
"""Bytes between buffers."""


def library_of(source: str, wide: bool = False) -> ctypes.CDLL:
    return host.load(host.build(HEAD + source, wide))


def run(
    kernel: str,
    outputs: Mapping[str, Array],
    inputs: Mapping[str, Array] | None = None,
    *,
    grid: Sequence[int] = (1,),
    block: Sequence[int] = (32,),
    shared_bytes: int = 0,
    seed: int = 0,
    programs: Sampler | None = None,
    more: str = "",
    bounds: str = "",
    wide: bool = False,
) -> Trace:
    """Runs the body `kernel` of a kernel whose parameters are pointers, called as the inputs and outputs, and leaves
    what it wrote in `outputs`. `more`: functions before it; `bounds`: its launch bounds. Raises KernelFault."""
    arrays = {**(inputs or {}), **outputs}
    parameters = [f"{'' if n in outputs else 'const '}{TYPES[a.dtype.name]}* {n}" for n, a in arrays.items()]
    given = [f"({p.rpartition(' ')[0]})p[{n}]" for n, p in enumerate(parameters)]
    source = f"""
{more}
__global__ void {bounds} test_kernel({", ".join(parameters)}) {{
{" ".join(f"(void){n};" for n in arrays)}
{kernel}
}}
extern "C" int test(void** p) {{
    (void)p;
    return specc::launch(test_kernel, specc::Grid{{{", ".join(map(str, grid))}}}, dim3({", ".join(map(str, block))}),
                         {shared_bytes}, nullptr{"".join(", " + g for g in given)});
}}
"""
    placed = place(arrays)
    pointers = (ctypes.c_void_p * max(1, len(placed)))(*(a.ctypes.data for a in placed.values()))
    buffers = [Buffer(n, a, n in outputs) for n, a in placed.items()]
    try:
        return call(library_of(source, wide), "test", [pointers], buffers, seed, programs)
    finally:
        for n, a in outputs.items():
            a[...] = placed[n].reshape(a.shape)


def place(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Copies at multiples of 256 bytes, far apart."""
    arena = np.zeros(sum(a.nbytes + 2 * GAP for a in arrays.values()) + GAP, dtype=np.uint8)
    at = GAP - arena.ctypes.data % 256
    found: dict[str, Array] = {}
    for n, a in arrays.items():
        found[n] = arena[at : at + a.nbytes].view(a.dtype)
        found[n][:] = a.reshape(-1)
        at += -(-a.nbytes // 256) * 256 + GAP
    return found
