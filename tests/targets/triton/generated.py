"""Kernels for tests, and their generated files run in the interpreter against the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from specc.kernels import Kernel
from specc.lower.lower import Setting, lower_formula
from specc.ops import Formula, Library, Num, Size, Sort
from specc.oracle import evaluate
from specc.targets.triton.interpret import Trace
from specc.targets.triton.target import run
from tests.oracle.formulas import beside_shipped, close, formula_of

Array = npt.NDArray[Any]
STORAGE = (torch.float32, torch.float16, torch.bfloat16)
ROUNDING = {torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}
"""Distance of neighbouring numbers near 1."""


def kernel_of(formula: Formula, name: str = "node", **setting: Any) -> Kernel:
    """The kernel of a formula, as node `name`."""
    return lower_formula(formula, Setting(name, **setting))


@cache
def shipped(op: str, lead: int = 1, given: tuple[str, ...] = (), **constants: Any) -> Kernel:
    """The kernel of a shipped op."""
    return kernel_of(close(op, constants, lead, given))


@cache
def custom(text: str, lead: int = 0, **constants: Any) -> Kernel:
    """The kernel of a text's only op."""
    return kernel_of(formula_of(text, constants, lead))


def library_op(text: str, op: str, lead: int = 0, **constants: Any) -> Kernel:
    """The kernel of an op in a text that builds on the shipped library."""
    library: Library = beside_shipped(text)
    return kernel_of(close(op, constants, lead, library=library))


def operands(
    kernel: Kernel,
    sizes: Mapping[str, int],
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    indices: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, torch.Tensor]:
    """Random inputs of run-time `sizes`; `indices` gives the values of integer operands."""
    random = torch.Generator().manual_seed(seed)
    made: dict[str, torch.Tensor] = {}
    for o in kernel.operands:
        shape = [int(d.value) if isinstance(d, Num) else sizes[d.name] for d in o.dims if isinstance(d, Num | Size)]
        if o.sort is Sort.INDEX:
            made[o.name] = torch.tensor((indices or {})[o.name], dtype=torch.int32).reshape(shape)
        elif not o.output:
            made[o.name] = torch.randn(shape, generator=random).to(dtype)
    return made


def oracle(kernel: Kernel, tensors: Mapping[str, torch.Tensor]) -> dict[str, Array]:
    """The formula's results in float64."""
    arrays = {n: t.to(torch.float64).numpy() if t.is_floating_point() else t.numpy() for n, t in tensors.items()}
    names = {t.name for t in kernel.formula.inputs}
    return evaluate(kernel.formula, {n: a for n, a in arrays.items() if n in names})


@dataclass(frozen=True)
class Ran:
    """Results of the kernel and of the oracle."""

    outputs: dict[str, torch.Tensor]
    expected: dict[str, Array]
    trace: Trace

    def error(self, name: str) -> Array:
        """Distance from the oracle."""
        difference: Array = np.abs(self.outputs[name].to(torch.float64).numpy() - self.expected[name])
        return difference


def ran(kernel: Kernel, tensors: Mapping[str, torch.Tensor], **options: Any) -> Ran:
    """Runs the kernel's generated file."""
    outputs, trace = run(kernel, tensors, **options)
    return Ran(outputs, oracle(kernel, tensors), trace)


def results(kernel: Kernel, tensors: Mapping[str, torch.Tensor], **options: Any) -> dict[str, torch.Tensor]:
    """What the generated file computes, for inputs that the formula itself does not take."""
    return run(kernel, tensors, **options)[0]


def assert_right(
    kernel: Kernel, tensors: Mapping[str, torch.Tensor], inner: float = 8.0, stored: float = 0.0, **options: Any
) -> Ran:
    """The kernel writes every result once, and within a few roundings of the oracle: one of storage, `inner` roundings
    to float32 of the largest result, and one to storage of something as large as `stored` on the way."""
    found = ran(kernel, tensors, **options)
    for name, result in found.outputs.items():
        right = found.expected[name]
        largest = float(np.abs(right).max()) if right.size else 0.0
        allowed = ROUNDING[result.dtype] * (np.abs(right) + stored) + inner * ROUNDING[torch.float32] * largest + 1e-30
        assert (found.error(name) <= allowed).all(), (name, float(found.error(name).max()), largest)
        assert (found.trace.write_counts(result) == 1).all()
    return found


def strided(tensor: torch.Tensor, pitch: int, offset: int) -> torch.Tensor:
    """A copy with `pitch` elements more between its rows and `offset` before them; what is not the tensor's is NaN."""
    rows, width = tensor.shape[0], tensor[0].numel()
    buffer = torch.full((rows * (width + pitch) + offset,), float("nan")).to(tensor.dtype)
    strides = ((width + pitch), *tensor.stride()[1:])
    view = buffer.as_strided(tensor.shape, strides, offset)
    view.copy_(tensor)
    return view
