"""What NVRTC makes of the kernels of shipped specs: no spills, matrix instructions, accesses of 128 bits."""

from __future__ import annotations

import re

import pytest

from specc.kernels import Kernel
from specc.targets.cuda.aot import compile_kernel
from specc.targets.cuda.emit import TILED, emit
from specc.targets.report import CompileReport
from specc.tiles import ARCHITECTURES
from tests.evidence.planted import NODES, library
from tests.shipped import distinct

WIDE = re.compile(r"(LDG|LDGSTS)\.128")
MATRIX = ("contraction", "attention_prefill")
"""Schedules that must have matrix instructions, whatever their instances are called."""
KERNELS = distinct()
SMALLEST = distinct(("gemma3_270m",))


def assert_good(kernel: Kernel, arch: str, dtype: str) -> None:
    """No instance spills; products of matrices of short numbers are matrix instructions; every instance that takes
    vectors reads 128 bits at a time."""
    reports = compile_kernel(kernel, emit(kernel), arch, dtype)
    assert len(reports) >= 2
    for report in reports:
        assert (report.spill_stores, report.spill_loads) == (0, 0) and report.fits, report
        if dtype != "float32" and re.search(r"ProductShape|AttentionShape", report.kernel):
            assert report.tensor_core, report
    vectors = [r for r in reports if _length(r) * (4 if dtype == "float32" else 2) == 16]
    assert any(r.tensor_core for r in reports) or dtype == "float32" or kernel.schedule_name not in MATRIX
    assert vectors and all(any(WIDE.fullmatch(access) for access, _ in r.accesses) for r in vectors)


def _length(report: CompileReport) -> int:
    """Elements of a vector of an instance: its first number."""
    found = re.search(r"<(\d+)", report.kernel)
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("name", ["lmHead", "slidingGQA"])
def test_a_small_kernel_has_matrix_instructions_and_wide_accesses_and_does_not_spill(name: str) -> None:
    assert_good(NODES[name].kernel(library()), "sm_90", "bfloat16")


def test_a_kernel_that_keeps_a_row_in_registers_does_not_spill_for_one_more_block() -> None:
    assert_good(KERNELS["gemma4 input_norm"], "sm_100", "float16")


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", SMALLEST)
def test_kernels_of_the_smallest_model_have_matrix_instructions_and_do_not_spill(name: str, arch: str) -> None:
    assert_good(SMALLEST[name], arch, "bfloat16")


def test_every_schedule_of_shipped_models_is_compiled() -> None:
    found = {kernel.schedule_name for kernel in KERNELS.values()}
    assert found == {*TILED, "row_reduction", "pointwise", "gather"}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_shipped_models_have_matrix_instructions_and_do_not_spill(name: str, arch: str, dtype: str) -> None:
    assert_good(KERNELS[name], arch, dtype)
