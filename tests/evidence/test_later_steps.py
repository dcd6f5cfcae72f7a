"""What a later step of a sequence holds, be it NaN or infinite, changes no bit of the steps before it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

from specc.kernels import Kernel
from specc.oracle import evaluate
from tests.cases.support import EVERY, Array, Trial
from tests.cases.test_deltanet import core
from tests.lower.cases import operands
from tests.targets.cuda.test_schedules import recurrence

READ = {
    "gatedDeltaRule": "q k v alpha beta",
    "recurrence that looks for another vector": "q k p v c",
    "recurrence that takes nothing away": "q k v c",
}
TOKENS = 21
LATER = 5
"""A step in the middle of the first chunk."""


@cache
def kernel(name: str) -> Kernel:
    return core() if name == "gatedDeltaRule" else recurrence(name)


@cache
def drawn(name: str) -> Mapping[str, Array]:
    found = operands(kernel(name).formula, {"T": TOKENS}, 1)
    return {n: np.float32(x / 4).astype(np.float64) for n, x in found.items()}


def outputs(name: str, target: str, tensors: Mapping[str, Array]) -> dict[str, Array]:
    return Trial(kernel(name), tensors, "float32").outputs(target)


@cache
def clean(name: str, target: str) -> dict[str, Array]:
    return outputs(name, target, drawn(name))


@pytest.mark.parametrize("target", EVERY)
@pytest.mark.parametrize(("name", "operand"), [(n, o) for n, some in READ.items() for o in some.split()])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_later_step_changes_nothing_before_it(name: str, operand: str, target: str) -> None:
    tensors = {n: x.copy() for n, x in drawn(name).items()}
    later = tensors[operand][LATER]
    later[(0,) * later.ndim], later[(-1,) * later.ndim] = np.inf, np.nan
    found, right = outputs(name, target, tensors), evaluate(kernel(name).formula, tensors, {"T": TOKENS})
    assert np.array_equal(found["o"][:LATER], clean(name, target)["o"][:LATER])
    for result, value in right.items():
        assert np.array_equal(np.isfinite(found[result]), np.isfinite(value)), result
