"""Triton and CUDA on every node of Gemma 4: two lowerings of one formula agree within the sum of their bounds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import specc
from specc.bounds.formats import store_error
from specc.evidence.case import Case
from specc.evidence.check import Executor
from specc.evidence.draw import draw
from specc.evidence.execute import CudaExecutor, TritonExecutor
from specc.evidence.judge import expected
from specc.evidence.store import exact_values, stored
from specc.evidence.strategy import pinned
from specc.kernels import Kernel
from specc.resources import shipped
from specc.targets.cuda.emit import emit
from specc.targets.cuda.tiles import CPU
from tests.targets.cuda.storage import single

SIZES = {"hidden": 64, "vocab": 96, "inter": 80, "heads": 4, "sliding__D": 32, "global__D": 48, "kv_heads": 2}


@cache
def kernels() -> dict[str, Kernel]:
    """By name, those that differ in more than that."""
    model = specc.load(shipped("specs") / "gemma4.spec").reduced(**SIZES)
    found = {replace(k, name="", keys=()): k for node in model.nodes for k in node.kernels()}
    return {k.name: k for k in found.values()}


def results(kernel: Kernel, executor: Executor, case: Case) -> tuple[dict[str, object], dict[str, object]]:
    """By name: all elements of what a target returned, and how far each may be off."""
    drawn = draw(kernel, case)
    ran = executor.run(kernel, stored(kernel, drawn, case), case)
    oracle, errors = expected(kernel, exact_values(drawn), executor.numerics(kernel, case), dict(case.sizes))
    off = {n: store_error(oracle[n], errors[n], kernel.operand(n).stored(case.dtype)) for n in ran.outputs}
    assert all(w is None or len(w) == ran.outputs[n].size for n, w in ran.written.items())
    return dict(ran.outputs), dict(off)


def assert_agree(name: str, dtype: str) -> None:
    kernel = kernels()[name]
    case = next(c for c in pinned(kernel, (dtype,)) if c.family == "normal")
    cuda = CudaExecutor({kernel.name: single(emit(kernel, arch=CPU), dtype)})
    (ours, ours_off), (theirs, theirs_off) = (results(kernel, e, case) for e in (cuda, TritonExecutor()))
    for n in ours:
        distance = np.abs(np.asarray(ours[n]) - np.asarray(theirs[n]))
        assert np.all(distance <= np.asarray(ours_off[n]) + np.asarray(theirs_off[n])), float(np.max(distance))


@pytest.mark.parametrize("name", kernels())
def test_triton_and_cuda_agree(name: str) -> None:
    assert_agree(name, "bfloat16")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", kernels())
def test_triton_and_cuda_agree_in_other_storage_types(name: str, dtype: str) -> None:
    assert_agree(name, dtype)
