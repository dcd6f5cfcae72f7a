"""Generated files of test kernels, run on the CPU against the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from specc.evidence.case import Case
from specc.evidence.check import Report, check_kernel, try_case
from specc.evidence.execute import CudaExecutor
from specc.evidence.strategy import pinned
from specc.kernels import Kernel
from specc.targets.cuda.emit import emit
from specc.targets.cuda.run import run_text
from tests.targets.triton.generated import custom, library_op, operands, oracle, shipped

__all__ = ["assert_verified", "custom", "edited", "faults", "library_op", "operands", "oracle", "results", "shipped"]


def assert_verified(kernel: Kernel, examples: int = 4) -> Report:
    """The property suite finds nothing wrong with the kernel's generated file."""
    report = check_kernel(kernel, CudaExecutor(), examples)
    assert report.counterexample is None, report.counterexample.describe()
    assert str(report.status) == "VERIFIED", report.reason
    return report


def results(kernel: Kernel, tensors: Mapping[str, torch.Tensor], **options: Any) -> dict[str, torch.Tensor]:
    return run_text(kernel, emit(kernel), tensors, **options)[0]


def edited(kernel: Kernel, old: str, new: str) -> str:
    """The kernel's file with one edit, which must fit."""
    text = emit(kernel)
    assert old in text, text
    return text.replace(old, new)


def faults(kernel: Kernel, text: str, cases: tuple[Case, ...] = ()) -> list[str]:
    """What the suite says of an edited file, for each case that fails."""
    executor = CudaExecutor({kernel.name: text})
    found = [try_case(kernel, executor, case) for case in (*pinned(kernel), *cases)]
    return [o.describe() for o in found if o.failed]
