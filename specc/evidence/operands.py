"""What a case of a kernel gives values to."""

from __future__ import annotations

import math

from specc.evidence.case import Case
from specc.ir import Role
from specc.kernels import Kernel, Operand
from specc.ops import FormulaTensor, Size, Sort, walk

LARGE = 1 << 23
"""Elements from which on a weight is drawn as overlapping rows of a short buffer."""


def inputs(kernel: Kernel) -> dict[str, Operand]:
    """The inputs of the formula by name: operands of the kernel, and those that the kernel does without."""
    own = {o.name: o for o in kernel.operands}
    return {t.name: own.get(t.name) or _as_operand(t) for t in kernel.formula.inputs}


def _as_operand(t: FormulaTensor) -> Operand:
    role = Role.INDEX if t.sort is Sort.INDEX else Role.ACTIVATION
    return Operand(t.name, t.dims, role, tuple(f"d{n}" for n in range(len(t.dims))), t.sort)


def sizes_of(kernel: Kernel, case: Case) -> dict[str, int]:
    """Run-time sizes; one that only unread inputs have is 1."""
    named = (n for t in kernel.formula.inputs for d in t.dims for n in walk(d) if isinstance(n, Size))
    return dict.fromkeys((n.name for n in named), 1) | dict(case.sizes)


def overlaps(operand: Operand, shape: tuple[int, ...]) -> bool:
    """Whether an input is drawn as overlapping rows."""
    return operand.role is Role.WEIGHT and len(shape) == 2 and math.prod(shape) > LARGE
