"""What a compiler made of a kernel, ahead of time."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_KIB = 1024
SHARED_LIMITS: Mapping[str, int] = MappingProxyType(
    {
        "sm_80": 163 * _KIB,
        "sm_86": 99 * _KIB,
        "sm_89": 99 * _KIB,
        "sm_90": 227 * _KIB,
        "sm_100": 227 * _KIB,
        "sm_120": 99 * _KIB,
    }
)
"""Shared memory a thread block may take, in bytes, by architecture (CUDA C++ Programming Guide, "Compute
Capabilities", maximum amount of shared memory per thread block)."""

_TENSOR_MEMORY_COLUMNS = 512
_WARPS = 32


class CompileError(Exception):
    """A kernel that does not compile, or a request that makes no sense."""


@dataclass(frozen=True)
class CompileReport:
    """What the compiler made of one kernel.

    `compiler` is its version; `registers` a thread; `spill_stores` and `spill_loads` in bytes a thread, each
    instruction counted once; `stack` in bytes a thread; `shared_bytes` a block; `tensor_memory` in columns (sm_100 on);
    `instructions` without padding; `accesses` the instructions on global memory by kind and width in bits.
    """

    kernel: str
    arch: str
    compiler: str
    num_warps: int
    num_stages: int
    fp_fusion: bool
    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared_bytes: int
    tensor_memory: int
    instructions: int
    tensor_core: tuple[str, ...]
    accesses: tuple[tuple[str, int], ...]

    @property
    def fits(self) -> bool:
        """Whether a block finds enough threads, shared memory and tensor memory on the architecture."""
        found = self.shared_bytes <= SHARED_LIMITS[self.arch] and self.tensor_memory <= _TENSOR_MEMORY_COLUMNS
        return found and self.num_warps <= _WARPS

    def to_json(self) -> str:
        """The report as one JSON object with sorted keys; `accesses` becomes an object."""
        return json.dumps({**dataclasses.asdict(self), "accesses": dict(self.accesses)}, sort_keys=True)
