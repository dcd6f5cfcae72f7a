"""A kernel as one Python file: device functions, tiles, and a typed launcher."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from specc.kernels import Kernel
from specc.render import render
from specc.targets.about import about
from specc.targets.divisors import divisors
from specc.targets.printing import functions_used
from specc.targets.triton.emit_contraction import contraction_slots
from specc.targets.triton.emit_decode import decode_slots
from specc.targets.triton.emit_pointwise import pointwise_slots
from specc.targets.triton.emit_prefill import prefill_slots
from specc.targets.triton.emit_recurrence import recurrence_slots
from specc.targets.triton.emit_row_reduction import row_reduction_slots
from specc.targets.triton.header import config_lines, imports, operand_lines, table_values
from specc.targets.triton.host import NONZERO
from specc.targets.triton.launcher import launcher
from specc.targets.triton.names import legal
from specc.targets.triton.printer import TURN_FRACTION, function_source, uses_turns
from specc.targets.triton.scope import doubles
from specc.targets.triton.slots import Slots
from specc.targets.triton.tiles import TileTable, load_tiles

SLOTS: Mapping[str, Callable[[Kernel, TileTable], Slots]] = {
    "attention_decode": decode_slots,
    "attention_prefill": prefill_slots,
    "contraction": contraction_slots,
    "gather": pointwise_slots,
    "pointwise": pointwise_slots,
    "recurrence": recurrence_slots,
    "row_reduction": row_reduction_slots,
}


def emit(kernel: Kernel, tiles: TileTable | None = None) -> str:
    """The text of a kernel's file; it imports `launch` from beside it.

    Raises SpecError where `tiles` (the shipped table if None) has none for the kernel.
    """
    ready = legal(kernel)
    slots = SLOTS[ready.schedule_name](ready, tiles or load_tiles())
    precise = doubles(ready)
    functions = [TURN_FRACTION] if uses_turns(slots.exprs, precise) else []
    functions += [NONZERO] if divisors((ready.operands, ready.schedule)) else []
    functions += [*slots.helpers, *(function_source(f) for f in functions_used(slots.exprs))]
    first, *_ = slots.launches
    return render(
        slots.template,
        title=f"`{kernel.op}` as node {kernel.name}.",
        about=about(kernel, ready),
        imports=imports(ready, slots, precise),
        functions=[f.rstrip("\n") for f in functions],
        configs=config_lines(slots.configs),
        operands=operand_lines(ready),
        tables=table_values(ready),
        launcher=launcher(kernel, ready, slots),
        kernel=first.function,
        decorator=first.decorator,
        parameters=first.header,
        **slots.values,
    )


def emit_runtime() -> str:
    """The text of `launch.py`, which all kernel files import."""
    return render("triton/launch.py.j2")
