"""Asynchronous copies, ldmatrix and mma.sync, by their definitions."""

from __future__ import annotations

import re

import numpy as np
import pytest

from specc.targets.cuda.session import KernelFault
from tests.targets.cuda.host.kernels import run

KINDS = ("__nv_bfloat16", "__half")
COPY = """__shared__ __align__(16) float s[128];
const int n = threadIdx.x;
specc::copy_async<4>(s + 4 * n, x + 4 * n);
specc::commit_copies();
"""


def floats(n: int, seed: int = 0) -> np.ndarray:  # type: ignore[type-arg]
    return np.random.default_rng(seed).integers(-9, 9, n).astype(np.float32)


@pytest.mark.parametrize("seed", range(3))
def test_a_copy_is_there_after_its_wait_and_for_others_after_a_barrier(seed: int) -> None:
    y, x = {"y": np.zeros(128, dtype=np.float32)}, floats(128)
    body = COPY + "specc::wait_copies<0>();\n__syncthreads();\nfor (int k = n; k < 128; k += 32) y[k] = s[k];"
    run(body, y, {"x": x}, seed=seed)
    assert (y["y"] == x).all()


@pytest.mark.parametrize(("rest", "found"), [
    ("y[n] = s[4 * n];", "before the wait for its cp.async"),
    ("specc::wait_copies<1>();\ny[n] = s[4 * n];", "before the wait for its cp.async"),
    ("specc::wait_copies<0>();\ny[n] = s[4 * (n ^ 1)];", "before the wait for its cp.async|race|uninitialised"),
    ("s[4 * (n ^ 1)] = 1;", "race: .* copies with cp.async|race: .* writes"),
    ("specc::copy_async<2>(y, x);", "cp.async of thread .* writes no shared memory"),
])  # fmt: skip
def test_a_copy_that_is_not_waited_for_is_reported(rest: str, found: str) -> None:
    y, x = {"y": np.zeros(128, dtype=np.float32)}, floats(128)
    with pytest.raises(KernelFault, match=found):
        run(COPY + rest, y, {"x": x})


def test_groups_arrive_oldest_first_and_a_masked_copy_is_zero() -> None:
    y, x = {"y": np.zeros(3, dtype=np.float32)}, np.arange(1, 13, dtype=np.float32)
    body = """__shared__ __align__(16) float s[12];
for (int k = 0; k < 3; ++k) {
    specc::copy_async<4>(s + 4 * k, x + 4 * k, k != 1);
    specc::commit_copies();
}
specc::wait_copies<2>();
y[0] = s[3];
specc::wait_copies<1>();
y[1] = s[7];
specc::wait_copies<0>();
y[2] = s[11];"""
    run(body, y, {"x": x}, block=(1,))
    assert y["y"].tolist() == [4, 0, 12]


def test_a_copy_past_the_end_is_out_of_range() -> None:
    with pytest.raises(KernelFault, match=r"out of range: .*x\[124\], which has 126 elements"):
        run(COPY, {"y": np.zeros(1, dtype=np.float32)}, {"x": floats(126)})


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_every_lane_gets_its_pair_of_each_matrix(count: int, transposed: bool) -> None:
    """Each element of 8·count rows of 8 is its own number."""
    x = np.arange(64 * count, dtype=np.float32)
    y = {"y": np.zeros((32, count, 2), dtype=np.float32)}
    body = f"""__shared__ __align__(16) __half s[{64 * count}];
const int lane = threadIdx.x;
for (int n = lane; n < {64 * count}; n += 32) s[n] = specc::round_to<__half>(x[n]);
__syncthreads();
specc::Pair<__half> got[{count}];
specc::load_matrices<{count}, {str(transposed).lower()}>(got, s + lane % {8 * count} * 8);
for (int m = 0; m < {count}; ++m) {{
    y[(lane * {count} + m) * 2] = specc::to_real(got[m].low);
    y[(lane * {count} + m) * 2 + 1] = specc::to_real(got[m].high);
}}"""
    run(body, y, {"x": x})
    lane, m, n = np.ogrid[:32, :count, :2]
    fixed, first = lane // 4, lane % 4 * 2 + n
    row, column = (first, fixed) if transposed else (fixed, first)
    assert (y["y"] == m * 64 + row * 8 + column).all()


def test_ldmatrix_wants_rows_at_multiples_of_16_bytes_in_shared_memory() -> None:
    body = """__shared__ __align__(16) __half s[80];
for (int n = threadIdx.x; n < 80; n += 32) s[n] = specc::round_to<__half>(1.0f);
__syncthreads();
specc::Pair<__half> got[1];
specc::load_matrices<1, false>(got, s + threadIdx.x % 8 * 8 + 1);
y[threadIdx.x] = specc::to_real(got[0].low);"""
    with pytest.raises(KernelFault, match="misaligned"):
        run(body, {"y": np.zeros(32, dtype=np.float32)})
    glob = """specc::Pair<__half> got[1];
specc::load_matrices<1, false>(got, (const __half*)x);
y[0] = got[0].low.bits;"""
    with pytest.raises(KernelFault, match="ldmatrix reads no shared memory"):
        run(glob, {"y": np.zeros(32, dtype=np.float32)}, {"x": floats(64)})


MULTIPLY = """const int lane = threadIdx.x, g = lane / 4, p = lane % 4 * 2;
auto pa = [&](int r, int k) { return specc::pair<KIND>(a[r * 16 + k], a[r * 16 + k + 1]); };
auto pb = [&](int k, int c) { return specc::pair<KIND>(b[k * 8 + c], b[(k + 1) * 8 + c]); };
const specc::Pair<KIND> fa[4] = {pa(g, p), pa(g + 8, p), pa(g, p + 8), pa(g + 8, p + 8)};
const specc::Pair<KIND> fb[2] = {pb(p, g), pb(p + 8, g)};
real c[4] = {start[g * 8 + p], start[g * 8 + p + 1], start[(g + 8) * 8 + p], start[(g + 8) * 8 + p + 1]};
specc::multiply_add(c, fa, fb);
y[g * 8 + p] = c[0], y[g * 8 + p + 1] = c[1], y[(g + 8) * 8 + p] = c[2], y[(g + 8) * 8 + p + 1] = c[3];"""


def product(a: np.ndarray, b: np.ndarray, start: np.ndarray, kind: str) -> np.ndarray:  # type: ignore[type-arg]
    y = {"y": np.zeros((16, 8), dtype=np.float32)}
    run(re.sub("KIND", kind, MULTIPLY), y, {"a": a, "b": b, "start": start})
    return y["y"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_product_of_matrices_is_the_plain_one(kind: str) -> None:
    random = np.random.default_rng(0)
    a, b, c = (random.integers(-9, 9, s).astype(np.float32) for s in ((16, 16), (16, 8), (16, 8)))
    assert (product(a, b, c, kind) == a @ b + c).all()


@pytest.mark.parametrize("k", range(16))
def test_every_position_of_both_fragments_counts(k: int) -> None:
    """One column of a and one row of b at a time, so that a pair at the wrong place gives another product."""
    a, b = np.zeros((16, 16), dtype=np.float32), np.zeros((16, 8), dtype=np.float32)
    a[:, k], b[k] = np.arange(1, 17), np.arange(1, 9)
    assert (product(a, b, np.zeros((16, 8), dtype=np.float32), "__half") == a @ b).all()


def test_products_of_the_narrow_type_are_not_rounded() -> None:
    a, b = np.zeros((16, 16), dtype=np.float32), np.zeros((16, 8), dtype=np.float32)
    a[:, :2], b[:2] = 1 + 2.0**-7, 1 + 2.0**-7
    right = 2 * (1 + 2.0**-7) ** 2
    assert (product(a, b, np.zeros((16, 8), dtype=np.float32), "__nv_bfloat16") == np.float32(right)).all()


@pytest.mark.parametrize(
    "operation", ["specc::multiply_add(c, a, b)", "specc::load_matrices<1, false>(b, (const __half*)nullptr)"]
)
def test_a_matrix_instruction_needs_the_whole_warp(operation: str) -> None:
    body = f"""specc::Pair<__half> a[4] = {{}}, b[2] = {{}};
real c[4] = {{}};
if (threadIdx.x != 3) {operation};
y[0] = c[0] + b[0].low.bits + a[0].low.bits;"""
    with pytest.raises(KernelFault, match="has left|no shared memory|divergence"):
        run(body, {"y": np.zeros(1, dtype=np.float32)})
