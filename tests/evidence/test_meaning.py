"""Meaning apart from rounding: the same kernels in real arithmetic agree with the oracle to float64's own precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from specc.evidence.draw import draw
from specc.evidence.store import exact_values, stored
from specc.evidence.strategy import pinned
from specc.oracle import evaluate
from specc.targets.triton.target import run
from tests.evidence.planted import NODES, library

REAL = 1e-12
"""What widened kernels are held to: thousands of float64 operations, none of float32."""


@pytest.mark.parametrize("name", NODES)
def test_a_widened_kernel_equals_the_oracle(name: str) -> None:
    kernel = NODES[name].kernel(library())
    case = replace(next(c for c in pinned(kernel) if c.family == "normal"), dtype="float32", seed=7)
    if name == "rope":  # float64 itself knows a large angle to 3e-11 only
        case = replace(case, places=(0, 1, 5, 17))
    drawn = draw(kernel, case)
    outputs, _ = run(kernel, stored(kernel, drawn, case, widen=True), widen=True)
    oracle = evaluate(kernel.formula, exact_values(drawn), dict(case.sizes))
    for result, tensor in outputs.items():
        assert tensor.dtype is torch.float64
        distance = np.max(np.abs(tensor.numpy() - oracle[result]))
        assert distance <= REAL * np.max(np.abs(oracle[result]))
