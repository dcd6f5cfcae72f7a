"""The decode attention schedule: keys split among blocks, and a merge of the parts."""

from __future__ import annotations

from dataclasses import dataclass

from specc.diagnostics import Diagnostic, SpecError
from specc.kernels import Kernel
from specc.ops import Expr
from specc.targets.cuda.attention_text import AttentionText, shared_bytes, times
from specc.targets.cuda.emit_contraction import by_storage
from specc.targets.cuda.emit_pointwise import body
from specc.targets.cuda.scope import Inner, Scope
from specc.targets.cuda.slots import Function, Instance, Parameter, Slots, extent_text
from specc.targets.cuda.tiles import Tiles
from specc.targets.tile_table import WIDTHS, Config

FEWEST = 64
"""Keys that are worth a split of their own."""
ROWS = 16
"""Query heads that a warp takes."""
FULL_BLOCK = 8
"""Warps of a block, so that each of its threads finds 255 registers; more query heads of a KV head make more blocks."""
MERGE_THREADS = 128
SCRATCH = ("sums", "tops", "totals")
"""Of each row, head and part: the weighted sum of values, the largest score, and the sum of the weights."""


@dataclass(frozen=True)
class MergeText:
    """The merging kernel as its template prints it."""

    signature: str
    head: list[str]
    vectors: list[str]
    elements: list[str]
    stores: list[str]


def decode_slots(kernel: Kernel, tiles: Tiles) -> Slots:
    return _Decode(kernel, tiles).slots()


class _Decode(AttentionText):
    def __init__(self, kernel: Kernel, tiles: Tiles) -> None:
        super().__init__(kernel)
        self.tiles = tiles
        self.group = self.a.head_map.group
        self.stride = -(-self.width // 8) * 8
        m = self.a.head_map
        self.query_head = f"{times(self.a.kv_head, m.outer)} + {times('member', m.step)}"
        self.place = f"(int64_t({self.a.row.var}) * {m.heads} + {self.a.head.var}) * splits + split"

    def slots(self) -> Slots:
        a, visible = self.a, self.visible()
        low, high = self.bounds()
        read, seen = _both("start + own < last", visible), _both(f"{a.keys.var} < last", visible)
        values: dict[str, object] = {
            "text": self.loop(read, [], seen), "head": self.row_loads(a.low, a.high, a.visible, a.score), "low": low,
            "high": high, "kv_head": a.kv_head, "query": a.head.var, "group": self.group,
            "query_head": self.query_head, "place": self.place, "stride": self.stride, "acc": a.accumulator,
        }  # fmt: skip
        split = Function(self.kernel, "", "Shape::THREADS, 1", values, extra=self._scratch())
        merged = self._merge()
        merge = Function(self.kernel, "merge", str(MERGE_THREADS), merged, extra=(*self._scratch(), _SPLITS))
        values["merge"] = MergeText(merge.signature, *merged)
        exprs: tuple[Expr, ...] = (a.score, a.store.value)
        return Slots(
            "cuda/attention_decode.cu.j2", {"threads": split.threads, **values}, exprs, split.parameters,
            extent_text(a.row.extent), self.aligned(), self._launch(split, merge), complete=True,
            others=self._instances, workspace=self._workspace(),
        )  # fmt: skip

    def _merge(self) -> tuple[list[str], list[str], list[str], list[str]]:
        a = self.a
        scope = Scope(self.kernel, self.names, self.fixed, Inner(a.columns.var, self.column_first, self.width))
        head = [*self.row_loads(a.store.value), *scope.pointers([a.store])]
        return head, *body(scope, (a.store,), [], [])

    def _scratch(self) -> tuple[Parameter, ...]:
        return tuple(Parameter("real* __restrict__", f"{n}_ptr", n) for n in SCRATCH)

    def _configs(self, width: int) -> tuple[Config, ...]:
        """By rows; they differ in the number of parts only. Raises SpecError (E901) where they do not."""
        found = self.tiles.of("attention_decode", {"D": self.width, "E": self.depth})[width]
        if len({(c.warps, c.tile("BLOCK_L")) for c in found}) > 1:
            message = f"tiles of attention_decode for {self.kernel.name} differ in warps or BLOCK_L by rows"
            raise SpecError([Diagnostic("E901", message, None, "give a row without `rows` too")])
        return found

    def _launch(self, split: Function, merge: Function) -> tuple[str, ...]:
        m = self.a.head_map
        blocks = f"{m.kv_heads} * specc::ceil_div({self.group}, Shape::ROWS)"
        grid = f"specc::Grid{{rows, {blocks}, splits}}"
        given = (split.template_id("Shape"), grid, "Shape::THREADS", "Shape::template shared_bytes<Element>()")
        run = f"status = run({', '.join(given)});"
        lines = {w: [f"using Shape = {self.shape(self._configs(w)[0])};", run] for w in WIDTHS}
        most = {w: self._most(w) for w in WIDTHS}
        chosen = most[2] if most[2] == most[4] else f"(sizeof(Element) == 2 ? {most[2]} : {most[4]})"
        return (
            "if (!workspace || !specc::aligned(workspace)) return cudaErrorInvalidValue;",
            f"const int64_t splits = specc::at_most({chosen}, {self._longest()});",
            f"const int64_t parts = rows * {m.heads} * splits;",
            "real* const sums = static_cast<real*>(workspace);",
            f"real *const tops = sums + parts * {self.stride}, *const totals = tops + parts;",
            *split.runner("run"),
            *merge.runner("run_merge"),
            "cudaError_t status = cudaSuccess;",
            *by_storage(lines),
            "if (status != cudaSuccess) return status;",
            f"return run_merge({merge.template_id()}, specc::Grid{{rows, {m.heads}}}, {MERGE_THREADS}, 0);",
        )

    def _longest(self) -> str:
        """As many parts as there are keys for."""
        return f"{extent_text(self.a.keys.extent)} / {FEWEST} + 1"

    def _most(self, width: int) -> str:
        """The largest number of parts, by rows."""
        *some, last = self._configs(width)
        text = str(last.tile("SPLITS"))
        for c in reversed(some):
            text = f"rows <= {c.rows} ? {c.tile('SPLITS')} : {text}"
        return f"({text})" if some else text

    def _workspace(self) -> tuple[str, ...]:
        most = f"specc::at_least({self._most(2)}, {self._most(4)})"
        return (
            f"const int64_t rows = {extent_text(self.a.row.extent)};",
            f"const int64_t splits = specc::at_most({most}, {self._longest()});",
            f"return rows * {self.a.head_map.heads} * splits * {self.stride + 2};",
        )

    def shape(self, c: Config) -> str:
        return f"specc::AttentionShape<{self.rows(c)}, {c.tile('BLOCK_L')}, {c.warps}, {self.depth}, {self.width}>"

    def rows(self, c: Config) -> int:
        """Query heads that a block takes."""
        return min(-(-self.group // ROWS), max(FULL_BLOCK // c.warps, 1)) * ROWS

    def _instances(self, width: int) -> tuple[Instance, ...]:
        c, name = self._configs(width)[0], self.kernel.name
        rows = self.rows(c)
        warps = c.warps * rows // ROWS
        shared = shared_bytes(rows, c.tile("BLOCK_L"), warps, self.depth, self.width, width)
        found = [
            Instance(f"{name}_kernel<Element, {n}, {self.shape(c)}>", warps * 32, shared) for n in (16 // width, 1)
        ]
        return (*found, *(Instance(f"{name}_merge_kernel<Element, {n}>", MERGE_THREADS) for n in (16 // width, 1)))


_SPLITS = Parameter("int", "splits", "int(splits)")


def _both(there: str, visible: str | None) -> str:
    return " && ".join(filter(None, (there, visible)))
