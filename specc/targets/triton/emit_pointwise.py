"""The pointwise and gather schedules: every element alone, in tiles of rows and columns."""

from __future__ import annotations

from dataclasses import dataclass

from specc.kernels import Axis, Kernel, Pointwise, Strip
from specc.ops import Expr, Num
from specc.targets.triton.names import local_names
from specc.targets.triton.rows import Rows, tile_rows
from specc.targets.triton.scope import Index, Scope, main_operand
from specc.targets.triton.slots import Launch, Slots, every_config, map_configs, parameters
from specc.targets.triton.tiles import Config, Configs, TileTable, next_power_of_two

MOST_ACROSS = 65535
"""Programs along an axis of a grid other than its first."""


@dataclass(frozen=True)
class _Shape:
    """How a strip's columns are cut: `block` is the text of their number in a program."""

    block: str
    lines: tuple[str, ...]
    mask: str | None


@dataclass(frozen=True)
class StripText:
    """A strip as its template prints it."""

    columns: tuple[str, ...]
    pointers: list[str]
    loads: list[str]
    results: list[str]
    stores: list[str]


def pointwise_slots(kernel: Kernel, table: TileTable) -> Slots:
    """Raises SpecError where the table has no tiles for it."""
    p = kernel.schedule
    assert isinstance(p, Pointwise)
    longest = max(s.length for s in p.strips)
    reads = max(len(s.loads) for s in p.strips)
    facts = {"width": longest, "axes": len(p.rows), "reads": reads}
    configs = _tiles(table.resolve(kernel.schedule_name, facts), longest, p.rows)
    constants = tuple(n for n, _ in every_config(configs)[0].tiles)
    names = local_names(kernel)
    rows = tile_rows(p.rows, "ROWS" in constants)
    columns = _grid(longest, configs) if "BLOCK" in constants else ()
    shapes = {s.length: _columns(s.length, longest, p.inner, configs, rows.tiled) for s in p.strips}
    indices = {**rows.indices, p.inner: Index(p.inner)}
    scope = Scope(kernel, names, indices, (p.inner,))
    head = list(rows.lines)
    for a in p.row_loads:
        head += [*scope.pointers([a]), *scope.load(a)]
    strips = [_strip(scope, s, p.inner, shapes[s.length]) for s in p.strips]
    values: dict[str, object] = {"rows": head, "strips": strips, "program": _program(rows, columns != ())}
    operands = [o.name for o in kernel.operands]
    launch = Launch(f"{kernel.name}_kernel", parameters(kernel, values, operands), constants, (rows.grid, *columns))
    template = f"triton/{kernel.schedule_name}.py.j2"
    return Slots(template, values, configs, (launch,), rows.count, main_operand(kernel), _exprs(p), caps=rows.caps)


def _tiles(configs: Configs, width: int, rows: tuple[Axis, ...]) -> Configs:
    """Columns (BLOCK) and rows (ROWS) of a program, from the number of elements it handles."""
    whole = next_power_of_two(width)
    cut = any(c.tile("TILE") < whole for c in every_config(configs))
    tall = bool(rows) and any(fitting(c.tile("TILE"), whole, rows) > 1 for c in every_config(configs))

    def tiles(c: Config) -> tuple[tuple[str, int], ...]:
        block = min(c.tile("TILE"), whole)
        own = (("ROWS", fitting(c.tile("TILE"), whole, rows)),) if tall else ()
        return (*own, *((("BLOCK", block),) if cut else ()))

    return map_configs(configs, tiles)


def fitting(tile: int, width: int, rows: tuple[Axis, ...]) -> int:
    """Rows of `width` elements that a tile holds, no more than there are along the last axis of rows."""
    count = max(1, tile // width)
    extent = rows[-1].extent if rows else None
    return min(count, next_power_of_two(int(extent.value))) if isinstance(extent, Num) else count


def _few(longest: int, configs: Configs) -> bool:
    """Whether the programs of a row need only one axis of a grid."""
    return longest <= MOST_ACROSS * min(c.tile("BLOCK") for c in every_config(configs))


def _grid(longest: int, configs: Configs) -> tuple[str, ...]:
    """The axes of a grid along a row."""
    blocks = f'triton.cdiv({longest}, config.tiles["BLOCK"])'
    if _few(longest, configs):
        return (blocks,)
    return (f"min({blocks}, {MOST_ACROSS})", f"triton.cdiv({blocks}, {MOST_ACROSS})")


def _columns(length: int, longest: int, inner: str, configs: Configs, tiled: bool) -> _Shape:
    view = "[None, :]" if tiled else ""
    whole = next_power_of_two(length)
    blocks = [dict(c.tiles).get("BLOCK") for c in every_config(configs)]
    if blocks[0] is None:
        values = f"tl.arange(0, {whole})"
        line = f"{inner} = {values}{view}"
        if whole == length:
            return _Shape(str(whole), (line,), None)
        return _Shape(str(whole), (line, f"{inner}_in = {inner} < {length}"), f"{inner}_in")
    short = any(b is not None and b > whole for b in blocks)
    block = f"({whole} if BLOCK > {whole} else BLOCK)" if short else "BLOCK"
    few = _few(longest, configs)
    across = "tl.program_id(1)" if few else f"(tl.program_id(2) * {MOST_ACROSS} + tl.program_id(1))"
    values = f"{across} * {block} + tl.arange(0, {block})"
    line = f"{inner} = ({values}){view}" if tiled else f"{inner} = {values}"
    shape = f"(1, {block})" if tiled else f"({block},)"
    inside = f"{inner} < {length}"
    if length == longest and few:
        inside = f"{inside} if {length} % {block} != 0 else tl.full({shape}, True, tl.int1)"
    return _Shape(block, (line, f"{inner}_in = {inside}"), f"{inner}_in")


def _strip(scope: Scope, strip: Strip, inner: str, shape: _Shape) -> StripText:
    scope.indices[inner] = Index(inner, shape.mask)
    pointers = scope.pointers([*strip.loads, *strip.stores])
    loads = [line for a in strip.loads for line in scope.load(a)]
    values, results = scope.values(strip.stores)
    stores = [line for s, r in zip(strip.stores, results, strict=True) for line in scope.store(s, r)]
    return StripText(shape.lines, pointers, loads, values, stores)


def _program(rows: Rows, cut: bool) -> str:
    columns = "BLOCK columns of" if cut else "all columns of"
    return f"One program: {columns} {rows.text}."


def _exprs(p: Pointwise) -> tuple[Expr, ...]:
    return tuple(s.value for strip in p.strips for s in strip.stores)
