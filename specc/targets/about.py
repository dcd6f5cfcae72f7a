"""What a generated kernel file says about itself, in any language."""

from __future__ import annotations

from specc.formula_text import dims_text, expr_text, formula_text
from specc.kernels import Attention, Kernel, Operand
from specc.ops import Sort
from specc.targets.text import paragraph


def about(kernel: Kernel, ready: Kernel) -> list[str]:
    """Formula, keys, tensors and schedule of a kernel, for the head of its file."""
    lines = [f"    {line}" for text in formula_text(kernel.formula) for line in paragraph(text, 4)]
    entries = [("Spec Key", key) for key in kernel.keys]
    entries += [("Phase", str(kernel.phase))] if isinstance(kernel.schedule, Attention) else []
    entries += [("Schedule", f"{kernel.schedule_name}: {kernel.reason}")]
    entries += [("Tensor", tensor_text(o)) for o in ready.operands]
    for t in ready.tables:
        entries.append(("Table", f"{t.name}[{t.var}] = {expr_text(t.expr)} for {t.var} < {t.extent}, float64"))
    return [*lines, "", *(line for name, text in entries for line in paragraph(f"{name:<9} {text}", 0, " " * 10))]


def tensor_text(o: Operand) -> str:
    """`x [T, 5376], activation`."""
    what = "int32 or int64" if o.sort is Sort.INDEX else str(o.role)
    parts = [f"{o.name} {dims_text(o.dims)}", what, *(["result"] if o.output else [])]
    return ", ".join([*parts, *(["64-bit offsets"] if o.wide else [])])
