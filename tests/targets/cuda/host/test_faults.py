"""What no kernel may do is reported, with the place where it happened."""

from __future__ import annotations

import numpy as np
import pytest

from specc.targets.cuda.host import HostCompileError
from specc.targets.cuda.session import KernelFault
from tests.targets.cuda.host.kernels import run

SEEDS = range(4)


def out(n: int = 64) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    return {"y": np.zeros(n, dtype=np.float32)}


def test_a_read_past_the_end_names_the_buffer_and_the_index() -> None:
    x = {"x": np.zeros(32, dtype=np.float32)}
    with pytest.raises(KernelFault, match=r"out of range: thread 31 reads 4 bytes at x\[32\], which has 32 elements"):
        run("y[threadIdx.x] = x[threadIdx.x + 1];", out(), x)


@pytest.mark.parametrize("bounds", ["__launch_bounds__(64)", "__launch_bounds__(2 * (30 + 2), 1)"])
def test_a_launch_of_more_threads_than_its_bounds_allow_is_refused(bounds: str) -> None:
    y = out(128)
    run("y[threadIdx.x + 32 * threadIdx.y] = 1.0f;", y, block=(32, 2), bounds=bounds)
    assert y["y"].sum() == 64
    with pytest.raises(
        KernelFault, match=r"a launch of 96 threads, __launch_bounds__ allows 64 \[block 0, 0, 0 of test_kernel"
    ):
        run("y[threadIdx.x + 32 * threadIdx.y] = 1.0f;", y, block=(32, 3), bounds=bounds)


def test_a_write_before_the_start_names_the_buffer_and_the_index() -> None:
    with pytest.raises(KernelFault, match=r"out of range: thread 0 writes 4 bytes at y\[-1\]"):
        run("y[int(threadIdx.x) - 1] = 1.0f;", out())


def test_a_vector_that_passes_the_end_is_out_of_range() -> None:
    x = {"x": np.zeros(30, dtype=np.float32)}
    with pytest.raises(KernelFault, match=r"out of range: .*x\[28\], which has 30 elements"):
        run("if (threadIdx.x < 8) specc::store(y + 4 * threadIdx.x, specc::load<4>(x + 4 * threadIdx.x));", out(), x)


def test_a_misaligned_vector_is_reported() -> None:
    x = {"x": np.zeros(32, dtype=np.float32)}
    with pytest.raises(KernelFault, match="misaligned: .* 16 bytes at an address that is no multiple of 16"):
        run("specc::store(y, specc::load<4>(x + 1));", out(), x, block=(1,))


def test_a_write_to_an_input_is_reported() -> None:
    x = {"x": np.zeros(32, dtype=np.float32)}
    with pytest.raises(KernelFault, match=r"writes x\[3\], which is an input"):
        run("const_cast<float*>(x)[3] = y == nullptr;", out(), x, block=(1,))


def test_a_result_is_not_read_before_it_is_written() -> None:
    with pytest.raises(KernelFault, match=r"uninitialised: thread 2 reads y\[5\]"):
        run("if (threadIdx.x == 2) y[0] = y[5];", out())


def test_an_index_past_a_shared_array_is_reported() -> None:
    with pytest.raises(KernelFault, match="out of range: index 32 of an array"):
        run("__shared__ float s[32];\ns[threadIdx.x + 1] = 1.0f;\n__syncthreads();\ny[threadIdx.x] = s[0];", out())


def test_a_pointer_past_a_shared_array_names_it() -> None:
    body = "__shared__ float tile[32];\nfloat* p = tile + threadIdx.x;\np[8] = 1.0f;\n__syncthreads();\ny[0] = tile[9];"
    with pytest.raises(KernelFault, match=r"out of range: thread \d+ writes 4 bytes at byte of shared tile\[1\d\d\]"):
        run(body, out())


def test_dynamic_shared_memory_ends_where_the_launch_says() -> None:
    body = "float* s = specc::dynamic_shared<float>();\ns[threadIdx.x] = 1.0f;\ny[threadIdx.x] = s[threadIdx.x];"
    y = out()
    run(body, y, shared_bytes=128)
    assert (y["y"][:32] == 1).all()
    with pytest.raises(KernelFault, match=r"out of range: thread \d+ writes 4 bytes at byte of dynamic shared memory"):
        run(body, out(), shared_bytes=120)


@pytest.mark.parametrize("shared", ["__shared__ float s[32];", "float* s = specc::dynamic_shared<float>();"])
def test_shared_memory_starts_uninitialised_in_every_block(shared: str) -> None:
    body = f"{shared}\nif (blockIdx.x == 0 || threadIdx.x > 4) s[threadIdx.x] = 1.0f;\ny[threadIdx.x] = s[threadIdx.x];"
    with pytest.raises(
        KernelFault, match=r"uninitialised: thread [0-4] reads byte \d+ of shared `\w+`, .*block 1, 0, 0"
    ):
        run(body, out(), grid=(2,), shared_bytes=128, programs=lambda kernel, grid: [(1, 0, 0)])


@pytest.mark.parametrize("block", [0, 1])
def test_a_local_array_that_was_never_set_holds_no_numbers_of_another_thread(block: int) -> None:
    body = """float own[8];
for (int n = 0; n < 8; ++n)
    if (n != int(threadIdx.x) % 8) own[n] = n;
__syncthreads();
for (int n = 0; n < 8; ++n) y[threadIdx.x * 8 + n] = own[n];"""
    y = out(256)
    run(body, y, grid=(2,), programs=lambda kernel, grid: [(block, 0, 0)])
    assert np.isnan(y["y"].reshape(32, 8)).sum() == 32 and np.isnan(y["y"].reshape(32, 8)[3, 3])


RACES = {
    "read after write": "s[threadIdx.x] = 1.0f;\ny[threadIdx.x] = s[(threadIdx.x + 1) % 64];",
    "write after read": "s[threadIdx.x] = 1.0f;\n__syncthreads();\nconst float v = s[(threadIdx.x + 40) % 64];\n"
    "s[threadIdx.x] = v;\ny[threadIdx.x] = v;",
    "two writes": "s[threadIdx.x / 2] = 1.0f;\n__syncthreads();\ny[threadIdx.x] = s[0];",
    "a warp barrier between two warps": "s[threadIdx.x] = 1.0f;\n__syncwarp();\ny[0] = s[(threadIdx.x + 32) % 64];",
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", RACES)
def test_a_missing_barrier_is_a_race_whatever_the_order(name: str, seed: int) -> None:
    with pytest.raises(KernelFault, match=r"race: thread \d+ (reads|writes) byte \d+ of shared `s`|uninitialised"):
        run(f"__shared__ float s[64];\n{RACES[name]}", out(), block=(64,), seed=seed)


COUNT = "__shared__ unsigned s[1];\nif (threadIdx.x == 0) s[0] = 0;\n__syncthreads();\n"
ATOMIC_RACES = {
    "read after": "atomicAdd(s, 1u);\ny[threadIdx.x] = s[0];",
    "write after": "atomicAdd(s, 1u);\nif (threadIdx.x == 40) s[0] = 3;\n",
    "read before": "y[threadIdx.x] = s[0];\natomicAdd(s, 1u);",
    "write before": "if (threadIdx.x == 0) s[0] = 3;\natomicAdd(s, 1u);",
    "a warp barrier between two warps": "atomicAdd(s, 1u);\n__syncwarp();\ny[threadIdx.x] = s[0];",
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ATOMIC_RACES)
def test_an_atomic_operation_and_a_plain_access_are_a_race(name: str, seed: int) -> None:
    with pytest.raises(KernelFault, match=r"race: thread \d+ (reads|writes|changes) byte 0 of shared `s`"):
        run(COUNT + ATOMIC_RACES[name], out(), block=(64,), seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_atomic_operations_are_no_race_with_each_other_nor_across_barriers(seed: int) -> None:
    y = out()
    body = "atomicAdd(s, 1u);\natomicAdd(s, 1u);\n__syncthreads();\ny[threadIdx.x] = s[0];"
    run(COUNT + body, y, block=(64,), seed=seed)
    assert (y["y"] == 128).all()
    warp = "if (threadIdx.x < 32) {\natomicAdd(s, 1u);\n__syncwarp();\ny[threadIdx.x] = s[0];\n}"
    run(COUNT + warp, y, block=(64,), seed=seed)
    assert (y["y"][:32] == 32).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_barriers_order_memory(seed: int) -> None:
    y = out()
    body = """__shared__ float s[64];
s[threadIdx.x] = threadIdx.x;
__syncwarp();
const float a = s[threadIdx.x ^ 1];
__syncthreads();
s[threadIdx.x] = a + s[(threadIdx.x + 1) % 1 + threadIdx.x];
__syncthreads();
y[threadIdx.x] = s[63 - threadIdx.x];"""
    run(body, y, block=(64,), seed=seed)
    n = np.arange(64)
    assert (y["y"] == ((n ^ 1) + n)[::-1]).all()


def test_threads_at_different_barriers_are_reported() -> None:
    body = "if (threadIdx.x < 5) {\n__syncthreads();\n} else {\n__syncthreads();\n}\ny[threadIdx.x] = 1;"
    with pytest.raises(
        KernelFault, match=r"barrier divergence: thread \d+ waits at __syncthreads \(line \d+\), thread \d+ at"
    ):
        run(body, out())


def test_a_thread_that_left_before_a_barrier_is_reported() -> None:
    with pytest.raises(KernelFault, match="barrier divergence: .* thread 7 has left the kernel"):
        run("if (threadIdx.x == 7) return;\n__syncthreads();\ny[threadIdx.x] = 1;", out())


def test_a_warp_operation_that_not_all_reach_is_reported() -> None:
    body = """float v = 1;
if (threadIdx.x != 9) v = __shfl_xor_sync(0xffffffffu, v, 1); else __syncthreads();
y[threadIdx.x] = v;"""
    with pytest.raises(KernelFault, match="divergence: thread .* waits at __shfl_xor_sync .* for thread 9"):
        run(body, out())


HELPERS = """
template <typename Op>
__device__ __forceinline__ float joined(float v) { return Op::join(v, __shfl_xor_sync(0xffffffffu, v, 1)); }
__device__ __forceinline__ void both() { __syncthreads(); }
__device__ __forceinline__ void every() { __syncwarp(); }
__device__ __forceinline__ bool some(bool x) { return __any_sync(0xffffffffu, x); }
"""
BRANCHES = {
    "shuffle": ("v = joined<specc::Sum>(v);", "divergence: .* at __shfl_xor_sync .* waits elsewhere"),
    "vote": ("v = some(v > 1);", "divergence: .* at __any_sync .* waits elsewhere"),
    "warp barrier": ("every();", "divergence: .* at __syncwarp .* waits elsewhere"),
    "barrier": ("both();", r"barrier divergence: .* at __syncthreads \(line \d+\) in another branch"),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", BRANCHES)
def test_a_helper_that_two_branches_of_a_warp_call_is_no_place_to_meet(name: str, seed: int) -> None:
    call, told = BRANCHES[name]
    body = (
        f"float v = threadIdx.x;\nif (threadIdx.x % 2) {{\n{call}\nv += 1;\n}} else {{\n{call}\n}}\ny[threadIdx.x] = v;"
    )
    with pytest.raises(KernelFault, match=told):
        run(body, out(), more=HELPERS, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_helper_between_two_branches_on_one_condition_is_a_place_to_meet(seed: int) -> None:
    """A compiler that copied the call into both ways would part the lanes."""
    y = out()
    body = """float v = threadIdx.x;
if (threadIdx.x % 2) v += 1;
v = joined<specc::Sum>(v);
both();
every();
if (threadIdx.x % 2) v += 1;
y[threadIdx.x] = v;"""
    run(body, y, more=HELPERS, seed=seed)
    n = np.arange(32)
    assert (y["y"][:32] == n // 2 * 4 + 2 + n % 2).all()


def test_integer_overflow_names_its_line() -> None:
    with pytest.raises(KernelFault, match=r"line \d+: thread \d+: a product overflows its integer type"):
        run("const int t = threadIdx.x;\ny[t] = float(t * big[0]);", out(), {"big": np.array([2**31 - 1], np.int32)})


def test_what_the_header_lacks_does_not_compile() -> None:
    with pytest.raises(HostCompileError, match="tanhf|erfcinv"):
        run("y[threadIdx.x] = erfcinv(0.5f);", out())


@pytest.mark.parametrize("static", [0, 4096])
def test_a_launch_with_more_shared_memory_than_any_gpu_has_is_refused(static: int) -> None:
    room = 227 * 1024 - static
    used = f"__shared__ float s[{static // 4}];\ns[threadIdx.x] = 1.0f;\n__syncthreads();\ny[0] = s[threadIdx.x ^ 1];"
    body = used if static else "y[0] = 1.0f;"
    run(body, out(), shared_bytes=room)
    told = f"{static} bytes of static and {room + 16} of dynamic shared memory is not possible"
    with pytest.raises(KernelFault, match=told):
        run(body, out(), shared_bytes=room + 16)


def test_a_launch_of_too_many_threads_is_refused() -> None:
    with pytest.raises(KernelFault, match="2048 threads is not possible"):
        run("y[0] = 1;", out(), block=(2048,))
