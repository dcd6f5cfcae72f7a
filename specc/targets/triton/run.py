"""Runs a generated file in the interpreter harness."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

from specc.kernels import Kernel
from specc.targets.triton.interpret import Sampler, Trace, interpreted
from specc.targets.triton.load import load_module, runtime_of
from specc.targets.triton.names import launcher_name


def run_text(
    kernel: Kernel,
    text: str,
    tensors: Mapping[str, torch.Tensor],
    programs: Sampler | None = None,
    widen: bool = False,
) -> tuple[dict[str, torch.Tensor], Trace]:
    """The results by name, and what the launches did. `text`: the kernel's file. `tensors`: the inputs, on the CPU, and
    results to write to where they are given; other results start as NaN. See `interpreted` for `programs` and `widen`,
    which takes float64.

    Raises TypeError and ValueError from the launcher, KernelFault from the kernel, KeyError for a missing input.
    """
    module = load_module(text, "real" if widen else "")
    if widen:
        _widen(module)
    inputs = [tensors[o.name] for o in kernel.operands if not o.output]
    outputs = [o.name for o in kernel.operands if o.output]
    results = _results(module, inputs, [tensors.get(n) for n in outputs])
    with interpreted(programs, widen) as trace:
        getattr(module, launcher_name(kernel))(*inputs, out=results[0] if len(results) == 1 else tuple(results))
    return dict(zip(outputs, results, strict=True)), trace


def _results(module: ModuleType, inputs: list[torch.Tensor], given: list[torch.Tensor | None]) -> list[torch.Tensor]:
    _, made = runtime_of(module).bind(module.OPERANDS, inputs, given)
    results: list[torch.Tensor] = made
    for result, own in zip(results, given, strict=True):
        if own is None:
            result.fill_(float("nan"))
    return results


def _widen(module: ModuleType) -> None:
    """Storage and scratch memory of this module are float64."""
    runtime: Any = runtime_of(module)
    runtime.STORAGE, runtime.SCRATCH = (torch.float64,), torch.float64
