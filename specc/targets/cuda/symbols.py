"""Names that the CUDA files of a model share: no two functions have one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from specc.diagnostics import Collector
from specc.ir import NodeVariant
from specc.kernels import Kernel
from specc.lowered import Lowered


def check_symbols(lowered: Sequence[Lowered], names: Callable[[Kernel], Iterable[str]]) -> None:
    """Raises SpecError (E229) where two kernels have a function of one name."""
    report = Collector()
    taken: dict[str, tuple[Kernel, NodeVariant]] = {}
    for kernel, node in ((k, x.node) for x in lowered for k in x.kernels):
        for name in names(kernel):
            other, known = taken.setdefault(name, (kernel, node))
            if other is not kernel:
                _report(name, known, node, report)
                break
    report.finish()


def _report(name: str, known: NodeVariant, node: NodeVariant, report: Collector) -> None:
    both, help_ = f"`{node.path}` and `{known.path}`", f"choose another name; the first stands at {known.span!r}"
    if node is known:
        both, help_ = f"two kernels of `{node.path}`", "choose another name for one of its results"
    report.error("E229", f"{both} would both have a function `{name}` in CUDA", node.span, help_)


def kernel_functions(text: str) -> list[str]:
    """The kernels of a file."""
    return re.findall(r"__global__ void __launch_bounds__\([^)]*\)\s+(\w+)\(", text)
