"""Ops that a user might write, and operands with awkward names: their CUDA kernels, run on the CPU, against the oracle,
with no template of their own."""

from __future__ import annotations

import pytest

from specc.evidence.execute import CudaExecutor
from specc.kernels import Kernel
from specc.targets.cuda.emit import emit
from specc.targets.cuda.target import run
from specc.targets.cuda.tiles import CPU
from tests.lower.cases import Case
from tests.targets.cuda.storage import single
from tests.targets.user_ops import ALL, Tensors, assert_agrees


@pytest.mark.parametrize("case", ALL, ids=lambda c: c.name)
def test_the_kernel_agrees_with_the_definition(case: Case) -> None:
    def run_single(kernel: Kernel, inputs: Tensors) -> Tensors:
        return run(kernel, inputs, text=single(emit(kernel, arch=CPU), "float32"))[0]

    assert_agrees(case, CudaExecutor(), run_single)
