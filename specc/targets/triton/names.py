"""Names of a generated kernel: none from a formula collides with Python, Triton or the names that templates use."""

from __future__ import annotations

import builtins
import keyword
import re

from specc.kernels import Kernel
from specc.targets.naming import Names, Vocabulary, found

__all__ = ["Names", "by_key_name", "found", "launcher_name", "legal", "legal_name", "local_names"]

RESERVED = frozenset(
    (*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "tl", "triton", "torch", "math", "libdevice", "cache")
)
DERIVED = re.compile(
    r".*_(ptr|row|in|tile|raw|rows|kernel|table|part|found|value|values|all|new)|.*_stride_.*|.*__|t\d+|[A-Z]+(_[A-Z]+)+|_.*"
)
"""Forms of the names that templates and printers make."""
TEMPLATE = (
    "BLOCK", "CONFIGS", "Config", "Configs", "OPERANDS", "Operand", "ROWS", "SPLITS", "TILE", "acc", "annotations",
    "base", "bind", "blocks", "blocks_m", "blocks_n", "config", "device", "dot", "fade", "first", "first_e", "first_k",
    "first_m", "grid", "group_m", "high", "lane", "larger", "largest", "last", "low", "member", "nonzero", "on", "out",
    "part", "parts", "pick", "pid", "pid_m", "pid_n", "piece", "row", "scratch", "score", "seen", "share", "sizes",
    "split", "splits", "start", "sums", "top", "tops", "total", "totals", "turn_fraction", "values", "weight",
    "workspace", "workspace_of",
    "CHUNK", "CUT_K", "added", "decay", "divisor", "exact_dot", "faded", "finds", "gone", "later", "left", "meets",
    "meets_erase", "meets_write", "pivot", "pull", "pulled", "rate", "reached", "since", "solved",
    "state", "step", "sum_of_steps",
)  # fmt: skip
"""Names that templates use as they stand."""

MODULE = (
    "CONFIGS", "Config", "Configs", "OPERANDS", "Operand", "annotations", "bind", "exact_dot", "larger",
    "nonzero", "on", "pick", "sum_of_steps", "turn_fraction", "workspace_of",
)  # fmt: skip
"""Names at the top of a generated file."""

VOCABULARY = Vocabulary(RESERVED, frozenset(TEMPLATE), DERIVED)
legal_name = VOCABULARY.legal_name
local_names = VOCABULARY.local_names


def legal(kernel: Kernel) -> Kernel:
    """The same kernel with every name of its schedule, operands, tables, sizes and functions fit for a file."""
    return VOCABULARY.legal(kernel, (launcher_name(kernel), f"{kernel.name}_kernel", by_key_name(kernel)))


def by_key_name(kernel: Kernel) -> str:
    """The function that a prefill attention calls to take keys one by one."""
    return f"{kernel.name}_kernel_by_key"


def launcher_name(kernel: Kernel) -> str:
    """The name of a kernel's launcher: the kernel's own, unless the file needs that for something else."""
    return f"{kernel.name}_" if kernel.name in RESERVED or kernel.name in MODULE else kernel.name
