"""A formula that no bound is derived for, or only an infinite one: nothing is said of its kernel, and why."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from specc.evidence.check import Executor, Status, check_kernel
from specc.evidence.execute import CudaExecutor, TorchExecutor, TritonExecutor
from tests.lower.cases import kernel_of
from tests.lower.user_ops import USER

(CHOSEN,) = (replace(c.kernel(), name="node") for c in USER if c.name == "sum where larger than the mean")


@pytest.mark.parametrize("executor", [TritonExecutor(), TorchExecutor(), CudaExecutor()], ids=lambda e: e.name)
def test_a_sum_over_a_condition_on_inexact_numbers_is_unknown(executor: Executor) -> None:
    report = check_kernel(CHOSEN, executor, examples=1)
    assert report.status is Status.UNKNOWN and report.counterexample is None
    assert report.reason == "no bound is derived for a reduction over a condition on inexact numbers"


@pytest.mark.filterwarnings("error")
def test_a_product_beyond_the_accumulator_is_unknown() -> None:
    text = "op f(x[.., H]; H: nat, c: real) -> y[.., H]\n  y[.., i] = min(x[.., i] · c, 3)"
    report = check_kernel(kernel_of(text, lead=1, H=5, c=Fraction(10**39)), TritonExecutor(), examples=1)
    assert report.status is Status.UNKNOWN and report.counterexample is None
    assert report.reason.startswith("every bound is above 0.05 of the signal in ")
