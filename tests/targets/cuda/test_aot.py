"""What NVRTC makes of generated kernels, with no GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from specc.targets.cuda.aot import compile_kernel, cubin
from specc.targets.cuda.emit import emit
from specc.targets.machine_code import machine_code
from specc.targets.report import CompileError
from specc.tiles import ARCHITECTURES
from tests.targets.triton.generated import shipped

KERNELS = {
    "row of a block": shipped("rmsnorm", H=5376, eps=1e-6),
    "rows of a warp": shipped("rmsnorm", H=256, eps=1e-6),
    "two halves": shipped("geluMul", I=21504),
}


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", KERNELS)
def test_every_access_of_the_vector_form_is_128_bits_wide_and_nothing_spills(name: str, arch: str) -> None:
    kernel = KERNELS[name]
    wide, single = compile_kernel(kernel, emit(kernel), arch, "bfloat16")
    assert wide.accesses and all(access.endswith(".128") for access, _ in wide.accesses)
    assert not any(access.endswith(".128") for access, _ in single.accesses)
    for report in (wide, single):
        assert (report.spill_stores, report.spill_loads, report.arch) == (0, 0, arch) and report.fits
        assert 0 < report.registers < 256 and report.compiler.startswith("NVRTC ")


def test_a_row_of_gemma4_takes_no_more_registers_than_threads_share_at_half_occupancy() -> None:
    wide, _ = compile_kernel(KERNELS["row of a block"], emit(KERNELS["row of a block"]), "sm_80", "bfloat16")
    assert wide.registers <= 65536 // 1024 and wide.num_warps == 7


def test_a_kernel_that_does_not_compile_is_an_error_with_its_line() -> None:
    text = emit(KERNELS["two halves"]).replace("specc::round_to<", "specc::no_such_function<")
    with pytest.raises(CompileError, match="no_such_function"):
        compile_kernel(KERNELS["two halves"], text, "sm_90", "bfloat16")


def test_a_warning_is_an_error() -> None:
    text = "template <typename T> __global__ void k(T* p) { int unused = 1 / 0; p[0] = 1; }"
    with pytest.raises(CompileError, match="division by zero"):
        cubin(text, "sm_90", ("k<float>",))


MATRIX = """#include "specc_device.cuh"
template <typename T>
__global__ void product(const T* a, const T* b, float* c) {
    __shared__ __align__(16) T s[512];
    specc::copy_async<8>(s + threadIdx.x * 8, a + threadIdx.x * 8);
    specc::copy_async<8>(s + 256 + threadIdx.x * 8, b + threadIdx.x * 8, threadIdx.x < 16);
    specc::commit_copies();
    specc::wait_copies<0>();
    __syncthreads();
    specc::Pair<T> x[4], y[2];
    specc::load_matrices<4, false>(x, s + threadIdx.x * 8);
    specc::load_matrices<2, true>(y, s + 256 + threadIdx.x % 16 * 8);
    real sum[4] = {};
    specc::multiply_add(sum, x, y);
    for (int n = 0; n < 4; ++n) c[threadIdx.x * 4 + n] = sum[n];
}
"""


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("element", "suffix"), [("__nv_bfloat16", "BF16"), ("__half", "")])
def test_the_instructions_of_the_device_header_are_what_they_are_called(
    element: str, suffix: str, arch: str, tmp_path: Path
) -> None:
    code, symbols = cubin(MATRIX, arch, (f"product<{element}>",))
    file = tmp_path / "product.cubin"
    file.write_bytes(code)
    found = machine_code(file, symbols[f"product<{element}>"])
    names = " ".join(found.names)
    assert "LDGSTS" in names and "LDSM.16.M88.4" in names and "LDSM.16.MT88.2" in names
    (multiply,) = found.tensor_core
    assert multiply.startswith("HMMA.16816.F32") and multiply.endswith(suffix)
