"""Triton and CUDA on every node of every shipped spec: two lowerings of one formula agree within the sum of their
bounds."""

from __future__ import annotations

import pytest

from specc.kernels import Kernel
from specc.resources import shipped
from specc.targets.cuda.emit import emit
from specc.targets.triton.tiles import TILES
from tests.shipped import SPECS, distinct
from tests.targets.cuda import agreement

GEMMA4, SMALL, TRUE = distinct(("gemma4",), reduced=True), distinct(reduced=True), distinct()
DTYPES = ("bfloat16", "float16", "float32")


def assert_agree(kernel: Kernel, dtype: str) -> None:
    found = agreement.agreement(kernel, dtype)
    assert found.compared and found.worst <= 1, found


@pytest.mark.parametrize("name", GEMMA4)
def test_triton_and_cuda_agree_on_gemma4(name: str) -> None:
    assert_agree(GEMMA4[name], "bfloat16")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SMALL)
def test_triton_and_cuda_agree_on_whole_results_of_every_spec(name: str, dtype: str) -> None:
    assert_agree(SMALL[name], dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TRUE)
def test_triton_and_cuda_agree_at_the_true_constants_of_every_spec(name: str, dtype: str) -> None:
    assert_agree(TRUE[name], dtype)


def test_kernels_of_every_spec_and_schedule_are_compared() -> None:
    assert set(SPECS) == {path.stem for path in shipped("specs").glob("*.spec")}
    for found in (SMALL, TRUE):
        assert {name.split()[0] for name in found} == set(SPECS)
        assert {kernel.schedule_name for kernel in found.values()} == set(TILES)
    assert {kernel.schedule_name for kernel in GEMMA4.values()} == set(TILES) - {"recurrence"}


def test_a_kernel_that_computes_something_else_does_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    mean = "/ 64.0f"
    monkeypatch.setattr(agreement, "emit", lambda k, **options: emit(k, **options).replace(mean, "/ 65.0f"))
    kernel = GEMMA4["gemma4 input_norm"]
    assert mean in emit(kernel)
    assert agreement.agreement(kernel, "float32").worst > 1
