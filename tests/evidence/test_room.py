"""A case that memory does not suffice for: nothing is said of its kernel, and why."""

from __future__ import annotations

import errno
import tracemalloc
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from specc.bounds import Numerics
from specc.cli import run
from specc.evidence import check
from specc.evidence.case import Case
from specc.evidence.check import Executor, Ran, Report, Status, check_kernel
from specc.evidence.execute import CudaExecutor, TorchExecutor, TritonExecutor
from specc.kernels import Kernel
from tests.lower.cases import kernel_of

SIDE = 1 << 15
OPERAND = "op f(x[.., A, B, C]; A: nat, B: nat, C: nat) -> y[.., A, B, C]\n  y[.., a, b, c] = 2 · x[.., a, b, c]"
RESULT = "op f(x[.., A], z[.., B]; A: nat, B: nat) -> y[.., A, B]\n  y[.., a, b] = x[.., a] · z[.., b]"
SMALL = kernel_of("op f(x[.., A]; A: nat) -> y[.., A]\n  y[.., a] = 2 · x[.., a]", lead=1, A=7)


@pytest.mark.parametrize("executor", [TritonExecutor(), TorchExecutor(), CudaExecutor()], ids=lambda e: e.name)
@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        (kernel_of(OPERAND, lead=1, A=SIDE, B=SIDE, C=1024), "`x` of [4, 32768, 32768, 1024], 32 TiB in float64"),
        (kernel_of(RESULT, lead=1, A=SIDE * 64, B=SIDE * 64), "`y` of [4, 2097152, 2097152], 128 TiB in float64"),
    ],
    ids=["operand", "result"],
)
def test_what_is_too_large_for_this_machine_is_not_even_drawn(executor: Executor, kernel: Kernel, told: str) -> None:
    tracemalloc.start()
    report = check_kernel(kernel, executor, examples=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert_unknown(report, told)
    assert peak < 1 << 24


def assert_unknown(report: Report, told: str) -> None:
    assert report.status is Status.UNKNOWN and report.counterexample is None
    assert report.reason.startswith("memory does not suffice: ") and told in report.reason, report.reason


class Lacking:
    """A target that runs out of memory."""

    name, evidence = "torch", ""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def run(self, kernel: Kernel, tensors: Mapping[str, torch.Tensor], case: Case) -> Ran:
        raise self.error

    def numerics(self, kernel: Kernel, case: Case) -> Numerics:
        raise AssertionError("no case is judged where `run` raises")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 512. GiB for an array"),
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
    ids=repr,
)
def test_a_target_without_memory_is_not_wrong(error: Exception) -> None:
    assert_unknown(check_kernel(SMALL, Lacking(error), examples=1), "`x` of [4, 7], 224 bytes in float64")


@pytest.mark.parametrize("place", ["stored", "snapshot", "judge"])
def test_memory_that_lacks_around_a_target_is_no_traceback(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 512. GiB for an array")

    monkeypatch.setattr(check, place, lacking)
    assert_unknown(check_kernel(SMALL, TorchExecutor(), examples=1), "Unable to allocate 512. GiB for an array; ")


TINY = Path(__file__).parents[2] / "docs" / "examples" / "tiny.spec"


def test_an_evaluation_without_memory_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def lacking(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 512. GiB for an array")

    monkeypatch.setattr("specc.oracle.evaluate", lacking)
    np.savez(tmp_path / "in.npz", x=np.ones((2, 96)), w=np.ones(96))
    assert run(["eval", f"{TINY}:layers[0].norm1", "--inputs", str(tmp_path / "in.npz")]) == 2
    said = capsys.readouterr()
    assert said.err == "error[E510]: memory does not suffice: Unable to allocate 512. GiB for an array\n"
    assert said.out == ""
