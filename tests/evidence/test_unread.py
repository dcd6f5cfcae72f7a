"""Ops with an operand that their formula, or their kernel, does not read: the suite gives it to whom it concerns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specc.evidence.check import Executor, Status, check_kernel
from specc.evidence.draw import draw
from specc.evidence.execute import CudaExecutor, TorchExecutor, TritonExecutor
from specc.evidence.store import stored
from specc.evidence.strategy import pinned
from specc.kernels import Kernel
from specc.targets.cuda.emit import emit
from specc.targets.cuda.tiles import CPU
from tests.lower.cases import kernel_of
from tests.lower.user_ops import USER
from tests.targets.cuda.storage import single

KERNELS = [replace(c.kernel(), name=c.name) for c in USER]
UNREAD = {k.name: replace(k, name="node") for k in KERNELS if len(k.formula.inputs) >= len(k.operands)}


def test_these_ops_read_no_positions() -> None:
    assert set(UNREAD) == {
        "no predicate", "position of the row", "aligned at the end", "nothing", "heads of their own", "scaled result",
    }  # fmt: skip


def status(kernel: Kernel, executor: Executor) -> Status:
    report = check_kernel(kernel, executor, examples=1, dtypes=("float32",))
    assert report.counterexample is None, report.counterexample.describe()
    return report.status


@pytest.mark.parametrize("target", ["triton", "torch", "cuda"])
@pytest.mark.parametrize("name", UNREAD)
def test_an_op_that_reads_no_positions_is_checked(name: str, target: str) -> None:
    kernel = UNREAD[name]
    texts = {kernel.name: single(emit(kernel, arch=CPU), "float32")} if target == "cuda" else {}
    known = {"triton": TritonExecutor(), "torch": TorchExecutor(), "cuda": CudaExecutor(texts)}
    right = Status.UNKNOWN if name == "nothing" else Status.VERIFIED  # there all results are 0, whatever is computed
    assert status(kernel, known[target]) is right


def test_an_unread_operand_of_a_size_of_its_own_is_drawn() -> None:
    kernel = kernel_of("op f(x[T, H], z[U, H]; H: nat) -> y[T, H]\n  y[t, i] = x[t, i] + 1", H=5)
    assert kernel.sizes == ("T",)
    case = next(c for c in pinned(kernel) if c.family == "normal")
    drawn = draw(kernel, case)
    assert list(drawn) == ["x", "z"] and drawn["z"].exact.shape == (1, 5)
    assert stored(kernel, drawn, case)["z"].shape == (1, 5)
    for executor in (TritonExecutor(), TorchExecutor()):
        assert status(kernel, executor) is Status.VERIFIED
