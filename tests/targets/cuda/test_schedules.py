"""The property suite on CUDA kernels of small constants, a schedule or trap each; meaning apart from rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from specc.evidence.check import Status, check_kernel
from specc.evidence.draw import draw
from specc.evidence.execute import CudaExecutor
from specc.evidence.store import exact_values, stored
from specc.evidence.strategy import pinned
from specc.kernels import Kernel
from specc.oracle import evaluate
from specc.targets.cuda.target import run
from tests.evidence.planted import NODES as SHIPPED
from tests.evidence.planted import Node, library, nat
from tests.evidence.test_meaning import REAL

NODES = {
    "lmHead": SHIPPED["lmHead"],
    "linear, no side a multiple of a vector": Node("linear", {"K": nat(77), "N": nat(37)}),
    "gateUp, weights in two operands": Node("gateUp", {"K": nat(200), "I": nat(65)}),
}


def kernel(name: str) -> Kernel:
    return NODES[name].kernel(library())


@pytest.mark.parametrize("name", NODES)
def test_a_kernel_is_verified(name: str) -> None:
    report = check_kernel(kernel(name), CudaExecutor(), examples=3, number=2)
    assert report.status is Status.VERIFIED, report.counterexample or report.reason


@pytest.mark.slow
@pytest.mark.parametrize("name", NODES)
def test_a_widened_kernel_equals_the_oracle(name: str) -> None:
    own = kernel(name)
    case = replace(next(c for c in pinned(own) if c.family == "normal"), dtype="float32", seed=7)
    drawn = draw(own, case)
    outputs, _ = run(own, stored(own, drawn, case, widen=True), widen=True)
    oracle = evaluate(own.formula, exact_values(drawn), dict(case.sizes))
    for result, tensor in outputs.items():
        assert tensor.dtype is torch.float64
        distance = np.max(np.abs(tensor.numpy() - oracle[result]))
        assert distance <= REAL * np.max(np.abs(oracle[result]))
