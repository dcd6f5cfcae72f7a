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
inline cudaError_t cudaLaunchKernel(const void* kernel, dim3, dim3, void** given, size_t shared_bytes, cudaStream_t) {
    if (shared_bytes > dynamic) return cudaErrorInvalidValue;
    reinterpret_cast<void (*)(int64_t, const float*)>(kernel)(*static_cast<int64_t*>(given[0]),
                                                              *static_cast<const float**>(given[1]));
    return cudaSuccess;
}
"""
PROGRAM = """#include "specc_launch.cuh"
void kernel(int64_t count, const float* x) { std::printf("%lld %g ", (long long)count, double(*x)); }
int main(int, char** given) {
    float x = 2.5f;
    std::printf("%d", specc::launch(kernel, dim3{1, 1, 1}, dim3{1, 1, 1}, size_t(std::atol(given[1])), nullptr, 7, &x));
}
"""
"""`specc_device.cuh` is that runtime: nothing else of it takes part in a launch."""


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
    (0, "7 2.5 0"), (4096, "7 2.5 0"), (48 * 1024 - 1024, "7 2.5 0"), (48 * 1024, "7 2.5 0"), (64 * 1024, "7 2.5 0"),
    (226 * 1024, "7 2.5 0"), (227 * 1024, "1"),
])  # fmt: skip
def test_static_and_dynamic_shared_memory_beyond_48_kb_is_asked_for(
    program: Path, shared_bytes: int, printed: str
) -> None:
    done = subprocess.run([program, str(shared_bytes)], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == printed
