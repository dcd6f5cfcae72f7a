"""Ops that a user might write, and operands with awkward names: their kernels against the oracle."""

from __future__ import annotations

import pytest

from specc.evidence.execute import TritonExecutor
from specc.targets.triton.target import run
from tests.lower.cases import Case
from tests.targets.user_ops import ALL, assert_agrees


@pytest.mark.parametrize("case", ALL, ids=lambda c: c.name)
def test_the_kernel_agrees_with_the_definition(case: Case) -> None:
    assert_agrees(case, TritonExecutor(), lambda kernel, inputs: run(kernel, inputs)[0])
