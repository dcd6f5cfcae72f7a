"""Compiling ahead of time: the report says what the machine code holds."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl

from specc.targets.machine_code import parse_machine_code
from specc.targets.report import SHARED_LIMITS, CompileError, CompileReport
from specc.targets.triton.aot import compile_kernel


@triton.jit
def _axpy(x, y, a, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = a * tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    out = v + tl.load(y + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + at, out.to(y.dtype.element_ty), mask=at < n)


@triton.jit
def _product(a, b, c, K, N, M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    acc = tl.zeros((M, BLOCK_N), dtype=tl.float32)
    for first in range(0, K, BLOCK_K):
        at = first + k
        left = tl.load(a + m[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
        right = tl.load(b + at[:, None] * N + n[None, :], mask=at[:, None] < K, other=0.0)
        acc = tl.dot(left, right, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty))


@triton.jit
def _mistyped(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), tl.no_such_function(x))


@triton.jit
def _kept_alive(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    total = tl.sum(v, axis=0)
    tl.store(y + at, v / total)


_AXPY = {"x": "*bf16", "y": "*bf16", "a": "fp32", "n": "i32"}
_PRODUCT = {"a": "*bf16", "b": "*bf16", "c": "*bf16", "K": "i32", "N": "i32"}


def _axpy_report(**changed: Any) -> CompileReport:
    request: dict[str, Any] = {"arch": "sm_90", "divisible": ["x", "y", "n"], "num_warps": 4, "num_stages": 1}
    return compile_kernel(_axpy, _AXPY, {"BLOCK": 1024}, **(request | changed))


@cache
def _axpy_by_default() -> CompileReport:
    return _axpy_report()


def _product_report(arch: str, rows: int = 128) -> CompileReport:
    return compile_kernel(
        _product,
        _PRODUCT,
        {"M": rows, "BLOCK_N": 128, "BLOCK_K": 64},
        arch=arch,
        divisible=["a", "b", "c", "K", "N"],
        num_warps=4,
        num_stages=3,
    )


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_a_pointwise_kernel_is_wide_and_does_not_spill(arch: str) -> None:
    report = _axpy_report(arch=arch)
    assert (report.kernel, report.arch, report.compiler) == ("_axpy", arch, triton.__version__)
    assert report.accesses == (("LDG.128", 2), ("STG.128", 1))
    assert (report.spill_stores, report.spill_loads, report.stack) == (0, 0, 0)
    assert 8 <= report.registers <= 64
    assert 20 <= report.instructions <= 400
    assert report.tensor_core == ()
    assert report.fits


def test_without_divisibility_accesses_are_narrow() -> None:
    narrow = dict(_axpy_report(divisible=[]).accesses)
    assert "LDG.128" not in narrow
    assert narrow["LDG.16"] == 16


@pytest.mark.parametrize(
    ("arch", "instruction"), [("sm_80", "HMMA.16816.F32.BF16"), ("sm_90", "HGMMA."), ("sm_100", "UTCHMMA")]
)
def test_a_product_runs_on_the_tensor_cores_of_its_architecture(arch: str, instruction: str) -> None:
    report = _product_report(arch)
    assert report.tensor_core
    assert all(name.startswith(instruction) for name in report.tensor_core)
    assert "LDGSTS.128" in dict(report.accesses)
    assert report.shared_bytes >= 2 * 128 * 64 * 2
    assert (report.tensor_memory > 0) == (arch == "sm_100")


def test_a_block_that_is_too_large_does_not_fit() -> None:
    report = compile_kernel(
        _product,
        _PRODUCT,
        {"M": 64, "BLOCK_N": 256, "BLOCK_K": 128},
        arch="sm_80",
        divisible=["a", "b", "c", "K", "N"],
        num_warps=8,
        num_stages=4,
    )
    assert report.shared_bytes > SHARED_LIMITS["sm_80"]
    assert not report.fits


def test_a_kernel_that_holds_too_much_spills() -> None:
    report = compile_kernel(
        _kept_alive,
        {"x": "*fp32", "y": "*fp32"},
        {"BLOCK": 16384},
        arch="sm_90",
        divisible=["x", "y"],
        num_warps=4,
        num_stages=1,
        options={"maxnreg": 64},
    )
    assert report.registers <= 64
    assert report.stack > 0
    assert report.spill_stores >= report.stack
    assert report.spill_loads > 0


@pytest.mark.parametrize("fused", [True, False])
def test_fusion_is_what_is_asked_for_and_on_by_default(fused: bool) -> None:
    asked = _axpy_report(options={"enable_fp_fusion": fused})
    assert asked.fp_fusion is fused
    assert (asked == _axpy_by_default()) is fused


def test_a_report_is_deterministic_json() -> None:
    report = _axpy_report()
    assert report == _axpy_by_default()
    data = json.loads(report.to_json())
    assert data["accesses"] == {"LDG.128": 2, "STG.128": 1}
    assert list(data) == sorted(data)
    assert data["num_warps"] == 4


def test_nothing_is_left_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    _axpy_report()
    assert os.environ["TRITON_CACHE_DIR"] == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("signature", "constants", "changed", "message"),
    [
        (_AXPY, {}, {}, "missing: BLOCK"),
        (_AXPY, {"BLOCK": 1024, "BLOCKS": 1}, {}, "unknown: BLOCKS"),
        (_AXPY, {"BLOCK": 1024, "n": 1}, {}, "both typed and constant: n"),
        (_AXPY | {"BLOCK": "i32"}, {}, {}, "given a type: BLOCK"),
        (_AXPY, {"BLOCK": 1024}, {"divisible": ["a"]}, "not a"),
        (_AXPY, {"BLOCK": 1024}, {"arch": "sm_70"}, "unknown architecture sm_70"),
        (_AXPY, {"BLOCK": 1024}, {"options": {"num_wraps": 4}}, "no option num_wraps"),
        (_AXPY, {"BLOCK": 1000}, {}, "power of 2"),
    ],
)
def test_a_wrong_request_is_refused(
    signature: dict[str, str], constants: dict[str, int], changed: dict[str, Any], message: str
) -> None:
    request: dict[str, Any] = {"arch": "sm_90", "divisible": [], "num_warps": 4, "num_stages": 1}
    with pytest.raises(CompileError, match=message):
        compile_kernel(_axpy, signature, constants, **(request | changed))


def test_a_kernel_that_does_not_compile_says_why() -> None:
    with pytest.raises(CompileError, match=r"(?s)_mistyped for sm_90: .*no_such_function"):
        compile_kernel(_mistyped, {"x": "*fp32"}, {"BLOCK": 16}, arch="sm_90", divisible=[], num_warps=4, num_stages=1)


_DISASSEMBLY = """
	.section	.text.first,"ax",@progbits
first:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.64.CONSTANT R2, desc[UR4][R2.64] ;
        /*0020*/              @UP1 UTMALDG.2D [UR8], [UR4], desc[UR6] ;
        /*0030*/               @P0 LDG.E.U16 R4, desc[UR4][R2.64] ;
        /*0040*/                   STL.128 [R1+0x10], R4 ;
        /*0050*/                   LDL R4, [R1] ;
        /*0060*/                   LDGDEPBAR ;
        /*0070*/                   NOP ;
	.section	.text.second,"ax",@progbits
second:
        /*0000*/                   HMMA.1688.F32.TF32 R4, R8, R2, R4 ;
        /*0010*/                   LDS.128 R8, [R4] ;
"""


def test_the_disassembly_is_read_kernel_by_kernel() -> None:
    first, second = (parse_machine_code(_DISASSEMBLY, name) for name in ("first", "second"))
    assert len(first.names) == 7
    assert first.accesses == (("LDG.16", 1), ("LDG.64", 1), ("UTMALDG", 1))
    assert (first.local_bytes("STL"), first.local_bytes("LDL")) == (16, 4)
    assert first.tensor_core == ()
    assert second.tensor_core == ("HMMA.1688.F32.TF32",)
    assert second.accesses == ()


def test_a_kernel_missing_from_the_disassembly_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="no kernel third"):
        parse_machine_code(_DISASSEMBLY, "third")
