"""The contraction schedule: a sum of products on tensor cores, in the storage type, with an epilogue in float32."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from specc.kernels import Access, Contraction, Kernel
from specc.ops import Expr, Num, Rounded, Select, Var
from specc.targets.triton.host import product_text
from specc.targets.triton.names import local_names
from specc.targets.triton.rows import unravel
from specc.targets.triton.scope import Index, Scope
from specc.targets.triton.slots import Launch, Slots, map_configs, parameters
from specc.targets.triton.tiles import Config, Configs, TileTable, next_power_of_two

SMALLEST = 16
"""Of any side of a tile: what a tensor core takes."""
TILES = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M")


def contraction_slots(kernel: Kernel, table: TileTable) -> Slots:
    """Raises SpecError where the table has no tiles for it."""
    c = kernel.schedule
    assert isinstance(c, Contraction) and isinstance(c.columns.extent, Num) and isinstance(c.inner.extent, Num)
    n, k = int(c.columns.extent.value), int(c.inner.extent.value)
    facts = {"N": n, "K": k, "aligned": gcd(k, 16), "reads": len(c.b_loads)}
    configs = _tiles(table.resolve("contraction", facts), n, k)
    printed = _Tiles(kernel, c, n, k)
    count = product_text(tuple(a.extent for a in c.rows))
    values: dict[str, object] = {
        "row_count": count, "columns": str(n), "depth": str(k), "acc": c.accumulator, "head": printed.head,
        "inner": printed.inner, "a": printed.a, "b": printed.b, "epilogue": printed.epilogue,
    }  # fmt: skip
    grid = f'triton.cdiv({count}, config.tiles["BLOCK_M"]) * triton.cdiv({n}, config.tiles["BLOCK_N"])'
    operands = [o.name for o in kernel.operands]
    launch = Launch(f"{kernel.name}_kernel", parameters(kernel, values, operands), TILES, (grid,))
    return Slots(
        "triton/contraction.py.j2", values, configs, (launch,), count, c.a_loads[0].operand, (c.a, c.b, c.store.value)
    )  # fmt: skip


def _tiles(configs: Configs, n: int, k: int) -> Configs:
    """No tile larger than its side needs."""

    def tiles(c: Config) -> tuple[tuple[str, int], ...]:
        limits = {"BLOCK_N": n, "BLOCK_K": k}
        return tuple(
            (name, min(size, max(SMALLEST, next_power_of_two(limits[name]))) if name in limits else size)
            for name, size in c.tiles
        )

    return map_configs(configs, tiles)


@dataclass(frozen=True)
class _Side:
    """A factor: how its indices print, and what it reads."""

    accesses: tuple[Access, ...]
    value: Expr
    indices: dict[str, Index]


class _Tiles:
    """The printed parts of a contraction."""

    def __init__(self, kernel: Kernel, c: Contraction, n: int, k: int) -> None:
        self.kernel, self.c = kernel, c
        self.names = local_names(kernel)
        rows = {a.var: Index(a.var, "m_in") for a in c.rows}
        column = {c.columns.var: Index(c.columns.var, "n_in")}
        var = c.inner.var
        side_a = _Side(c.a_loads, c.a, {**rows, var: Index(f"{var}[None, :]", "k_in[None, :]")})
        side_b = _Side(c.b_loads, c.b, {**column, var: Index(f"{var}[:, None]", "k_in[:, None]")})
        self.head = self._head(n)
        self.inner = [f"{var} = first_k + tl.arange(0, BLOCK_K)", f"k_in = {_inside(var, k, 'BLOCK_K', '(BLOCK_K,)')}"]
        self.a, self.b = self._side(side_a, "a"), self._side(side_b, "b")
        self.epilogue = self._epilogue({**rows, **column})

    def _head(self, n: int) -> list[str]:
        """Row and column variables, each with the condition that it is inside."""
        m = "(pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]"
        var = self.c.columns.var
        rows = self.c.rows
        name = rows[0].var if len(rows) == 1 else "row"
        lines = [f"{name} = {m}", f"m_in = {name} < {product_text(tuple(a.extent for a in rows))}"]
        lines += unravel("row", rows) if len(rows) > 1 else []
        lines.append(f"{var} = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]")
        return [*lines, f"n_in = {_inside(var, n, 'BLOCK_N', '(1, BLOCK_N)')}"]

    def _side(self, side: _Side, name: str) -> str:
        """Reads a factor's tile; returns the name of its value in storage."""
        scope = Scope(self.kernel, self.names, side.indices, (self.c.inner.var,))
        kept = _in_storage(side.value)
        repeated = []
        for access in side.accesses:
            if scope.depends(*access.indices, access.guard) & scope.inner:
                repeated.append(access)
                scope.note(access)
            else:
                self.head += [*scope.pointers([access]), *scope.load(access, upcast=kept is None)]
        self.head += scope.pointers(repeated)
        for access in repeated:
            self.inner += scope.load(access, upcast=kept is None, summed=True)
        value = kept if kept is not None else side.value
        if isinstance(value, Var):
            return value.name
        assert isinstance(value, Rounded | Select)
        name = self.names.fresh(name)
        inner = value.expr if isinstance(value, Rounded) else value
        self.inner += scope.block([(name, inner)])
        if isinstance(value, Rounded):
            self.inner.append(f"{name} = {name}.to({scope.printer.roles[str(value.role)]})")
        return name

    def _epilogue(self, indices: dict[str, Index]) -> list[str]:
        scope = Scope(self.kernel, self.names, indices, (self.c.columns.var,))
        lines = scope.pointers([*self.c.loads, self.c.store])
        for access in self.c.loads:
            lines += scope.load(access)
        values, (result,) = scope.values([self.c.store])
        return [*lines, *values, *scope.store(self.c.store, result)]


def _inside(var: str, extent: int, block: str, shape: str) -> str:
    return f"{var} < {extent} if {extent} % {block} != 0 else tl.full({shape}, True, tl.int1)"


def _in_storage(e: Expr) -> Expr | None:
    """A factor that only chooses among elements, which need not leave their storage type."""
    match e:
        case Var():
            return e
        case Rounded(inner) | inner if isinstance(inner, Select):
            sides = [_in_storage(inner.then), _in_storage(inner.other)]
            return inner if all(s is not None for s in sides) else None
        case Rounded(Var() as v):
            return v
    return None
