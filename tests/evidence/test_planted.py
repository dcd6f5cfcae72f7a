"""The suite is tested too: wrong kernels are refuted, with a small counterexample, and right ones are not."""

from __future__ import annotations

import pytest

from specc.evidence.check import Executor, Report, Status, check_kernel
from specc.evidence.execute import TorchExecutor, TritonExecutor
from tests.evidence.planted import FORMULA_FAULTS, NODES, TEXT_FAULTS, library, planted, planted_text, swap

EXECUTORS: dict[str, Executor] = {"triton": TritonExecutor(), "torch": TorchExecutor()}


SMALL = 131
"""Largest run-time size of a counterexample: a window and a few keys."""


def check(kernel_of: str, target: str) -> Report:
    return check_kernel(NODES[kernel_of].kernel(library()), EXECUTORS[target], examples=4, number=1)


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("target", EXECUTORS)
def test_a_right_kernel_is_verified(node: str, target: str) -> None:
    report = check(node, target)
    assert report.status is Status.VERIFIED, report.counterexample or report.reason


@pytest.mark.parametrize("fault", FORMULA_FAULTS)
def test_a_triton_kernel_of_a_wrong_formula_is_refuted(fault: str) -> None:
    node, old, new = FORMULA_FAULTS[fault]
    report = check_kernel(planted(NODES[node], swap(old, new)), EXECUTORS["triton"], examples=4, number=1)
    assert report.status is Status.REFUTED
    assert report.counterexample is not None and report.counterexample.failed


@pytest.mark.parametrize("fault", TEXT_FAULTS)
def test_a_triton_kernel_with_a_fault_of_the_machine_is_refuted(fault: str) -> None:
    node, swaps = TEXT_FAULTS[fault]
    kernel, text = planted_text(NODES[node], swaps)
    report = check_kernel(kernel, TritonExecutor({kernel.name: text}), examples=4, number=1)
    assert report.status is Status.REFUTED
    assert report.counterexample is not None and max(dict(report.counterexample.case.sizes).values()) <= SMALL
