"""Ops that a user might write, and operands with awkward names: their CUDA kernels, run on the CPU, against the oracle,
with no template of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from specc.oracle import evaluate
from specc.targets.cuda.emit import emit
from specc.targets.cuda.target import run
from specc.targets.cuda.tiles import CPU
from tests.lower.cases import Case, operands
from tests.lower.test_names import CASES
from tests.lower.user_ops import USER
from tests.targets.cuda.storage import single

SIZES = {"T": 3, "L": 7, "B": 2, "S": 5, "R0": 2, "R1": 3}


@pytest.mark.parametrize("case", [*USER, *CASES], ids=lambda c: c.name)
def test_the_kernel_agrees_with_the_definition(case: Case) -> None:
    kernel = replace(case.kernel(), name="node")
    drawn = operands(kernel.formula, SIZES, 0, case)
    stored = {n: torch.tensor(a, dtype=torch.float32 if a.dtype.kind == "f" else torch.int32) for n, a in drawn.items()}
    right = evaluate(kernel.formula, {n: t.numpy() for n, t in stored.items()}, SIZES)
    inputs = {o.name: stored[o.name] for o in kernel.operands if not o.output}
    found, _ = run(kernel, inputs, text=single(emit(kernel, arch=CPU), "float32"))
    for name, expected in right.items():
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(found[name].double().numpy(), expected, rtol=2e-5, atol=2e-5 * scale)
