"""Generated CUDA kernels of every form that pointwise operations and row reductions take."""

from __future__ import annotations

import re

import pytest
import torch

from specc.targets.cuda.emit import emit
from specc.targets.cuda.emit_row_reduction import shape_of
from specc.targets.cuda.names import legal
from specc.targets.cuda.run import run_text
from specc.targets.cuda.session import KernelFault
from tests.targets.cuda.generated import assert_verified, custom, edited, faults, operands, results, shipped
from tests.targets.triton.generated import strided

NORMS = {"part of a warp": 128, "ragged": 769, "tiny": 3, "one warp": 1024, "a block": 5376, "a long block": 20000}


@pytest.mark.parametrize("length", NORMS.values(), ids=list(NORMS))
def test_rows_of_every_length_are_reduced(length: int) -> None:
    assert_verified(shipped("rmsnorm", H=length, eps=1e-6))


def test_a_row_that_fits_no_registers_is_read_again() -> None:
    assert not shape_of(40000).resident
    assert_verified(shipped("rmsnorm", H=40000, eps=1e-6), examples=1)


def test_a_row_of_several_stages_is_reduced() -> None:
    text = """op spread(x[T, H], w[H]; H: nat) -> y[T, H]
  let m = Σ_j x[t, j] / H
  y[t, i] = (x[t, i] - m) / √(Σ_j (x[t, j] - m)² / H + 1e-5) · w[i]
"""
    assert_verified(custom(text, H=200))
    assert_verified(shipped("l2norm", D=128, eps=1e-6))


@pytest.mark.parametrize("width", [64, 21504, 20, 7])
def test_halves_of_every_width(width: int) -> None:
    assert_verified(shipped("geluMul", I=width))


def test_an_op_of_the_users_own_needs_no_template() -> None:
    text = """op weighted(x[T, H], w[H], b[H]; H: nat) -> y[T, H]
  y[t, i] = exp(w[i]) · x[t, i] / (1 + Max_j abs(x[t, j])) + tanh(b[i])
"""
    assert_verified(custom(text, H=200))


@pytest.mark.parametrize("name", ["float", "blockIdx", "row", "x_ptr", "VEC", "t1", "exp", "Element", "specc", "y_v"])
def test_operands_may_have_any_name(name: str) -> None:
    kernel = custom(f"op m({name}[T, H], w[H]; H: nat) -> y[T, H]\n  y[t, i] = {name}[t, i] · w[i]\n", H=20)
    assert legal(kernel) is not kernel
    tensors = operands(kernel, {"T": 3})
    assert torch.equal(results(kernel, tensors)["y"], tensors[name] * tensors["w"])


def near(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal but for the order of sums: a rounding apart."""
    step = {torch.bfloat16: 2.0**-7, torch.float16: 2.0**-10, torch.float32: 2.0**-19}[a.dtype]
    return bool(((a.double() - b.double()).abs() <= step * b.double().abs()).all())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_rows_anywhere_in_memory_give_the_same_row(dtype: torch.dtype) -> None:
    kernel = shipped("rmsnorm", H=1024, eps=1e-6)
    tensors = operands(kernel, {"R0": 9}, dtype)
    plain = results(kernel, tensors)["y"]
    for pitch, offset in ((8, 0), (5, 3), (0, 1)):
        moved = {**tensors, "x": strided(tensors["x"], pitch, offset)}
        assert near(results(kernel, moved)["y"], plain)
    assert near(results(kernel, tensors, pitch=16)["y"], plain)


def test_no_rows_launch_nothing() -> None:
    kernel = shipped("rmsnorm", H=64, eps=1e-6)
    outputs, trace = run_text(kernel, emit(kernel), operands(kernel, {"R0": 0}))
    assert outputs["y"].shape == (0, 64) and trace.launches == []


def test_the_same_kernel_without_rounding_is_its_formula() -> None:
    kernel = shipped("rmsnorm", H=769, eps=1e-6)
    tensors = operands(kernel, {"R0": 5}, torch.float64)
    x, w = tensors["x"], tensors["w"]
    right = x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w
    found = results(kernel, tensors, widen=True)["y"]
    assert found.dtype == torch.float64
    assert float(((found - right).abs() / right.abs()).max()) < 769 * 2.0**-52


def test_an_index_out_of_the_table_is_nan_and_reads_nothing() -> None:
    kernel = shipped("embed", H=64, V=11)
    tokens = torch.tensor([0, 10, 11, -1, 2**40])
    tensors = {"tokens": tokens, "w": torch.arange(11 * 64, dtype=torch.float32).reshape(11, 64)}
    y = results(kernel, tensors)["y"]
    assert not y[:2].isnan().any() and y[2:].isnan().all()


BLOCK, WARP, HALVES = (
    shipped("rmsnorm", H=5376, eps=1e-6),
    shipped("rmsnorm", H=100, eps=1e-6),
    shipped("geluMul", I=20),
)
REDUCE, TAIL = "specc::reduce_block<specc::Sum, 7>(", "specc::store_up_to(y_row + i_first, y_v, 20 - i_first)"
BOUND = "outside their bound"
PLANTED = {
    "a barrier removed": (BLOCK, REDUCE, "reduce_block_without_barrier(", "race|uninitialised"),
    "the wrong lanes": (WARP, "reduce_lanes<specc::Sum, 16>", "reduce_lanes<specc::Sum, 8>", BOUND),
    "a tail not masked": (HALVES, TAIL, "specc::store(y_row + i_first, y_v)", "out of range|written between"),
    "the rows not masked": (WARP, "row_in = own_row < rows", "row_in = true", "written|out of range"),
    "the epsilon lost": (BLOCK, " + real(1e-06)", "", BOUND),
    "a row too far": (HALVES, "r0 * gu_stride_r0", "(r0 + 1) * gu_stride_r0", f"out of range|{BOUND}"),
    "a launch of one row less": (HALVES, "specc::ceil_div(rows, Y)", "rows / Y", "Incomplete|not possible"),
}
WITHOUT = """template <typename T = void>
__device__ real reduce_block_without_barrier(real value, real* scratch) {
    value = specc::reduce_lanes<specc::Sum, 32>(value);
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    value = 0;
    for (int n = 0; n < 7; ++n) value += scratch[n];
    return value;
}

"""


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_and_told(name: str) -> None:
    kernel, old, new, told = PLANTED[name]
    text = edited(kernel, old, new).replace("/// A block", WITHOUT + "/// A block", 1)
    found = faults(kernel, text)
    assert found and any(re.search(told, f) for f in found), found


def test_an_int32_offset_at_a_large_row_is_told_with_its_line() -> None:
    kernel = shipped("geluMul", I=20)
    gu = torch.as_strided(torch.zeros(2**20), (3, 40), (2**18, 1))
    assert results(kernel, {"gu": gu})["y"].shape == (3, 20)
    far = edited(kernel, "r0 * gu_stride_r0", "(r0 << 13) * int(gu_stride_r0)")
    with pytest.raises(KernelFault, match=r"line \d+: thread \d+: a product overflows its integer type"):
        run_text(kernel, far, {"gu": gu})
