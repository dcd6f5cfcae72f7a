"""The row reduction schedule: rows in registers, several to a block or one with all its threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specc.kernels import Access, Kernel, RowReduction, Stage, Store
from specc.ops import Expr, Num, free_vars
from specc.targets.cuda.emit_pointwise import body, mentions
from specc.targets.cuda.names import local_names
from specc.targets.cuda.scope import LONGEST_VECTOR, Inner, Scope
from specc.targets.cuda.slots import Slots, parameters, product_text, unravel

WARP = 32
MOST_THREADS, MOST_AGAIN = 1024, 512
"""Threads of a row that is kept in registers, and of one that is read again."""
WIDEST = 256
"""Threads of a row as long as it has few elements a thread."""
MOST_PIECES = 4
"""Vectors of 8 elements that a thread keeps."""
BLOCK = 128
"""Threads of a block of several rows."""
REGISTERS, MOST_REGISTERS = 1 << 16, 255
"""Of a multiprocessor, and of a thread."""
WORKING = 60
"""Registers of a thread beside the elements that it keeps."""


@dataclass(frozen=True)
class Shape:
    """`threads` share a row, and a block has `rows` of them. `resident`: a row fits their registers."""

    threads: int
    rows: int
    resident: bool

    @property
    def block(self) -> int:
        return self.threads * self.rows

    @property
    def warps(self) -> int:
        """Of a row, where it has whole ones."""
        return max(1, self.threads // WARP)


def shape_of(length: int, again: int = 1) -> Shape:
    """How a row of `length` elements is shared: by a part of a warp, by one, or by a block. `again`: accesses along the
    row that more than one stage reads."""
    pieces = -(-length // LONGEST_VECTOR)
    if pieces <= WARP * MOST_PIECES:
        threads = min(WARP, 1 << (pieces - 1).bit_length())
        each, rows = -(-pieces // threads), BLOCK // threads
    else:
        each, rows = min(MOST_PIECES, -(-pieces // WIDEST)), 1
        threads = -(-pieces // (each * WARP)) * WARP
    if threads <= MOST_THREADS and _registers(each * LONGEST_VECTOR * again) <= _share(threads * rows):
        return Shape(threads, rows, True)
    return Shape(min(threads, MOST_AGAIN), rows, False)


def _registers(kept: int) -> int:
    """Of a thread that keeps so many elements: a compiler keeps what is computed of each of them too."""
    return 2 * kept + WORKING


def _share(threads: int) -> int:
    """Registers of a thread where so many are a block."""
    return min(MOST_REGISTERS, REGISTERS // threads // 8 * 8)


@dataclass(frozen=True)
class StageText:
    """A stage as its template prints it. `vectors`: what each piece reads first."""

    part: str
    op: str
    vectors: list[str]
    elements: list[str]
    raw: str
    reduce: str
    finish: list[str]


def row_reduction_slots(kernel: Kernel) -> Slots:
    r = kernel.schedule
    assert isinstance(r, RowReduction) and isinstance(r.inner.extent, Num)
    return _Printer(kernel, r, int(r.inner.extent.value)).slots()


class _Printer:
    def __init__(self, kernel: Kernel, r: RowReduction, length: int) -> None:
        self.kernel, self.r, self.length = kernel, r, length
        self.shape = _shape(r, length)
        self.names = local_names(kernel)
        self.first = self.names.fresh(f"{r.inner.var}_first")
        exact = length % (self.shape.threads * LONGEST_VECTOR) == 0
        conditions = [] if self.shape.rows == 1 else ["row_in"]
        self.inside = [] if exact and self.shape.resident else [f"{self.first} < {length}"]
        inner = Inner(r.inner.var, self.first, length, " && ".join([*conditions, *self.inside]) or None)
        self.scope = Scope(kernel, self.names, [a.var for a in r.rows], inner)
        self.accesses = _along(r)

    def slots(self) -> Slots:
        r, scope = self.r, self.scope
        head = [line for a in r.row_loads for line in scope.load_row(a)]
        head += scope.pointers([*r.loads, *r.vectors, *r.stores])
        moving = tuple(s for s in r.stores if scope.moves(*s.indices))
        uses = [_needed(self.accesses, [s.map, s.where]) for s in r.stages]
        uses.append(_needed(self.accesses, [s.value for s in moving]))
        kept = [a for a in r.loads if self.shape.resident and scope.is_vector(a) and sum(a in u for u in uses) > 1]
        stages = [self._stage(n, s, uses[n], kept) for n, s in enumerate(r.stages)]
        vectors, elements, stores = body(scope, moving, uses[-1], self._vectors(uses[-1], kept), self._held(kept))
        inside = f"if (!({scope.inner.inside})) continue;" if scope.inner.inside else ""
        vectors = [inside, *vectors] if inside else vectors
        once = [line for s in r.stores if s not in moving for line in self._single(s)]
        shape = self.shape
        values: dict[str, object] = {
            "threads": shape.block, "lanes": shape.threads, "together": shape.rows, "warps": shape.warps,
            "length": self.length, "sums": len(r.stages), "row_variables": unravel(r.rows), "head": head,
            "unroll": "#pragma unroll" if shape.resident else "#pragma unroll 1",
            "kept": [f"specc::Vec<{scope.storage(a)}, VEC> {a.name}_all[PIECES];" for a in kept],
            "reads": self._opened([f"{a.name}_all[piece] = {scope.vector(a)};" for a in kept]),
            "stages": stages, "vectors": self._opened(vectors, [*elements, *stores]), "elements": elements,
            "stores": stores, "once": once,
        }  # fmt: skip
        places: list[Access | Store] = [*self.accesses.values(), *moving]
        aligned = [x.operand for x in places if scope.is_vector(x)]
        launch = (
            f"const specc::Grid grid{{specc::ceil_div(rows, {shape.rows})}};",
            f"const dim3 block({shape.threads}, {shape.rows});",
        )
        exprs = tuple(e for s in r.stages for e in (s.map, s.finish)) + tuple(s.value for s in r.stores)
        used = [values, *(["rows"] if shape.rows > 1 else [])]
        return Slots(
            "cuda/row_reduction.cu.j2", values, exprs, parameters(self.kernel, used), product_text(r.rows),
            tuple(dict.fromkeys(aligned)), launch, min_blocks=1,
        )  # fmt: skip

    def _opened(self, lines: list[str], more: Sequence[str] = ()) -> list[str]:
        """`lines` of a piece, after the definition of its first element where it is used."""
        used = any(mentions(line, self.first) for line in (*lines, *more))
        return [f"const int {self.first} = (piece * LANES + lane) * VEC;", *lines] if used else lines

    def _stage(self, number: int, stage: Stage, used: Sequence[Access], kept: Sequence[Access]) -> StageText:
        scope, printer, part = self.scope, self.scope.printer, self.names.fresh(f"{stage.name}_part")
        term = self.names.fresh(f"{stage.name}_term")
        elements = [scope.element(a, self._held(kept).get(a.name)) for a in used]
        elements += printer.block([(term, stage.map)])
        printer.named.clear()
        op = "specc::Sum" if stage.op == "Σ" else "specc::Max"
        conditions = [f"{scope.inner.var} < {self.length}"] if self.inside else []
        conditions += [printer.expr(stage.where)] if stage.where is not None else []
        guard = f"if ({' && '.join(conditions)}) " if conditions else ""
        elements.append(f"{guard}{part} = {op}::join({part}, {term});")
        if any(mentions(line, scope.inner.var) for line in elements):
            elements.insert(0, f"const int {scope.inner.var} = {self.first} + n;")
        if self.shape.warps > 1:
            reduce = f"specc::reduce_block<{op}, {self.shape.warps}>({part}, scratch[{number}])"
        else:
            reduce = f"specc::reduce_lanes<{op}, {self.shape.threads}>({part})"
        finish = printer.block([(stage.name, stage.finish)])
        printer.named.clear()
        return StageText(
            part, op, self._opened(self._vectors(used, kept), elements), elements, stage.raw, reduce, finish
        )

    def _vectors(self, used: Sequence[Access], kept: Sequence[Access]) -> list[str]:
        return [self.scope.load_vector(a) for a in used if self.scope.is_vector(a) and a not in kept]

    def _held(self, kept: Sequence[Access]) -> dict[str, str]:
        return {a.name: f"{a.name}_all[piece]" for a in kept}

    def _single(self, store: Store) -> list[str]:
        name = self.names.fresh(store.operand)
        lines = self.scope.printer.block([(name, store.value)])
        self.scope.printer.named.clear()
        return [*lines, self.scope.store_single(store, name)]


def _along(r: RowReduction) -> dict[str, Access]:
    """Accesses along the row, by name."""
    return {a.name: a for a in (*r.loads, *r.vectors)}


def _needed(accesses: Mapping[str, Access], exprs: Sequence[Expr | None]) -> list[Access]:
    """Those of `accesses` that `exprs` read, with those that their places depend on, in order."""
    wanted: set[str] = set()

    def visit(e: Expr | None) -> None:
        for name in free_vars(e) if e is not None else ():
            if name in accesses and name not in wanted:
                wanted.add(name)
                for i in (*accesses[name].indices, accesses[name].guard):
                    visit(i)

    for e in exprs:
        visit(e)
    return [a for n, a in accesses.items() if n in wanted]


def _shape(r: RowReduction, length: int) -> Shape:
    """`length`: that of `r.inner`."""
    passes: list[list[Expr | None]] = [[s.map, s.where] for s in r.stages]
    passes.append([s.value for s in r.stores])
    uses = [a for exprs in passes for a in _needed(_along(r), exprs)]
    return shape_of(length, sum(count > 1 for count in Counter(a.name for a in uses).values()))


def lanes(kernel: Kernel) -> int:
    """Threads that share a row of a reduction."""
    r = kernel.schedule
    if not isinstance(r, RowReduction) or not isinstance(r.inner.extent, Num):
        return 1
    return _shape(r, int(r.inner.extent.value)).threads
