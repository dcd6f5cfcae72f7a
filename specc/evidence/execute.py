"""Targets as executors of the property suite."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from specc.bounds import Numerics
from specc.bounds.numerics import cuda as cuda_numerics
from specc.bounds.numerics import torch as torch_numerics
from specc.bounds.numerics import triton as triton_numerics
from specc.evidence.case import Case
from specc.evidence.check import Ran
from specc.evidence.coverage import NARROWEST, require_all, require_corners, require_heads
from specc.evidence.store import placed_results
from specc.ir import Role
from specc.kernels import Attention, Contraction, HeadMap, Kernel, Pointwise, Recurrent, RowReduction
from specc.lower.lower import stores
from specc.ops import Num, Var, free_vars
from specc.targets.tile_table import TileTable

Program = tuple[int, int, int]

WORK = 3_000_000
"""Elements that the interpreted programs of one launch may read and write, about: half a second of interpretation."""


def storage(kernel: Kernel, dtype: str) -> dict[str, str]:
    """The type that each role of the kernel is stored in when all storage is `dtype`."""
    return {str(role): dtype for role in (Role.WEIGHT, Role.ACTIVATION, Role.CACHE)}


@dataclass(frozen=True)
class TritonExecutor:
    """The generated kernel and launcher, in the interpreter harness. `texts` replaces the text of kernels by name;
    `tiles` is the table that others take their tiles from (the shipped one, if None)."""

    texts: Mapping[str, str] = field(default_factory=dict)
    name: str = "triton"
    evidence: str = "interpreter"
    tiles: TileTable | None = None

    def run(self, kernel: Kernel, tensors: Mapping[str, torch.Tensor], case: Case) -> Ran:
        from specc.targets.triton.names import by_key_name
        from specc.targets.triton.target import run

        sampler = Sampler(kernel, case.seed)
        text = self.texts.get(kernel.name)
        placed = {**tensors, **placed_results(kernel, case)}
        outputs, trace = run(kernel, placed, text=text, programs=sampler, table=self.tiles)
        whole = all(len(launch.programs) == math.prod(launch.grid) for launch in trace.launches)
        written = {n: trace.written(t) for n, t in outputs.items()}
        for name, tensor in outputs.items():
            _require(kernel, sampler, name, tuple(tensor.shape), written[name], whole)
        slow = trace.programs_calling(by_key_name(kernel))
        ran = sum(len(launch.programs) for launch in trace.launches)
        return Ran(
            {n: t.to(torch.float64).numpy() for n, t in outputs.items()}, written, _detour(slow, ran, "programs")
        )

    def numerics(self, kernel: Kernel, case: Case) -> Numerics:
        found = triton_numerics(storage(kernel, case.dtype))
        if not isinstance(kernel.schedule, Recurrent):
            return found
        from specc.targets.triton.emit_recurrence import chunk_sizes

        return replace(found, depth=replace(found.depth, chunks=chunk_sizes(kernel, case.dtype, self.tiles)))


def _detour(slow: int, ran: int, what: str) -> str:
    """What is said of programs that gave up the fast way."""
    told = f"the fast way through the kernel gave NaN or infinity in {slow} of {ran} {what}, which took keys one by one"
    return told if slow else ""


ALIGNED = 8
"""Padding of a case that stands for rows at multiples of 16 bytes, results too, so that vectors meet ragged ends."""
ORDERS = 3
"""Orders of blocks and threads that every case runs in."""


class OrderMatters(Exception):
    """The results of a kernel depend on the order in which its threads run."""


@dataclass(frozen=True)
class CudaExecutor:
    """The generated kernel and launch wrapper, built for the CPU; every case in ORDERS orders of threads, which must
    agree bit for bit. `texts` replaces the text of kernels by name; `tiles` is as for Triton."""

    texts: Mapping[str, str] = field(default_factory=dict)
    name: str = "cuda"
    evidence: str = "run on the CPU"
    tiles: TileTable | None = None

    def run(self, kernel: Kernel, tensors: Mapping[str, torch.Tensor], case: Case) -> Ran:
        from specc.targets.cuda.target import run

        sampler = Sampler(kernel, case.seed)
        text = self.texts.get(kernel.name)
        pitch = case.pad if case.pad == ALIGNED and not case.moved else None
        placed = {**tensors, **placed_results(kernel, case)}
        options: dict[str, Any] = {"text": text, "pitch": pitch, "table": self.tiles}
        found = [run(kernel, placed, sampler, case.seed * ORDERS + n, **options) for n in range(ORDERS)]
        outputs, trace = found[0]
        for name in outputs:
            bits = [np.asarray(o[name].contiguous().view(torch.uint8)) for o, _ in found if o[name].numel()]
            if any(not np.array_equal(bits[0], b) for b in bits[1:]):
                raise OrderMatters(f"{name} depends on the order of threads: seed {case.seed}, {ORDERS} orders")
            if np.any(trace.counts[name] > 1):
                raise OrderMatters(f"{name}[{np.argwhere(trace.counts[name] > 1)[0].tolist()}] is written twice")
        whole = all(len(launch.programs) == math.prod(launch.grid) for launch in trace.launches)
        written = {n: trace.written(n) for n in outputs}
        for name, tensor in outputs.items():
            _require(kernel, sampler, name, tuple(tensor.shape), written[name], whole)
        slow, ran = (max(t.slow_blocks for _, t in found), sum(len(launch.programs) for launch in trace.launches))
        return Ran({n: t.to(torch.float64).numpy() for n, t in outputs.items()}, written, _detour(slow, ran, "blocks"))

    def numerics(self, kernel: Kernel, case: Case) -> Numerics:
        from specc.targets.cuda.target import chunk_sizes, lanes

        found = cuda_numerics(storage(kernel, case.dtype), lanes(kernel))
        chunks = chunk_sizes(kernel, self.tiles) if isinstance(kernel.schedule, Recurrent) else ()
        return replace(found, depth=replace(found.depth, chunks=chunks))


@dataclass(frozen=True)
class Sampler:
    """Which programs of a launch run: all of a small one; of a large one the first, the last and a few more. Of a
    decode kernel, all parts of a few KV heads, since parts are merged."""

    kernel: Kernel
    seed: int

    def __call__(self, name: str, grid: Program) -> Iterable[Program]:
        total = int(np.prod(grid))
        most = max(2, WORK // work_per_program(self.kernel))
        schedule = self.kernel.schedule
        if isinstance(schedule, Attention) and schedule.decode:
            by_head = grid[1] == schedule.head_map.heads
            if by_head:
                return [p for p in np.ndindex(*grid) if p[1] in self.heads(schedule.head_map)]
            blocks = grid[1] // schedule.head_map.kv_heads
            return [p for p in np.ndindex(*grid) if p[1] // blocks in self.kv_heads(schedule.head_map)]
        if total <= most:
            return list(np.ndindex(*grid))
        rng = np.random.default_rng(self.seed)
        flat = {0, total - 1, *(int(n) for n in rng.integers(0, total, size=min(most, 16) - 2))}
        x, y, _ = grid
        return [(n % x, n // x % y, n // (x * y)) for n in sorted(flat)]

    def kv_heads(self, heads: HeadMap) -> list[int]:
        """The first, the last and one more KV head."""
        return sorted({0, heads.kv_heads - 1, self.seed % heads.kv_heads})

    def heads(self, heads: HeadMap) -> list[int]:
        """The query heads of those KV heads."""
        return sorted(g * heads.outer + m * heads.step for g in self.kv_heads(heads) for m in range(heads.group))


def _require(
    kernel: Kernel, sampler: Sampler, name: str, shape: tuple[int, ...], written: npt.NDArray[np.int64], whole: bool
) -> None:
    """Raises Incomplete where the programs that ran left out what they own."""
    schedule = kernel.schedule
    if whole:
        require_all(name, shape, written)
    elif isinstance(schedule, Attention) and schedule.decode:
        require_heads(name, shape, written, 1, sampler.heads(schedule.head_map))
    else:
        require_corners(name, shape, written, 1 if _one_a_row(kernel, name) else NARROWEST)


def _one_a_row(kernel: Kernel, name: str) -> bool:
    """Whether a result of a row reduction is one value a row, so that a program owns as many as it has rows."""
    schedule = kernel.schedule
    if not isinstance(schedule, RowReduction):
        return False
    store = next(s for s in schedule.stores if s.operand == name)
    return all(schedule.inner.var not in free_vars(i) for i in store.indices)


def work_per_program(kernel: Kernel) -> int:
    """Elements that one program touches, to an order of magnitude."""
    match kernel.schedule:
        case Contraction(inner=inner):
            return 256 * int(inner.extent.value) if isinstance(inner.extent, Num) else 1 << 20
        case Attention(inner=inner):
            return 2048 * int(inner.extent.value) if isinstance(inner.extent, Num) else 1 << 20
        case RowReduction():
            return 1 << 16
        case Recurrent():
            return 1 << 19
        case Pointwise():
            return 1 << 14


COLUMNS = 256
"""Columns of a wide contraction that are compared: its first and last ones and some between."""


def compared(kernel: Kernel, name: str, shape: tuple[int, ...], seed: int) -> npt.NDArray[np.int64] | None:
    """Indices of the results to compare, or None for all: some columns of a wide contraction, and the first, the last
    and one more head of a recurrence."""
    if isinstance(kernel.schedule, Recurrent):
        heads = {Var(a.var) for a in kernel.schedule.heads}
        store = next(s for s in stores(kernel.schedule) if s.operand == name)
        some = [
            {0, n - 1, seed % max(n, 1)} if i in heads else range(n) for i, n in zip(store.indices, shape, strict=True)
        ]
        return np.array([p for p in product(*(sorted(x) for x in some)) if min(p) >= 0], np.int64).reshape(
            -1, len(shape)
        )
    if not isinstance(kernel.schedule, Contraction) or shape[-1] <= COLUMNS:
        return None
    between = np.random.default_rng(seed).integers(0, shape[-1], size=COLUMNS // 2)
    ends = np.arange(COLUMNS // 4)
    columns = np.unique(np.concatenate([ends, shape[-1] - 1 - ends, between]))
    places = np.meshgrid(*(np.arange(n) for n in shape[:-1]), columns, indexing="ij")
    return np.stack([p.reshape(-1) for p in places], axis=1)


@dataclass(frozen=True)
class TorchExecutor:
    """The printed reference function, on CPU tensors."""

    rounds: tuple[tuple[str, str, Role], ...] = ()
    name: str = "torch"
    evidence: str = "run on the CPU"

    def run(self, kernel: Kernel, tensors: Mapping[str, torch.Tensor], case: Case) -> Ran:
        from specc.targets.torch.target import run_node

        roles = {o.name: o.role for o in kernel.operands}
        found = run_node(kernel.formula, roles, tensors, case.dtype, self.rounds)
        outputs = {n: t.to(torch.float64).numpy() for n, t in found.items()}
        return Ran(outputs, {n: compared(kernel, n, a.shape, case.seed) for n, a in outputs.items()})

    def numerics(self, kernel: Kernel, case: Case) -> Numerics:
        accumulator = "float64" if case.dtype == "float64" else "float32"
        return torch_numerics(storage(kernel, case.dtype), accumulator)
