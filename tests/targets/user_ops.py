"""Ops that a user might write, and operands with awkward names, run by a target and held against the oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import torch

from specc.kernels import Kernel
from specc.oracle import evaluate
from tests.lower.cases import Case, operands
from tests.lower.test_names import CASES
from tests.lower.user_ops import USER

SIZES = {"T": 3, "L": 7, "B": 2, "S": 5, "R0": 2, "R1": 3}
ALL = [*USER, *CASES]
Tensors = Mapping[str, torch.Tensor]


def assert_agrees(case: Case, run: Callable[[Kernel, Tensors], Tensors]) -> None:
    """What `run` gives of the kernel of `case`, in float32, is what the oracle gives."""
    kernel = replace(case.kernel(), name="node")
    drawn = operands(kernel.formula, SIZES, 0, case)
    stored = {n: torch.tensor(a, dtype=torch.float32 if a.dtype.kind == "f" else torch.int32) for n, a in drawn.items()}
    right = evaluate(kernel.formula, {n: t.numpy() for n, t in stored.items()}, SIZES)
    found = run(kernel, {o.name: stored[o.name] for o in kernel.operands if not o.output})
    for name, expected in right.items():
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(found[name].double().numpy(), expected, rtol=2e-5, atol=2e-5 * scale)
