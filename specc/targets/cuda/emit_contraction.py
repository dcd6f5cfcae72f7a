"""The contraction schedule: tiles on tensor cores, and for few rows a warp for some columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specc.kernels import Access, Axis, Contraction, Kernel, Store
from specc.ops import Num
from specc.targets.cuda.emit_pointwise import body
from specc.targets.cuda.factor import FactorText, factor_text
from specc.targets.cuda.names import local_names
from specc.targets.cuda.scope import LONGEST_VECTOR, Inner, Scope
from specc.targets.cuda.slots import Function, Instance, Slots, product_text, unravel
from specc.targets.cuda.tiles import FEW_THREADS, SMALLEST, Tiles
from specc.targets.tile_table import WIDTHS, Config

DEEPEST = 32 * 2 * 480
"""Terms of the longest sum that a warp adds in fewer steps than the bound on a contraction counts."""


@dataclass(frozen=True)
class WideText:
    """An epilogue in vectors of columns, as its template prints it."""

    acc: str
    vectors: list[str]
    elements: list[str]
    stores: list[str]


def contraction_slots(kernel: Kernel, tiles: Tiles) -> Slots:
    c = kernel.schedule
    assert isinstance(c, Contraction)
    return _Printer(kernel, c, tiles).slots()


def extent(axis: Axis) -> int:
    """An extent that lowering has found to be a number."""
    assert isinstance(axis.extent, Num)
    return int(axis.extent.value)


class _Printer:
    def __init__(self, kernel: Kernel, c: Contraction, tiles: Tiles) -> None:
        self.kernel, self.c, self.tiles = kernel, c, tiles
        self.columns, self.depth = extent(c.columns), extent(c.inner)
        self.names = local_names(kernel)
        self.rows = [a.var for a in c.rows]
        self.first = self.names.fresh(f"{c.inner.var}_first")
        self.column_first = self.names.fresh(f"{c.columns.var}_first")
        self.across = Scope(kernel, self.names, self.rows, Inner(c.columns.var, self.column_first, self.columns))

    def slots(self) -> Slots:
        c, wide = self.c, self._wide()
        single, row_variables = self._single(), unravel(c.rows)
        (left, right), (few_left, few_right) = self._factors(), self._factors()
        blocks = ", 1" if left.address is None or right.address is None else ""
        few = Function(
            self.kernel, "few", f"{FEW_THREADS}{blocks}", (few_left, few_right, single, row_variables), ("rows",)
        )
        values: dict[str, object] = {
            "columns": str(self.columns), "depth": str(self.depth), "row_variables": row_variables,
            "acc": c.accumulator, "first": self.first, "column": c.columns.var,
            "place": c.columns.var if wide is None else self.column_first, "width": "1" if wide is None else "VEC",
            "left": left, "right": right, "few_left": few_left, "few_right": few_right,
            "few_signature": few.signature, "wide": wide, "single": single,
        }  # fmt: skip
        tiles = Function(
            self.kernel, "", f"Shape::THREADS{blocks}", (left, right, wide or single, row_variables), ("rows",)
        )
        return Slots(
            "cuda/contraction.cu.j2", {"threads": tiles.threads, **values}, (c.a, c.b, c.store.value), tiles.parameters,
            product_text(c.rows), self._aligned(wide is not None), self._launch(tiles, few), complete=True,
            others=self._instances,
        )  # fmt: skip

    def _aligned(self, wide: bool) -> tuple[str, ...]:
        """What is read, or where results are stored in vectors, written in vectors."""
        inner = Scope(self.kernel, self.names, [*self.rows, self.c.columns.var], self._inner())
        found = [a.operand for a in (*self.c.a_loads, *self.c.b_loads) if inner.is_vector(a)]
        places: tuple[Access | Store, ...] = (*self.c.loads, self.c.store)
        found += [x.operand for x in places if wide and self.across.is_vector(x)]
        return tuple(dict.fromkeys(found))

    def _inner(self) -> Inner:
        return Inner(self.c.inner.var, self.first, self.depth)

    def _factors(self) -> tuple[FactorText, FactorText]:
        c = self.c
        left = factor_text(self.kernel, self.names, self.rows, self._inner(), c.a_loads, c.a, "a")
        return left, factor_text(self.kernel, self.names, [c.columns.var], self._inner(), c.b_loads, c.b, "b")

    def _wide(self) -> WideText | None:
        """None where rows of the result do not start at multiples of a vector."""
        c, scope = self.c, self.across
        if self.columns % LONGEST_VECTOR:
            return None
        still = [a for a in c.loads if not scope.moves(*a.indices, a.guard)]
        moving = [a for a in c.loads if a not in still]
        head = [line for a in still for line in scope.load_row(a)] + scope.pointers([*moving, c.store])
        vectors = [scope.load_vector(a) for a in moving if scope.is_vector(a)]
        before, elements, stores = body(scope, (c.store,), moving, vectors)
        return WideText(self.names.fresh(f"{c.accumulator}_v"), [*head, *before], elements, stores)

    def _single(self) -> list[str]:
        """The epilogue of one element."""
        c = self.c
        alone = Inner(self.names.fresh("alone"), "0", LONGEST_VECTOR)
        scope = Scope(self.kernel, self.names, [*self.rows, c.columns.var], alone)
        result = self.names.fresh(c.store.operand)
        lines = [line for a in c.loads for line in scope.load_row(a)]
        lines += [*scope.pointers([c.store]), *scope.printer.block([(result, c.store.value)])]
        return [*lines, scope.store_single(c.store, result)]

    def _configs(self, width: int) -> list[Config]:
        found = self.tiles.of("contraction", {"N": self.columns, "K": self.depth})[width]
        return [c for c in found if _Shape(c).matrix or self.depth <= DEEPEST]

    def _launch(self, tiles: Function, few: Function) -> tuple[str, ...]:
        lines = {w: [line for c in self._configs(w) for line in self._one(_Shape(c), tiles, few)] for w in WIDTHS}
        used = any("run_few" in line for some in lines.values() for line in some)
        return (*(few.runner("run_few") if used else ()), *tiles.runner("run"), *by_storage(lines))

    def _one(self, shape: _Shape, tiles: Function, few: Function) -> list[str]:
        rows, n = shape.config.rows, shape.config.tile("BLOCK_N")
        condition = "" if rows is None else f"if (rows <= {rows}) "
        if not shape.matrix:
            kernel = few.template_id(f"{shape.few}")
            grid = f"specc::Grid{{specc::ceil_div({self.columns}, {n})}}"
            return [f"{condition}return run_few({kernel}, {grid}, {FEW_THREADS}, 0);"]
        grid = f"specc::Grid{{Shape::blocks(rows, {self.columns})}}"
        lines = [
            f"using Shape = {shape.text};",
            f"return run({tiles.template_id('Shape')}, {grid}, Shape::THREADS, "
            "Shape::template shared_bytes<Element>());",
        ]
        return [f"{condition}{{", *(f"    {line}" for line in lines), "}"] if condition else lines

    def _instances(self, width: int) -> tuple[Instance, ...]:
        found: list[Instance] = []
        for shape in map(_Shape, self._configs(width)):
            for vector in (16 // width, 1):
                if shape.matrix:
                    kernel = f"{self.kernel.name}_kernel<Element, {vector}, {shape.text}>"
                    found.append(Instance(kernel, shape.config.warps * 32, shape.shared_bytes(width)))
                else:
                    kernel = f"{self.kernel.name}_few_kernel<Element, {vector}, {shape.few}>"
                    found.append(Instance(kernel, FEW_THREADS))
        return tuple(found)


@dataclass(frozen=True)
class _Shape:
    """A row of the table of tiles in C++."""

    config: Config

    @property
    def matrix(self) -> bool:
        """Whether it is for matrix instructions."""
        return self.config.tile("BLOCK_M") >= SMALLEST

    @property
    def few(self) -> str:
        """Rows, and columns of a warp."""
        c = self.config
        return f"{c.tile('BLOCK_M')}, {c.tile('BLOCK_N') * 32 // FEW_THREADS}"

    @property
    def text(self) -> str:
        c = self.config
        blocks = [c.tile(n) for n in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "WARPS_M")]
        return (
            f"specc::ProductShape<{', '.join(map(str, (*blocks, c.warps // blocks[3], c.stages, c.tile('GROUP_M'))))}>"
        )

    def shared_bytes(self, width: int) -> int:
        """As `ProductShape` computes it."""
        m, n, k = (self.config.tile(t) for t in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
        return max(self.config.stages * (m + n) * k * width, m * (n + 8) * 4)


def by_storage(lines: Mapping[int, list[str]]) -> tuple[str, ...]:
    """Statements for each width of a stored element, those of both first; widened storage goes with 4."""
    narrow, wide = lines[2], lines[4]
    same = next(
        (n for n, (a, b) in enumerate(zip(narrow, wide, strict=False)) if a != b), min(map(len, lines.values()))
    )
    if narrow == wide:
        return tuple(narrow)
    inner = {w: [f"    {line}" for line in found[same:]] for w, found in lines.items()}
    return (*narrow[:same], "if constexpr (sizeof(Element) == 2) {", *inner[2], "} else {", *inner[4], "}")
