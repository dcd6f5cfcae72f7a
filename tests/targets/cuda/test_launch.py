"""The launch of a kernel, as nvcc compiles it, against a CUDA runtime of this file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from specc.resources import shipped
from specc.targets.cuda import host

RUNTIME = """#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
enum cudaError_t { cudaSuccess, cudaErrorInvalidValue };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
struct dim3 { unsigned x, y, z; };
struct __half {};
struct __nv_bfloat16 {};
using cudaStream_t = void*;

constexpr size_t STATIC = 1024, MOST = 227 * 1024;
inline size_t dynamic = 48 * 1024 - STATIC;
inline cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int value) {
    if (value + STATIC > MOST) return cudaErrorInvalidValue;
    dynamic = size_t(value);
    return cudaSuccess;
}
inline cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3, void** given, size_t bytes, cudaStream_t) {
    if (bytes > dynamic) return cudaErrorInvalidValue;
    std::printf("%ux%ux%u ", grid.x, grid.y, grid.z);
    reinterpret_cast<void (*)(int64_t, const float*)>(kernel)(*static_cast<int64_t*>(given[0]),
                                                              *static_cast<const float**>(given[1]));
    return cudaSuccess;
}
"""
PROGRAM = """#include "specc_launch.cuh"
void kernel(int64_t count, const float* x) { std::printf("%lld %g ", (long long)count, double(*x)); }
int main(int, char** given) {
    float x = 2.5f;
    const specc::Grid grid{std::atoll(given[2]), std::atoll(given[3]), std::atoll(given[4])};
    std::printf("%d", specc::launch(kernel, grid, dim3{1, 1, 1}, size_t(std::atol(given[1])), nullptr, 7, &x));
}
"""
"""`specc_device.cuh` is that runtime: nothing else of it takes part in a launch."""


RUN, REFUSED = "1x1x1 7 2.5 0", "1"


def ran(program: Path, *given: int) -> str:
    """What the program prints: the blocks, the kernel's arguments, and the status."""
    return subprocess.run([program, *map(str, given)], capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("launch")
    launch = shipped("templates") / "cuda" / "specc_launch.cuh"
    files = {"specc_launch.cuh": launch.read_text(), "specc_device.cuh": RUNTIME, "main.cpp": PROGRAM}
    for name, text in files.items():
        (folder / name).write_text(text)
    command = [*host.compiler(), "-std=c++17", "-Wall", "-Wextra", "-Werror", "main.cpp", "-o", "program"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return folder / "program"


@pytest.mark.parametrize(("shared_bytes", "printed"), [
    (0, RUN), (4096, RUN), (48 * 1024 - 1024, RUN), (48 * 1024, RUN), (64 * 1024, RUN), (226 * 1024, RUN),
    (227 * 1024, REFUSED),
])  # fmt: skip
def test_static_and_dynamic_shared_memory_beyond_48_kb_is_asked_for(
    program: Path, shared_bytes: int, printed: str
) -> None:
    assert ran(program, shared_bytes, 1, 1, 1) == printed


@pytest.mark.parametrize(("grid", "launched"), [
    ((1, 1, 1), True), (((1 << 31) - 1, 65535, 65535), True), ((1 << 31, 1, 1), False), ((1, 65536, 1), False),
    ((1, 1, 65536), False), (((1 << 32) + 2048, 1, 1), False), ((1, (1 << 32) + 1, 1), False),
    ((-1, 1, 1), False),
])  # fmt: skip
def test_a_grid_is_launched_whole_or_not_at_all(program: Path, grid: tuple[int, int, int], launched: bool) -> None:
    run = "x".join(map(str, grid)) + RUN.removeprefix("1x1x1")
    assert ran(program, 0, *grid) == (run if launched else REFUSED)
