"""The property suite on every kernel of the shipped model, at its true constants, in every target."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from specc import pipeline
from specc.evidence.check import Report, Status, check_kernel
from specc.evidence.suite import executors
from specc.ir import Model
from specc.kernels import Kernel
from specc.lowered import all_kernels, lower_each

SPEC = Path(__file__).parents[2] / "specs" / "gemma4.spec"


@cache
def model() -> Model:
    return pipeline.load(SPEC)


@cache
def kernels() -> tuple[Kernel, ...]:
    return all_kernels(lower_each(model()))


def run(name: str, target: str, examples: int) -> Report:
    (kernel,) = (k for k in kernels() if k.name == name)
    (executor,) = executors(model(), [target])
    return check_kernel(kernel, executor, examples, number=0)


NAMES = tuple(k.name for k in kernels() if not k.name.startswith("post_") and k.name != "final_norm")
"""One of the five equal norms stands for all."""
GREEN = [(name, target) for name in NAMES for target in ("triton", "torch", "cuda")]
LARGEST = ("lm_head", "torch")
"""A weight of 262144 x 5376, multiplied whole: 5 GB, a minute."""


@pytest.mark.parametrize(("name", "target"), [g for g in GREEN if g != LARGEST])
def test_a_kernel_of_the_shipped_model_is_verified(name: str, target: str) -> None:
    report = run(name, target, 0)
    assert report.status is Status.VERIFIED, report.counterexample or report.reason


@pytest.mark.slow
@pytest.mark.parametrize(("name", "target"), GREEN)
def test_drawn_cases_of_the_shipped_model_are_verified_as_well(name: str, target: str) -> None:
    report = run(name, target, 6)
    assert report.status is Status.VERIFIED, report.counterexample or report.reason


def test_the_equal_norms_are_equal() -> None:
    texts = {k.schedule for k in kernels() if k.op == "rmsnorm" and "attn_qk" not in k.name}
    assert len(texts) == 1
