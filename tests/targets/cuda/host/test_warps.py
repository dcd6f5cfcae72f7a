"""Shuffles, votes, warp barriers, the order of threads, atomics."""

from __future__ import annotations

import numpy as np
import pytest

from specc.targets.cuda.session import KernelFault
from tests.targets.cuda.host.kernels import run

LANES = np.arange(32)


def taken(expression: str, seed: int = 0) -> np.ndarray:  # type: ignore[type-arg]
    y = {"y": np.full(32, -1, dtype=np.int32)}
    run(f"const int lane = threadIdx.x;\ny[lane] = {expression};", y, seed=seed)
    return y["y"]


@pytest.mark.parametrize("width", [2, 8, 32])
@pytest.mark.parametrize("by", [1, 3, 17])
def test_shuffles_take_from_the_lane_they_name(by: int, width: int) -> None:
    start = LANES // width * width
    up, down, other = LANES - by, LANES + by, LANES ^ by
    arguments = f"(0xffffffffu, lane, {by}, {width})"
    assert (taken("__shfl_up_sync" + arguments) == np.where(up >= start, up, LANES)).all()
    assert (taken("__shfl_down_sync" + arguments) == np.where(down < start + width, down, LANES)).all()
    assert (taken("__shfl_xor_sync" + arguments) == np.where(other < start + width, other, LANES)).all()
    assert (taken("__shfl_sync" + arguments) == start + by % width).all()


def test_votes_count_the_lanes_of_their_mask() -> None:
    odd = "lane % 2 ? 0xaaaaaaaau : 0x55555555u"
    assert (taken("int(__ballot_sync(0xffffffffu, lane < 5))") == 31).all()
    assert (taken(f"int(__ballot_sync({odd}, lane < 5))") == np.where(LANES % 2, 0b01010, 0b10101)).all()
    assert (taken(f"__all_sync({odd}, lane % 2)") == LANES % 2).all()
    assert (taken(f"__any_sync({odd}, lane == 3)") == LANES % 2).all()


def test_a_shuffle_from_a_lane_outside_of_the_mask_is_reported() -> None:
    with pytest.raises(
        KernelFault, match=r"lane 15 takes a shuffled value from lane 16, which is not in the mask 0xffff"
    ):
        taken("lane < 16 ? __shfl_down_sync(0xffffu, lane, 1) : 0")


def test_a_lane_must_be_in_its_own_mask() -> None:
    with pytest.raises(KernelFault, match=r"lane \d+ calls __shfl_sync with a mask 0xf that it is not in"):
        taken("__shfl_sync(0xfu, lane, 0)")


def test_a_mask_may_not_name_a_lane_that_has_left() -> None:
    for seed in range(4):
        with pytest.raises(KernelFault, match="lane 4, which has left|for thread 4, which has left"):
            y = {"y": np.zeros(32, dtype=np.int32)}
            run("if (threadIdx.x == 4) return;\ny[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0);", y, seed=seed)


@pytest.mark.parametrize("lanes", [1, 2, 8, 32])
def test_lanes_reduce_among_their_neighbours(lanes: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, 64).astype(np.float32)
    y = {"total": np.zeros(64, dtype=np.float32), "top": np.zeros(64, dtype=np.float32)}
    body = f"""const int n = threadIdx.x;
total[n] = specc::reduce_lanes<specc::Sum, {lanes}>(x[n]);
top[n] = specc::reduce_lanes<specc::Max, {lanes}>(x[n]);"""
    run(body, y, {"x": x}, block=(64,))
    groups = x.reshape(-1, lanes)
    assert (y["total"].reshape(-1, lanes) == groups.sum(1, keepdims=True)).all()
    assert (y["top"].reshape(-1, lanes) == groups.max(1, keepdims=True)).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_block_reduces_over_all_its_warps(seed: int) -> None:
    x = np.random.default_rng(seed).integers(-9, 9, 224).astype(np.float32)
    x[100] = np.nan if seed == 2 else x[100]
    y = {"total": np.zeros(224, dtype=np.float32), "top": np.zeros(224, dtype=np.float32)}
    body = """__shared__ real scratch[2][7];
total[threadIdx.x] = specc::reduce_block<specc::Sum, 7>(x[threadIdx.x], scratch[0]);
top[threadIdx.x] = specc::reduce_block<specc::Max, 7>(x[threadIdx.x], scratch[1]);"""
    run(body, y, {"x": x}, block=(224,), seed=seed)
    assert np.array_equal(y["total"], np.full(224, x.sum()), equal_nan=True)
    assert np.array_equal(y["top"], np.full(224, x.max()), equal_nan=True)


def test_the_order_of_threads_is_drawn_from_the_seed_and_replays() -> None:
    def order(seed: int) -> tuple[int, ...]:
        y = {"y": np.zeros(64, dtype=np.int32), "next": np.zeros(1, dtype=np.int32)}
        body = """__shared__ int turn;
if (threadIdx.x == 0) turn = 0;
__syncthreads();
y[threadIdx.x] = atomicAdd(&turn, 1);
if (threadIdx.x == 0) next[0] = 0;"""
        run(body, y, block=(64,), seed=seed)
        return tuple(y["y"].tolist())

    orders = [order(seed) for seed in range(6)]
    assert all(sorted(o) == list(range(64)) for o in orders)
    assert len(set(orders)) == 6
    assert [order(seed) for seed in range(6)] == orders


def test_blocks_run_in_an_order_of_their_own_and_only_the_chosen_ones() -> None:
    y = {"y": np.zeros(12, dtype=np.int32)}
    trace = run("if (threadIdx.x == 0) y[blockIdx.x + 3 * blockIdx.y] = 7;", y, grid=(3, 4))
    assert (y["y"] == 7).all() and (trace.counts["y"] == 1).all()
    assert trace.launches[0].grid == (3, 4, 1) and len(trace.launches[0].programs) == 12
    some = {"y": np.zeros(12, dtype=np.int32)}
    picked = [(2, 0, 0), (0, 3, 0)]
    run("if (threadIdx.x == 0) y[blockIdx.x + 3 * blockIdx.y] = 7;", some, grid=(3, 4), programs=lambda k, g: picked)
    assert np.flatnonzero(some["y"]).tolist() == [2, 9]


def test_threads_know_where_they_are() -> None:
    y = {"y": np.zeros((2, 3, 2, 4, 8), dtype=np.int32)}
    body = """const int n = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
const int b = blockIdx.x + gridDim.x * blockIdx.y;
y[n + 64 * b] = 1000 * b + n;"""
    run(body, y, grid=(3, 2), block=(8, 4, 2))
    expected = (1000 * np.arange(6)[:, None] + np.arange(64)).reshape(-1)
    assert (y["y"].reshape(-1) == expected).all()


def test_a_count_of_writes_shows_an_element_written_twice() -> None:
    y = {"y": np.zeros(32, dtype=np.float32)}
    trace = run("y[threadIdx.x] = 1; if (threadIdx.x == 3) y[5] = 2;", y)
    assert np.flatnonzero(trace.counts["y"] == 2).tolist() == [5]
