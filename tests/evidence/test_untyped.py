"""An op without real operands but accumulators: what its results are stored in is up to the case, or to the caller."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import specc
from specc.evidence.case import Case
from specc.evidence.check import Executor, check_kernel, try_case
from specc.evidence.draw import draw
from specc.evidence.execute import CudaExecutor, TritonExecutor
from specc.evidence.store import placed_results, stored
from specc.evidence.strategy import DTYPES
from specc.ir import Role
from specc.targets.cuda import target as cuda
from specc.targets.cuda.device import prepare
from specc.targets.cuda.emit import emit
from specc.targets.triton import target as triton
from tests.oracle.formulas import formula_of
from tests.targets.cuda.generated import custom
from tests.targets.triton.generated import kernel_of

ONE_HOT = custom("op f(n[T]: index; H: nat) -> y[T, H]\n  y[t, i] = if i == n[t] then 1 else 0\n", H=20)
KEPT = kernel_of(
    formula_of("op half(x[T, H]; H: nat) -> y[T, H]\n  y[t, i] = x[t, i] / 3\n", {"H": 20}, 0),
    roles={"x": Role.ACCUMULATOR, "y": Role.ACTIVATION},
)
"""Its operand is stored in float32 whatever the results are stored in."""
EXECUTORS = (TritonExecutor(), CudaExecutor())


@pytest.mark.parametrize("executor", EXECUTORS, ids=lambda e: str(e.name))
def test_it_is_verified_in_every_type(executor: Executor) -> None:
    report = check_kernel(ONE_HOT, executor, examples=2, number=1)
    assert str(report.status) == "VERIFIED" and sorted(report.dtypes) == sorted(DTYPES)


@pytest.mark.parametrize("executor", EXECUTORS, ids=lambda e: str(e.name))
def test_so_is_one_of_accumulators(executor: Executor) -> None:
    report = check_kernel(KEPT, executor, examples=2, number=1)
    assert str(report.status) == "VERIFIED" and sorted(report.dtypes) == sorted(DTYPES)
    case = Case("float16", (("T", 3),), "integers")
    assert placed_results(KEPT, case)["y"].dtype is torch.float16


@pytest.mark.parametrize("executor", EXECUTORS, ids=lambda e: str(e.name))
@pytest.mark.parametrize("moved", ["", "y", "n"])
def test_a_case_may_move_its_operands(executor: Executor, moved: str) -> None:
    case = Case("float16", (("T", 3),), "integers", pad=3, offset=1, moved=moved)
    assert not try_case(ONE_HOT, executor, case).failed


@pytest.mark.parametrize("target", [triton, cuda], ids=lambda t: str(t.name))
@pytest.mark.parametrize("dtype", DTYPES)
def test_results_are_stored_as_the_case_says(target: object, dtype: str) -> None:
    case = Case(dtype, (("T", 3),), "integers")
    tensors = stored(ONE_HOT, draw(ONE_HOT, case), case)
    found = target.run(ONE_HOT, {**tensors, **placed_results(ONE_HOT, case)})[0]["y"]  # type: ignore[attr-defined]
    assert found.dtype is getattr(torch, dtype) and found.sum() == 3


def test_where_nothing_is_said_results_are_float32() -> None:
    tensors = {"n": torch.tensor([3, 1])}
    assert cuda.run(ONE_HOT, tensors)[0]["y"].dtype is torch.float32
    assert cuda.run(ONE_HOT, tensors, widen=True)[0]["y"].dtype is torch.float64
    assert prepare(ONE_HOT, emit(ONE_HOT), tensors)[0]["y"].dtype is torch.float32
    outputs, (launch,), _ = prepare(ONE_HOT, emit(ONE_HOT), tensors, dtype="bfloat16")
    assert outputs["y"].dtype is torch.bfloat16 and "bfloat16" in launch.kernel


@pytest.mark.parametrize("target", ["torch", "triton", "cuda"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_node_runs_in_every_type(target: str, dtype: str, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "examples" / "tiny.spec").read_text(encoding="utf-8")
    (embed,) = (line for line in text.splitlines() if line.startswith("  | embed "))
    head = '  | lm_head | lmHead | - | | hn -> logits | w[vocab, hidden] = "head.weight" |'
    lines = [head if line.startswith("  | lm_head ") else line for line in text.splitlines()]
    rows = "\n".join("  | embed | third | - | H=hidden | tokens -> h0 | |" if line == embed else line for line in lines)
    own = (Path(__file__).parents[2] / "docs" / "examples" / "own.ops").read_text(encoding="utf-8")
    formula = "op third(n[T]: index; H: nat) -> y[T, H]\n  y[t, i] = if i == n[t] then 1/3 else 0\n"
    (tmp_path / "own.ops").write_text(f"{own}\n{formula}")
    (tmp_path / "t.spec").write_text(f"{rows}\n")
    found = specc.load(tmp_path / "t.spec").node("embed").run(target, dtype=dtype, n=np.array([3, 1]))["y"]
    assert found.sum() == 2 * float(torch.tensor(1 / 3).to(getattr(torch, dtype)))
