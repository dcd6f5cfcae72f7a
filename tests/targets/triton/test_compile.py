"""What is compiled ahead of time is what launchers launch; kernels come out of the compiler clean."""

from __future__ import annotations

import pytest

from specc.kernels import Kernel
from specc.targets.triton.aot import CompileReport, compile_kernel
from specc.targets.triton.compile import CompileSpec, compile_specs
from specc.targets.triton.emit import emit
from tests.shipped import distinct
from tests.targets.triton.generated import shipped

DECODE = shipped("decodeGQA", lead=0, D=64, heads=8, kv_heads=2, scale=1)
SLIDING = shipped("slidingGQA", lead=0, D=256, heads=32, kv_heads=16, scale=1, window=1024)

CHUNKS = shipped("gatedDeltaRule", lead=0, given=("S0",), Hv=48, Hk=16, Dk=128, Dv=128)
TILED = {n: k for n, k in distinct().items() if k.schedule_name not in ("gather", "pointwise", "row_reduction")}


def specs(kernel: Kernel, arch: str = "sm_90", dtype: str = "bfloat16") -> list[CompileSpec]:
    return compile_specs(kernel, emit(kernel), arch, dtype)


def compiled(spec: CompileSpec, arch: str) -> CompileReport:
    return compile_kernel(
        spec.fn,
        spec.signature,
        spec.constexprs,
        arch=arch,
        divisible=spec.divisible,
        num_warps=spec.num_warps,
        num_stages=spec.num_stages,
    )


def assert_clean(report: CompileReport) -> None:
    assert (report.spill_stores, report.spill_loads, report.stack) == (0, 0, 0)
    assert report.fits and report.fp_fusion


def test_every_range_of_rows_is_a_launch() -> None:
    few, many = specs(shipped("linear", K=5376, N=16384))
    assert (few.rows, many.rows) == (1, 17)
    assert few.constexprs["BLOCK_M"] == 16 < many.constexprs["BLOCK_M"]
    assert few.signature["x_ptr"] == "*bf16"


def test_sizes_are_neither_constants_nor_multiples_of_anything() -> None:
    (spec, *_) = specs(shipped("linear", K=5376, N=16384))
    assert spec.signature["R0"] == "i32"
    assert "R0" not in spec.divisible
    assert {"x_ptr", "x_stride_r0"} <= set(spec.divisible)


def test_decode_attention_is_two_kernels_with_constant_strides() -> None:
    found = specs(DECODE, dtype="float32")
    assert [s.fn.__name__ for s in found[:2]] == ["node_kernel", "node_kernel_merge"]
    assert found[0].constexprs["k_stride_l"] == 128
    assert found[0].signature["k_stride_b"] == "i32"


def test_an_unknown_gpu_or_type_is_refused() -> None:
    with pytest.raises(KeyError):
        specs(DECODE, arch="sm_70")
    with pytest.raises(KeyError):
        specs(DECODE, dtype="int8")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_short_rows_take_one_warp_and_whole_vectors(arch: str) -> None:
    (spec,) = specs(shipped("rmsnorm", lead=2, H=256, eps=1), arch)
    report = compiled(spec, arch)
    assert_clean(report)
    assert report.num_warps == 1 and report.shared_bytes == 0
    assert {kind for kind, _ in report.accesses} == {"LDG.128", "STG.128"}


@pytest.mark.parametrize(("arch", "instruction"), [("sm_80", "HMMA"), ("sm_90", "HGMMA"), ("sm_100", "UTCHMMA")])
def test_products_of_many_rows_use_the_tensor_core_of_the_gpu(arch: str, instruction: str) -> None:
    report = compiled(specs(shipped("linear", K=5376, N=5376), arch)[-1], arch)
    assert_clean(report)
    assert any(name.startswith(instruction) for name in report.tensor_core)
    assert {kind for kind, _ in report.accesses} == {"LDGSTS.128", "STG.128"}


@pytest.mark.parametrize(("arch", "instruction"), [("sm_90", "HGMMA"), ("sm_100", "UTCHMMA")])
def test_prefill_attention_uses_the_tensor_core_without_spills(arch: str, instruction: str) -> None:
    report = compiled(specs(SLIDING, arch)[-1], arch)
    assert_clean(report)
    assert any(name.startswith(instruction) for name in report.tensor_core)


def test_decode_attention_is_clean() -> None:
    for spec in specs(DECODE)[:2]:
        assert_clean(compiled(spec, "sm_90"))


def test_float32_products_use_no_tensor_core() -> None:
    report = compiled(specs(shipped("linear", K=64, N=64), dtype="float32")[-1], "sm_90")
    assert report.tensor_core == ()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_a_recurrence_in_float32_is_clean(arch: str) -> None:
    (spec,) = specs(CHUNKS, arch, "float32")
    assert_clean(compiled(spec, arch))


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("name", TILED)
def test_kernels_of_shipped_specs_are_clean_in_float32_too(name: str, arch: str) -> None:
    for spec in specs(TILED[name], arch, "float32"):
        assert_clean(compiled(spec, arch))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_awkward_shapes_are_clean_too(arch: str, dtype: str) -> None:
    kernels = [
        shipped("linear", K=1001, N=769),
        shipped("linear", K=3, N=33),
        shipped("gateUp", K=5376, I=21504),
        shipped("rmsnorm", H=769, eps=1),
        shipped("rmsnorm", H=32768, eps=1),
        shipped("softmax", L=100000),
        shipped("causalConvSilu", lead=0, K=4, C=10240),
        shipped("causalGQA", lead=0, D=96, heads=8, kv_heads=2, scale=1),
        shipped("decodeGQA", lead=0, D=128, heads=32, kv_heads=1, scale=1),
        CHUNKS,
    ]
    for kernel in kernels:
        for spec in specs(kernel, arch, dtype):
            assert_clean(compiled(spec, arch))
