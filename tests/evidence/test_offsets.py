"""Offsets past 2³¹ elements, at the shipped model's true shapes: memory is sparse, and only the programs at its far end
run. A row there is held against the oracle as a tensor of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from specc.bounds.formats import round_to
from specc.evidence.case import Case
from specc.evidence.execute import TritonExecutor
from specc.evidence.judge import VACUOUS, judge
from specc.kernels import Kernel
from specc.lowered import all_kernels, lower_each
from specc.oracle.sizes import bind
from specc.pipeline import load
from specc.resources import shipped
from specc.targets.triton.emit import emit
from specc.targets.triton.interpret import KernelFault
from specc.targets.triton.load import load_module
from specc.targets.triton.target import run

T = 262_144
ROW = 49_933
"""The first row of 43,008 elements that ends past 2³¹."""
BEYOND = 2**31

Array = npt.NDArray[Any]
Program = tuple[int, int, int]
Sparse = Callable[..., torch.Tensor]


@pytest.fixture(scope="module")
def kernels() -> Mapping[str, Kernel]:
    model = load(shipped("specs") / "gemma4.spec")
    return {k.name: k for k in all_kernels(lower_each(model))}


@pytest.fixture
def sparse(tmp_path: Path) -> Sparse:
    """Makes bfloat16 tensors of zeros that take disk space only where they are written, and only while they live."""

    def make(*shape: int) -> torch.Tensor:
        file = tmp_path / "sparse"
        memory = np.memmap(file, dtype=np.int16, mode="w+", shape=shape)
        file.unlink()
        return torch.from_numpy(memory).view(torch.bfloat16)

    return make


def values(seed: int, *shape: int, scale: float = 1.0) -> Array:
    return round_to(np.random.default_rng(seed).standard_normal(shape) * scale, "bfloat16")


def bits(x: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(x)).to(torch.bfloat16)


def overlapping(rows: int, columns: int) -> tuple[Array, torch.Tensor]:
    """A weight whose rows overlap in a short buffer, 8 elements apart: as float64 and as stored."""
    buffer = values(1, (rows - 1) * 8 + columns)
    view = np.lib.stride_tricks.as_strided(buffer, (rows, columns), (64, 8), writeable=False)
    return view, torch.as_strided(bits(buffer), (rows, columns), (8, 1))


def assert_part(kernel: Kernel, operands: Mapping[str, Array], got: torch.Tensor, at: Array | None = None) -> None:
    """The results of one row or sequence are within their bound, all of them or those at some indices."""
    (name,) = (o.name for o in kernel.operands if o.output)
    numerics = TritonExecutor().numerics(kernel, Case("bfloat16", ()))
    outputs, sizes = {name: got.to(torch.float64).numpy()}, bind(kernel.formula, operands, {})
    verdict = judge(kernel, operands, outputs, {name: at}, numerics, sizes, "bfloat16")
    assert not verdict.count, [m.describe() for m in verdict.mismatches]
    assert verdict.compared == (got.numel() if at is None else len(at))
    assert verdict.vacuity is not None and verdict.vacuity <= VACUOUS


def only(rows: Iterable[int]) -> Callable[[str, Program], list[Program]]:
    """All programs of these rows, where the first axis of the grid counts rows."""
    return lambda _, grid: [(x, y, z) for x in rows for y in range(grid[1]) for z in range(grid[2])]


def test_rows_of_a_gated_unit_past_2_31(kernels: Mapping[str, Kernel], sparse: Sparse) -> None:
    kernel, rows = kernels["mlp_act"], (0, ROW, T - 1)
    gu, y = sparse(T, 43_008), sparse(T, 21_504)
    exact = {row: values(row, 1, 43_008) for row in rows}
    for row in rows:
        gu[row : row + 1] = bits(exact[row])
    assert gu[ROW, -1].storage_offset() > BEYOND and y[-1].storage_offset() > BEYOND
    _, trace = run(kernel, {"gu": gu, "y": y}, programs=only(rows))
    assert np.unique(trace.written(y)[:, 0]).tolist() == list(rows)
    for row in rows:
        assert_part(kernel, {"gu": exact[row]}, y[row : row + 1])


@pytest.mark.parametrize("row", [ROW, T - 1])
def test_offsets_of_32_bits_are_refuted_there(row: int, kernels: Mapping[str, Kernel], sparse: Sparse) -> None:
    kernel = kernels["mlp_act"]
    narrow = emit(kernel).replace(".to(tl.int64)", "")
    assert narrow != emit(kernel)
    tensors = {"gu": sparse(T, 43_008), "y": sparse(T, 21_504)}
    run(kernel, tensors, programs=only((0, ROW - 1)), text=narrow)
    with pytest.raises(KernelFault):
        run(kernel, tensors, programs=only((row,)), text=narrow)


def last_block(kernel: Kernel, rows: Iterable[int], columns: int) -> Callable[[str, Program], list[Program]]:
    """The programs that hold these rows and the last columns; GROUP_M blocks of rows share columns."""
    module = load_module(emit(kernel))
    config = module.pick(module.CONFIGS, torch.empty(0, dtype=torch.bfloat16), T)
    m, n, group = (config.tiles[name] for name in ("BLOCK_M", "BLOCK_N", "GROUP_M"))
    across = -(-columns // n)
    blocks = [row // m for row in rows]
    return lambda _, grid: [((b - b % group) * across + (across - 1) * group + b % group, 0, 0) for b in blocks]


@pytest.mark.parametrize(("name", "columns", "scale"), [("mlp_gate_up", 43_008, 1.0), ("lm_head", T, 0.01)])
def test_rows_of_a_wide_product_past_2_31(
    name: str, columns: int, scale: float, kernels: Mapping[str, Kernel], sparse: Sparse
) -> None:
    kernel, rows = kernels[name], (ROW, T - 1)
    (result,) = (o.name for o in kernel.operands if o.output)
    x, y = sparse(T, 5376), sparse(T, columns)
    wide, w = overlapping(columns, 5376)
    exact = {row: values(row, 1, 5376, scale=scale) for row in rows}
    for row in rows:
        x[row : row + 1] = bits(exact[row])
    _, trace = run(kernel, {"x": x, "w": w, result: y}, programs=last_block(kernel, rows, columns))
    written = trace.written(y)
    for row in rows:
        found = written[written[:, 0] == row][:, 1]
        assert found[-1] == columns - 1 and row * columns + columns - 1 >= BEYOND
        at = np.stack([np.zeros_like(found), found], axis=1)
        assert_part(kernel, {"x": exact[row], "w": wide}, y[row : row + 1], at)
    assert (y[ROW - 1, found[0] :] == 0).all()


def test_heads_of_a_fused_projection_past_2_31(kernels: Mapping[str, Kernel], sparse: Sparse) -> None:
    kernel, rows = kernels["attn_qk_norm_sliding"], (T // 2, T - 1)
    qkv, y = sparse(T, 16_384), sparse(T, 32, 256)
    q = qkv[:, :8192].view(T, 32, 256)
    exact, w = {row: values(row, 1, 32, 256) for row in rows}, values(2, 256)
    for row in rows:
        q[row : row + 1] = bits(exact[row])
    assert q[T // 2].storage_offset() == BEYOND

    def programs(_: str, grid: Program) -> list[Program]:
        each = grid[0] // T
        return [(row * each + n, 0, 0) for row in rows for n in range(each)]

    _, trace = run(kernel, {"x": q, "w": bits(w), "y": y}, programs=programs)
    assert np.unique(trace.written(y)[:, 0]).tolist() == list(rows)
    for row in rows:
        assert_part(kernel, {"x": exact[row], "w": w}, y[row : row + 1])


@pytest.mark.parametrize("sequences", [2, 3])
def test_the_last_sequence_of_a_sliding_cache_past_2_31(
    sequences: int, kernels: Mapping[str, Kernel], sparse: Sparse
) -> None:
    """2 · 262,144 cached rows of 4,096 elements end at 2³¹, those of a third sequence begin there."""
    kernel, last, keys = kernels["attn_core_sliding_decode"], sequences - 1, 1100
    k, v = sparse(sequences, T, 16, 256), sparse(sequences, T, 16, 256)
    exact = {n: values(i, 1, keys, 16, 256) for i, n in enumerate("kv")}
    for name, cache in (("k", k), ("v", v)):
        cache[last, T - keys :] = bits(exact[name][0])
    q = values(9, 1, 32, 256, scale=0.1)
    tensors = {"q": bits(q).expand(sequences, 32, 256).contiguous(), "k": k, "v": v}
    tensors["seq_lens"] = torch.full((sequences,), T)
    assert v[last, -1, -1, -1].storage_offset() >= BEYOND - 1

    def programs(name: str, grid: Program) -> list[Program]:
        first = grid[1] - grid[1] // 16
        return [(last, y, z) for y in range(first, grid[1]) for z in range(grid[2])]

    o = run(kernel, tensors, programs=programs)[0]["o"]
    heads = o[last : last + 1].clone()
    assert heads[:, 30:].isfinite().all() and heads[:, :30].isnan().all()
    operands = {"q": q, **exact, "seq_lens": np.array([keys])}
    assert_part(kernel, operands, heads, np.array([(0, h, d) for h in (30, 31) for d in range(256)]))
