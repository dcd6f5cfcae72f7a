"""Ops that a user might write, and operands with awkward names, run by a target and held against the oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from specc.bounds import NotSupported
from specc.evidence.case import Case as Drawn
from specc.evidence.check import Executor
from specc.evidence.judge import VACUOUS, judge
from specc.kernels import Kernel
from specc.oracle import evaluate
from tests.lower.cases import Case, operands
from tests.lower.test_names import CASES
from tests.lower.user_ops import USER

SIZES = {"T": 3, "L": 7, "B": 2, "S": 5, "R0": 2, "R1": 3, "__1": 3}
ALL = [*USER, *CASES]
Tensors = Mapping[str, torch.Tensor]
Arrays = Mapping[str, npt.NDArray[np.float64]]


def assert_agrees(case: Case, executor: Executor, run: Callable[[Kernel, Tensors], Tensors]) -> None:
    """What `run` gives of the kernel of `case`, in float32, lies within the bound derived for the target of `executor`;
    where none is derived, or one too wide to say anything, integers give the very integers of the oracle."""
    kernel = replace(case.kernel(), name="node")
    drawn = operands(kernel.formula, SIZES, 0, case)
    if not _within_bound(kernel, executor, run, drawn):
        exact, found = _run(kernel, run, {n: np.rint(3 * a) for n, a in drawn.items()})
        for name, expected in evaluate(kernel.formula, exact, SIZES).items():
            np.testing.assert_array_equal(found[name], expected)


def _within_bound(kernel: Kernel, executor: Executor, run: Callable[[Kernel, Tensors], Tensors], drawn: Arrays) -> bool:
    """Whether there is a sharp bound; then every element is within it."""
    numerics = executor.numerics(kernel, Drawn("float32", tuple(SIZES.items())))
    exact, found = _run(kernel, run, drawn)
    try:
        verdict = judge(kernel, exact, found, dict.fromkeys(found), numerics, SIZES, "float32")
    except NotSupported:
        return False
    assert not verdict.count, "; ".join(m.describe() for m in verdict.mismatches)
    return verdict.vacuity is None or verdict.vacuity < VACUOUS


def _run(kernel: Kernel, run: Callable[[Kernel, Tensors], Tensors], drawn: Arrays) -> tuple[Arrays, Arrays]:
    """The operands as stored, and the results."""
    types = {"f": torch.float32, "i": torch.int32}
    stored = {n: torch.tensor(a, dtype=types[a.dtype.kind]) for n, a in drawn.items()}
    found = run(kernel, {o.name: stored[o.name] for o in kernel.operands if not o.output})
    return {n: t.numpy() for n, t in stored.items()}, {n: t.double().numpy() for n, t in found.items()}
