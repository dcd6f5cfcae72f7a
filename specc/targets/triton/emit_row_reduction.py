"""The row reduction schedule: rows on chip, whole in one tile, or in pieces of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specc.kernels import Access, Kernel, RowReduction, Stage, Store
from specc.ops import Expr, Num, free_vars
from specc.targets.triton.emit_pointwise import fitting
from specc.targets.triton.names import local_names
from specc.targets.triton.rows import tile_rows
from specc.targets.triton.scope import Index, Scope, main_operand
from specc.targets.triton.slots import Launch, Slots, every_config, map_configs, parameters
from specc.targets.triton.tiles import Config, Configs, TileTable, next_power_of_two

LONGEST_RESIDENT = 32768
"""Elements of a row that fit a program's registers; longer rows are read again in every stage."""
MAXIMUM = '''@triton.jit
def larger(a, b):
    """The larger of two numbers, NaN if either is."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
'''


@dataclass(frozen=True)
class StageText:
    """A stage as its template prints it."""

    loads: list[str]
    map: list[str]
    neutral: str
    join: str
    raw: str
    reduce: str
    finish: list[str]


def row_reduction_slots(kernel: Kernel, table: TileTable) -> Slots:
    """Raises SpecError where the table has no tiles for it."""
    r = kernel.schedule
    assert isinstance(r, RowReduction) and isinstance(r.inner.extent, Num)
    length = int(r.inner.extent.value)
    configs, pieces = _tiles(table.resolve("row_reduction", {"H": length, "reads": len(r.loads)}), length, r)
    constants = tuple(n for n, _ in every_config(configs)[0].tiles)
    rows = tile_rows(r.rows, "ROWS" in constants)
    var = r.inner.var
    mask = f"{var}_in" if pieces or next_power_of_two(length) != length else None
    scope = Scope(kernel, local_names(kernel), {**rows.indices, var: Index(var, mask)}, (var,))
    head = list(rows.lines)
    for a in r.row_loads:
        head += [*scope.pointers([a]), *scope.load(a)]
    head += scope.pointers([*r.loads, *r.vectors, *r.stores])
    printed = (_Pieces if pieces else _Whole)(scope, r, length, rows.tiled).values()
    values: dict[str, object] = {"rows": head, "program": f"One program: {rows.text}.", "whole": not pieces, **printed}
    operands = [o.name for o in kernel.operands]
    launch = Launch(f"{kernel.name}_kernel", parameters(kernel, values, operands), constants, (rows.grid,))
    exprs = tuple(e for s in r.stages for e in (s.map, s.finish)) + tuple(s.value for s in r.stores)
    helpers = (MAXIMUM,) if any(s.op == "Max" for s in r.stages) else ()
    return Slots(
        "triton/row_reduction.py.j2", values, configs, (launch,), rows.count, main_operand(kernel), exprs,
        caps=rows.caps, helpers=helpers,
    )  # fmt: skip


def _tiles(configs: Configs, length: int, r: RowReduction) -> tuple[Configs, bool]:
    """ROWS a program where they fit its tile whole, else TILE elements of one row at a time; which of the two."""
    whole = next_power_of_two(length)
    pieces = any(c.tile("TILE") < whole for c in every_config(configs))
    most = max(fitting(c.tile("TILE"), whole, r.rows) for c in every_config(configs))
    tall = not pieces and bool(r.rows) and most > 1

    def tiles(c: Config) -> tuple[tuple[str, int], ...]:
        if pieces:
            return (("TILE", min(c.tile("TILE"), whole)),)
        return (("ROWS", fitting(c.tile("TILE"), whole, r.rows)),) if tall else ()

    return map_configs(configs, tiles), pieces


class _Printer:
    """What both forms share: a stage's terms with padded lanes and excluded elements left out."""

    def __init__(self, scope: Scope, r: RowReduction, length: int, tiled: bool) -> None:
        self.scope, self.r, self.length, self.tiled = scope, r, length, tiled
        self.var = r.inner.var
        self.accesses = {a.name: a for a in (*r.loads, *r.vectors)}

    def terms(self, stage: Stage) -> tuple[list[str], str]:
        """Statements and the text of the elements that a stage reduces."""
        mask = self.scope.indices[self.var].mask
        conditions = [mask] if mask is not None else []
        if stage.where is not None:
            conditions.append(self.scope.atom(stage.where))
        name = self.scope.names.fresh(f"{stage.name}_values")
        *lines, last = self.scope.block([(name, stage.map)])
        value = last.removeprefix(f"{name} = ")
        if conditions:
            value = f"tl.where({' & '.join(conditions)}, {value}, {neutral(stage)})"
        return [*lines, f"{name} = {value}"], name

    def stage(self, stage: Stage, loads: list[str], reduced: str | None) -> StageText:
        lines, name = self.terms(stage)
        start = f"tl.full((TILE,), {neutral(stage)}, tl.float32)"
        join = f"part + {name}" if stage.op == "Σ" else f"larger(part, {name})"
        finish = self.scope.printer.block([(stage.name, self.scope.seen(stage.finish))])
        return StageText(loads, lines, start, join, stage.raw, self.reduction(stage, reduced or name), finish)

    def reduction(self, stage: Stage, name: str) -> str:
        axis, view = (1, "[:, None]") if self.tiled else (0, "")
        whole = f"tl.sum({name}, {axis})" if stage.op == "Σ" else f"tl.reduce({name}, {axis}, larger)"
        return whole + view

    def stores(self, stores: Sequence[Store]) -> tuple[list[str], list[str]]:
        """Statements that compute what is stored, and those that store it."""
        results, names = self.scope.values(stores)
        return results, [line for s, n in zip(stores, names, strict=True) for line in self.scope.store(s, n)]

    def needed(self, exprs: Sequence[Expr | None], known: Sequence[str]) -> list[Access]:
        """Accesses that `exprs` read, with those that their places depend on, in order, but for `known` ones."""
        wanted: dict[str, None] = {}

        def visit(e: Expr | None) -> None:
            for name in free_vars(e) if e is not None else ():
                if name in self.accesses and name not in wanted:
                    access = self.accesses[name]
                    for i in (*access.indices, access.guard):
                        visit(i)
                    wanted[name] = None

        for e in exprs:
            visit(e)
        return [a for n, a in self.accesses.items() if n in wanted and n not in known]


class _Whole(_Printer):
    """The row in one tile."""

    def values(self) -> dict[str, object]:
        block = next_power_of_two(self.length)
        columns = [f"{self.var} = tl.arange(0, {block}){'[None, :]' if self.tiled else ''}"]
        if block != self.length:
            columns.append(f"{self.var}_in = {self.var} < {self.length}")
        loads = [line for a in self.accesses.values() for line in self.scope.load(a)]
        stages = [self.stage(s, [], None) for s in self.r.stages]
        results, stores = self.stores(self.r.stores)
        return {
            "columns": columns, "loads": loads, "stages": stages, "results": results, "stores": stores, "kept": [],
            "sweep": "", "row_results": [],
        }  # fmt: skip


class _Pieces(_Printer):
    """The row in pieces, kept in registers from the stage that reads them first; too long for them, read again."""

    def values(self) -> dict[str, object]:
        resident = self.length <= LONGEST_RESIDENT
        inside = [s for s in self.r.stores if self.var in self.scope.depends(*s.indices)]
        uses = [self._exprs(s) for s in self.r.stages] + [[s.value for s in inside]]
        passes = [self.needed(exprs, ()) for exprs in uses]
        first = {a.name: n for n, found in reversed(list(enumerate(passes))) for a in found}
        last = {a.name: n for n, found in enumerate(passes) for a in found}
        kept = [n for n in self.accesses if resident and n in first and first[n] < last[n]]
        stages = []
        for n, stage in enumerate(self.r.stages):
            loads = self._loads(passes[n], n, first, kept)
            stages.append(self.stage(stage, loads, "part"))
        loads = self._loads(passes[-1], len(passes) - 1, first, kept)
        results, stores = self.stores(inside)
        once = [line for part in self.stores([s for s in self.r.stores if s not in inside]) for line in part]
        sweep = f"{'tl.static_range' if resident else 'range'}(0, {self.length}, TILE)"
        return {
            "columns": self._columns(resident), "loads": loads, "stages": stages, "results": results, "stores": stores,
            "kept": kept, "sweep": sweep, "row_results": once,
        }  # fmt: skip

    def _exprs(self, stage: Stage) -> list[Expr | None]:
        return [stage.map, stage.where]

    def _columns(self, resident: bool) -> list[str]:
        inside = f"{self.var} < {self.length}"
        if resident:
            inside = f"{inside} if piece + TILE > {self.length} else tl.full((TILE,), True, tl.int1)"
        return [f"{self.var} = piece + lane", f"{self.var}_in = {inside}"]

    def _loads(self, accesses: Sequence[Access], number: int, first: dict[str, int], kept: Sequence[str]) -> list[str]:
        lines: list[str] = []
        for a in accesses:
            if a.name in kept and first[a.name] < number:
                lines.append(f"{a.name} = {a.name}_all[piece // TILE]")
                continue
            lines += self.scope.load(a)
            if a.name in kept:
                lines.append(f"{a.name}_all = {a.name}_all + ({a.name},)")
        return lines


def neutral(stage: Stage) -> str:
    """What leaves a reduction as it is."""
    return "0.0" if stage.op == "Σ" else 'float("-inf")'
