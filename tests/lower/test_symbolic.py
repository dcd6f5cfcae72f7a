"""A generated chunked kernel, run on symbols, is the recurrence for every chunk size: an identity of polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

from specc.kernels import Kernel
from specc.ops import Formula
from tests.lower.cases import Case, kernel_of
from tests.lower.symbolic import evaluate, run

LENGTHS = (1, 2, 3, 4)
SIZES = {"Hv": 2, "Hk": 1, "Dk": 2, "Dv": 2}
OWN = (
    "op f(q[T, H, K], k[T, H, K], p[T, H, K], v[T, H, V], c[T, H], b[T, H]) -> o[T, H, V]\n"
    "  rec R[t < T, h < H, a < V, i < K] from 0 =\n    {0}\n"
    "  o[t, h, a] = v[t, h, a] · Σ_i R[t, h, a, i] · q[t, h, i]\n"
)
STEPS = {
    "linear attention": "R[t - 1, h, a, i] + v[t, h, a] · k[t, h, i]",
    "a decay": "c[t, h] · R[t - 1, h, a, i] + v[t, h, a] · k[t, h, i]",
    "other vectors": "c[t, h] · (R[t - 1, h, a, i] - b[t, h] · (Σ_j R[t - 1, h, a, j] · p[t, h, j]) · q[t, h, i])"
    " + v[t, h, a] · k[t, h, i]",
}


def symbols(formula: Formula, sizes: dict[str, int]) -> dict[str, Any]:
    found = {}
    for t in formula.inputs:
        shape = [sizes[d.name] if hasattr(d, "name") else int(d.value) for d in t.dims]  # type: ignore[union-attr]
        names = [f"{t.name}_{'_'.join(map(str, place))}" for place in np.ndindex(*shape)]
        found[t.name] = np.array([sympy.Symbol(n) for n in names], object).reshape(shape)
    return found


def assert_equal(kernel: Kernel, tokens: int, chunk: int) -> None:
    sizes = {"T": tokens}
    tensors = symbols(kernel.formula, sizes)
    found, right = run(kernel, tensors, sizes, CHUNK=chunk, BLOCK_V=2), evaluate(kernel.formula, tensors, sizes)
    for name, expected in right.items():
        for place in np.ndindex(*expected.shape):
            assert sympy.expand(found[name][place] - expected[place]) == 0, (name, place)


@pytest.mark.parametrize("chunk", LENGTHS)
@pytest.mark.parametrize("tokens", LENGTHS)
def test_the_chunked_delta_rule_is_the_recurrence(tokens: int, chunk: int) -> None:
    kernel = Case("gatedDeltaRule", "recurrence", {**SIZES, "Hv": 1}, given=("S0",)).kernel()
    assert_equal(kernel, tokens, chunk)


@pytest.mark.parametrize("chunk", [2, 3])
@pytest.mark.parametrize("step", STEPS)
def test_other_recurrences_in_chunks_are_themselves(step: str, chunk: int) -> None:
    assert_equal(kernel_of(OWN.format(STEPS[step]), H=1, K=2, V=2), 4 if step != "other vectors" else 3, chunk)


def test_value_heads_share_keys_in_blocks() -> None:
    assert_equal(Case("gatedDeltaRule", "recurrence", {**SIZES, "Hk": 2, "Hv": 4}, given=("S0",)).kernel(), 1, 1)


def test_steps_one_after_another_are_the_recurrence() -> None:
    """`gdnStep` on its own results, four times."""
    step = Case("gdnStep", "", {**SIZES, "Hv": 1}).kernel().lowered
    whole = Case("gatedDeltaRule", "recurrence", {**SIZES, "Hv": 1}, given=("S0",)).formula()
    tensors = symbols(whole, {"T": 4})
    right, state, outputs = evaluate(whole, tensors, {"T": 4}), tensors["S0"][None], []
    for t in range(4):
        now = {n: tensors[n][t : t + 1] for n in ("q", "k", "v", "alpha", "beta")}
        found = evaluate(step, {"S0": state, **now}, {"B": 1})
        state = found["S"]
        outputs.append(found["o"][0])
    for mine, theirs in ((state[0], right["S"]), (np.stack(outputs), right["o"])):
        for place in np.ndindex(*theirs.shape):
            assert sympy.expand(mine[place] - theirs[place]) == 0


def test_a_kernel_with_another_sign_is_not_the_recurrence() -> None:
    kernel = Case("gatedDeltaRule", "recurrence", {**SIZES, "Hv": 1}, given=("S0",)).kernel()
    tensors = symbols(kernel.formula, {"T": 2})
    found = run(kernel, tensors, {"T": 2}, CHUNK=2, BLOCK_V=2)["S"]
    tensors["beta"] = -tensors["beta"]
    assert sympy.expand(found[0, 0, 0] - evaluate(kernel.formula, tensors, {"T": 2})["S"][0, 0, 0]) != 0
