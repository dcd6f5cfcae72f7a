"""Prefill kernels that give up their fast way are reported, unless the data calls for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specc.evidence.case import Case
from specc.evidence.check import Executor, try_case
from specc.evidence.detour import stays_finite
from specc.evidence.draw import draw
from specc.evidence.execute import CudaExecutor, TritonExecutor
from specc.kernels import Kernel
from specc.targets.cuda.emit import emit as emit_cuda
from specc.targets.cuda.tiles import CPU
from specc.targets.triton.emit import emit as emit_triton
from tests.evidence.planted import HEADS, NODES, Node, library, swap
from tests.targets.cuda.storage import single

CAUSAL = NODES["causalGQA"].kernel(library())
EVEN = Node("causalGQA", HEADS, ()).kernel(library(swap("l ≤ pos[t])", "l ≤ pos[t] and l % 2 == 0)")))
"""A row sees every second key."""
FEW = Case("float32", (("L", 5), ("T", 2)), "steps", places=(3, 4))
FAST = {"cuda": "__syncthreads_or(!good)", "triton": 'tl.abs(tl.sum(acc)) < float("inf")'}
NEVER_FAST = {"cuda": "__syncthreads_or(true)", "triton": "first < 0"}


def texts(target: str, kernel: Kernel) -> str:
    return single(emit_cuda(kernel, arch=CPU), "float32") if target == "cuda" else emit_triton(kernel)


def executor(target: str, kernel: Kernel, text: str) -> Executor:
    given = {kernel.name: text}
    return CudaExecutor(given) if target == "cuda" else TritonExecutor(given)


@pytest.mark.parametrize("target", FAST)
def test_a_kernel_that_is_never_fast_is_reported_where_all_is_finite(target: str) -> None:
    text = texts(target, CAUSAL)
    assert FAST[target] in text
    right, slow = (executor(target, CAUSAL, t) for t in (text, text.replace(FAST[target], NEVER_FAST[target])))
    assert not try_case(CAUSAL, right, FEW).failed
    found = try_case(CAUSAL, slow, FEW)
    assert found.failed and "which took keys one by one, though every operand is finite" in found.describe()
    spoiled = replace(FEW, family="spoiled")
    assert not try_case(CAUSAL, right, spoiled).failed
    assert not try_case(CAUSAL, slow, spoiled).failed


@pytest.mark.parametrize("target", FAST)
def test_keys_between_those_that_are_seen_may_hold_anything_and_hold_numbers_too(target: str) -> None:
    right = executor(target, EVEN, texts(target, EVEN))
    assert not any(try_case(EVEN, right, replace(FEW, seed=seed)).failed for seed in (0, 1))
    slow = executor(target, EVEN, texts(target, EVEN).replace(FAST[target], NEVER_FAST[target]))
    assert [try_case(EVEN, slow, replace(FEW, seed=seed)).failed for seed in (0, 1)] == [False, True]


def capped(function: str) -> Kernel:
    """Attention whose scores go through a function of the user's."""
    dot = "Σ_e q[t, h, e] · k[l, g, e]"
    score = swap(f"let z[l] = scale · {dot}", f"let z[l] = {function}({dot})")
    define = swap("op causalGQA(", f"def {function}(x) = 30 · tanh(x / 30)\n\nop causalGQA(")
    return Node("causalGQA", HEADS, ()).kernel(library(lambda text: define(score(text))))


@pytest.mark.parametrize("function", ["cap_by_key", "causalgqa_by_key", "causalgqa_kernel_by_key"])
@pytest.mark.parametrize("target", FAST)
def test_a_function_of_the_users_is_not_taken_for_the_slow_way(target: str, function: str) -> None:
    kernel = capped(function)
    text = texts(target, kernel)
    assert not try_case(kernel, executor(target, kernel, text), FEW).failed
    assert try_case(kernel, executor(target, kernel, text.replace(FAST[target], NEVER_FAST[target])), FEW).failed


def test_what_calls_for_the_slow_way() -> None:
    def stays(kernel: Kernel, case: Case) -> bool:
        return stays_finite(kernel, draw(kernel, case), case)

    assert all(stays(CAUSAL, replace(FEW, family=f)) for f in ("steps", "edges", "selected", "deep", "heads", "peaks"))
    assert stays(CAUSAL, replace(FEW, family="normal", magnitude=1e4))
    assert not stays(CAUSAL, replace(FEW, family="normal", magnitude=1e38)), "sums of such values overflow"
    assert not stays(CAUSAL, replace(FEW, family="spoiled"))
    assert not stays(EVEN, FEW), "a key that no row sees lies between others, and holds NaN"
    assert stays(EVEN, replace(FEW, seed=1)), "there it holds a number"
    assert not stays(NODES["rmsnorm"].kernel(library()), Case("float32", (("T", 2),)))
