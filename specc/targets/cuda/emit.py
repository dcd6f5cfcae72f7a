"""A kernel as one CUDA C++ file: device functions, the kernel, and its launch wrapper."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from specc.kernels import Kernel
from specc.render import render
from specc.resources import shipped
from specc.targets.about import about
from specc.targets.cuda.emit_contraction import contraction_slots
from specc.targets.cuda.emit_decode import decode_slots
from specc.targets.cuda.emit_pointwise import pointwise_slots
from specc.targets.cuda.emit_prefill import prefill_slots
from specc.targets.cuda.emit_recurrence import recurrence_slots
from specc.targets.cuda.emit_row_reduction import row_reduction_slots
from specc.targets.cuda.names import legal
from specc.targets.cuda.printer import function_source
from specc.targets.cuda.slots import Slots
from specc.targets.cuda.tiles import GPU, Tiles, tiles_of
from specc.targets.cuda.wrapper import tables, wrapper
from specc.targets.printing import functions_used
from specc.targets.text import break_lines
from specc.targets.tile_table import TileTable

SPACE = "specc_kernels"
"""Namespace of kernels that belong to no model."""
SLOTS: Mapping[str, Callable[[Kernel], Slots]] = {
    "gather": pointwise_slots,
    "pointwise": pointwise_slots,
    "row_reduction": row_reduction_slots,
}
TILED: Mapping[str, Callable[[Kernel, Tiles], Slots]] = {
    "attention_decode": decode_slots,
    "attention_prefill": prefill_slots,
    "contraction": contraction_slots,
    "recurrence": recurrence_slots,
}
"""Schedules with tiles from a table."""
RUNTIME = ("specc_device.cuh", "specc_launch.cuh", "specc_tile.cuh")
"""Files that kernels include."""


def symbol(kernel: Kernel, space: str = SPACE) -> str:
    """The name of the launch wrapper."""
    return f"{space}_{kernel.name}"


def filled(kernel: Kernel, tiles: Tiles) -> tuple[Kernel, Slots]:
    """The kernel with names that fit a file, and its slots. Raises SpecError (E901) where there are no tiles for it."""
    ready = legal(kernel)
    name = ready.schedule_name
    return ready, SLOTS[name](ready) if name in SLOTS else TILED[name](ready, tiles)


def emit(kernel: Kernel, space: str = SPACE, arch: str = GPU, table: TileTable | None = None) -> str:
    """The text of a kernel's file; it includes `specc_device.cuh` from beside it. Tiles are those for `arch` of `table`
    (the shipped one, if None). Raises SpecError (E901) where it has none for the kernel."""
    ready, slots = filled(kernel, tiles_of(arch, table))
    bounds = ", ".join(str(n) for n in (slots.values["threads"], slots.min_blocks) if n is not None)
    head = f"__global__ void __launch_bounds__({bounds}) {ready.name}_kernel"
    values = {k: v for k, v in slots.values.items() if k != "threads"}
    text = render(
        slots.template,
        about=[f"`{kernel.op}` as node {kernel.name}.", "", *about(kernel, ready)],
        space=space,
        functions=[function_source(f) for f in functions_used(slots.exprs)],
        signature=f"{head}({', '.join(f'{p.declared} {p.name}' for p in slots.parameters)}) {{",
        wrapper=wrapper(symbol(kernel, space), space, ready, slots),
        tables=tables(symbol(kernel, space), ready),
        **values,
    )
    return break_lines(text)


def emit_runtime(name: str) -> str:
    """The text of a file that kernels include."""
    return (shipped("templates") / "cuda" / name).read_text(encoding="utf-8")
