"""The prefill attention schedule: tiles of rows against the keys that one of them sees."""

from __future__ import annotations

import re
from dataclasses import dataclass

from specc.kernels import Kernel
from specc.ops import Expr, free_vars
from specc.targets.cuda.attention_text import AttentionText, head_lines, shared_bytes
from specc.targets.cuda.emit_contraction import by_storage
from specc.targets.cuda.emit_pointwise import body, mentions
from specc.targets.cuda.scope import Inner, Scope
from specc.targets.cuda.slots import Function, Instance, Slots, extent_text, strings
from specc.targets.cuda.tiles import Tiles
from specc.targets.tile_table import WIDTHS, Config


@dataclass(frozen=True)
class LimitsText:
    """The first key that a row sees, and one past the last."""

    head: list[str]
    low: str
    high: str


@dataclass(frozen=True)
class ArraysText:
    """What is read of each row, kept for the two rows of a lane."""

    declared: list[str]
    filled: list[str]


@dataclass(frozen=True)
class EpilogueText:
    """From weighted values to results, in vectors of columns."""

    head: list[str]
    vector: str
    vectors: list[str]
    elements: list[str]
    stores: list[str]


@dataclass(frozen=True)
class OneKeyText:
    """The way that takes keys one by one as its template prints it."""

    signature: str
    head: list[str]
    low: str
    high: str
    seen: str
    factors: list[str]
    product: str
    score: list[str]
    value: list[str]
    value_name: str
    call: str


def prefill_slots(kernel: Kernel, tiles: Tiles) -> Slots:
    return _Prefill(kernel, tiles).slots()


class _Prefill(AttentionText):
    def __init__(self, kernel: Kernel, tiles: Tiles) -> None:
        super().__init__(kernel)
        self.tiles = tiles
        self.count = extent_text(self.a.row.extent)

    def slots(self) -> Slots:
        a = self.a
        heads = head_lines(a.head.var, a.kv_head, "int(blockIdx.y)", a.head_map)
        arrays, picked = self._arrays()
        seen = " && ".join(filter(None, (f"{a.keys.var} < last", self.visible())))
        values: dict[str, object] = {
            "text": self.loop("start + own < last", picked, seen), "heads": heads, "row_count": self.count,
            "most": extent_text(a.keys.extent), "limits": self._limits(),
            "row_arrays": arrays, "epilogue": self._epilogue(), "acc": a.accumulator,
        }  # fmt: skip
        main = Function(self.kernel, "", "Shape::THREADS, 1", values)
        values["one"] = self._by_key(heads, main)
        exprs: tuple[Expr, ...] = (a.score, a.store.value)
        return Slots(
            "cuda/attention_prefill.cu.j2", {"threads": main.threads, **values}, exprs, main.parameters, self.count,
            self.aligned(), self._launch(main), complete=True, others=self._instances,
        )  # fmt: skip

    def _limits(self) -> LimitsText:
        low, high = self.bounds()
        return LimitsText(
            self._of_row("first_row + own", self.row_loads(self.a.low, self.a.high), low, high), low, high
        )

    def _of_row(self, number: str, lines: list[str], *texts: str) -> list[str]:
        """`lines` after the definition of the row's variable, if they or `texts` speak of it."""
        row = self.a.row.var
        used = any(mentions(text, row) for text in (*lines, *texts))
        return [f"const int {row} = min({number}, {self.count} - 1);", *lines] if used else lines

    def _arrays(self) -> tuple[ArraysText, list[str]]:
        """Arrays of what rows read, how they are filled, and what picks one row's out of them."""
        a = self.a
        names = {n for e in (a.score, a.visible) if e is not None for n in free_vars(e)}
        integer = {x.name: "int" if x.name in self.cut else "int64_t" for x in a.row_loads}
        kinds = {x.name: "real" if self.scope().is_real(x) else integer[x.name] for x in a.row_loads if x.name in names}
        arrays = {n: self.names.fresh(f"{n}_all") for n in kinds}
        declared = [f"{kind} {arrays[n]}[2];" for n, kind in kinds.items()]
        kept = [f"{arrays[n]}[half] = {n};" for n in kinds]
        row = "first_row + warp.row + specc::fragment_row({})"
        filled = self._of_row(row.format("half * 2"), [*self.row_loads(a.score, a.visible), *kept]) if kinds else []
        picked = [f"const {k} {n} = {arrays[n]}[part / 2];" for n, k in kinds.items()]
        return ArraysText(declared, filled), self._of_row(
            row.format("part"), picked, *self.score(), self.visible() or ""
        )

    def _epilogue(self) -> EpilogueText:
        a = self.a
        scope = Scope(self.kernel, self.names, self.fixed, Inner(a.columns.var, self.column_first, self.width))
        head = [*self.row_loads(a.store.value), *scope.pointers([a.store])]
        before, elements, stores = body(scope, (a.store,), [], [])
        return EpilogueText(head, self.names.fresh(f"{a.accumulator}_v"), before, elements, stores)

    def _by_key(self, heads: list[str], main: Function) -> OneKeyText:
        a = self.a
        scope = self.scope(a.keys.var, a.inner.var, a.columns.var)
        factors = [line for x in (a.q, a.k) for line in scope.load_row(x)]
        head = [*heads, *self.row_loads(a.low, a.high, a.score, a.visible)]
        low, high = self.bounds()
        seen, score, value = self.visible() or "true", self.score(), scope.load_row(a.v)
        printed = " ".join(strings([head, low, high, seen, factors, score, value, self.count]))
        used = [p for p in main.parameters if re.search(rf"\b{p.name}\b", printed)]
        name = f"{self.kernel.name}_by_key"
        declared = ", ".join(["real* results", *(f"{p.declared} {p.name}" for p in used)])
        return OneKeyText(
            f"__device__ __noinline__ void {name}({declared}) {{", head, low, high, seen, factors,
            f"{a.q.name} * {a.k.name}", score, value, a.v.name,
            f"{name}<Element, Shape>({', '.join(['results', *(p.name for p in used)])});",
        )  # fmt: skip

    def _configs(self, width: int) -> tuple[Config, ...]:
        return self.tiles.of("attention_prefill", {"D": self.width, "E": self.depth})[width]

    def _launch(self, main: Function) -> tuple[str, ...]:
        grid = f"specc::Grid{{specc::ceil_div(rows, Shape::ROWS), {self.a.head_map.heads}}}"
        bytes_ = "Shape::template shared_bytes<Element>()"
        call = f"return run({main.template_id('Shape')}, {grid}, Shape::THREADS, {bytes_});"
        lines = {w: [f"using Shape = {self.shape(self._configs(w)[-1])};", call] for w in WIDTHS}
        return (*main.runner("run"), *by_storage(lines))

    def shape(self, c: Config) -> str:
        rows, keys = c.tile("BLOCK_T"), c.tile("BLOCK_L")
        return f"specc::AttentionShape<{rows}, {keys}, {c.warps * 16 // rows}, {self.depth}, {self.width}>"

    def _instances(self, width: int) -> tuple[Instance, ...]:
        (c,) = self._configs(width)
        shared = shared_bytes(c.tile("BLOCK_T"), c.tile("BLOCK_L"), c.warps, self.depth, self.width, width)
        kernel, shape = f"{self.kernel.name}_kernel", self.shape(c)
        return tuple(Instance(f"{kernel}<Element, {n}, {shape}>", c.warps * 32, shared) for n in (16 // width, 1))
