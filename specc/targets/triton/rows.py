"""Rows of a result among programs: one row each, or a tile of neighbouring ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specc.kernels import Axis
from specc.ops import Num
from specc.targets.triton.host import PRODUCT, host_text, product_text
from specc.targets.triton.scope import Index


@dataclass(frozen=True)
class Rows:
    """`lines` define the row variables; on the host, `grid` is the number of programs along the rows and `count` the
    number of rows."""

    tiled: bool
    lines: tuple[str, ...]
    indices: Mapping[str, Index]
    grid: str
    count: str
    text: str
    caps: tuple[tuple[str, str], ...] = ()


def tile_rows(axes: tuple[Axis, ...], tiled: bool) -> Rows:
    """Row variables of a program: scalars, or the last one a column vector of ROWS when `tiled`."""
    if not axes:
        return Rows(False, (), {}, "1", "1", "the only row")
    return _tiles(axes) if tiled else _single(axes)


def _single(axes: tuple[Axis, ...]) -> Rows:
    indices = {a.var: Index(a.var) for a in axes}
    grid = product_text(tuple(a.extent for a in axes))
    return Rows(False, tuple(unravel("tl.program_id(0)", axes)), indices, grid, grid, "one row")


def unravel(source: str, axes: tuple[Axis, ...]) -> list[str]:
    """Row variables out of a running number of rows."""
    if len(axes) == 1:
        return [f"{axes[0].var} = {source}"]
    *outer, last = axes
    n = host_text(last.extent, level=PRODUCT + 1)
    lines = [] if source == "row" else [f"row = {source}"]
    if len(outer) == 1:
        return [*lines, f"{last.var} = row % {n}", f"{outer[0].var} = row // {n}"]
    return [*lines, f"{last.var} = row % {n}", f"row = row // {n}", *unravel("row", tuple(outer))]


def _tiles(axes: tuple[Axis, ...]) -> Rows:
    *outer, last = axes
    n = host_text(last.extent, level=PRODUCT + 1)
    indices = {a.var: Index(a.var) for a in outer} | {last.var: Index(last.var, f"{last.var}_in")}
    blocks = f'triton.cdiv({n}, config.tiles["ROWS"])'
    caps = (("ROWS", n),) if outer and not isinstance(last.extent, Num) else ()
    count = product_text(tuple(a.extent for a in axes))
    inside = f"{last.var}_in = {last.var} < {n}"
    if not outer:
        line = f"{last.var} = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]"
        return Rows(True, (line, inside), indices, blocks, count, "ROWS rows")
    lines = [f"blocks = tl.cdiv({n}, ROWS)", *unravel("tl.program_id(0) // blocks", tuple(outer))]
    lines.append(f"{last.var} = (tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS))[:, None]")
    grid = f"{product_text(tuple(a.extent for a in outer))} * {blocks}"
    return Rows(True, (*lines, inside), indices, grid, count, f"ROWS of the rows along `{last.var}`", caps)
