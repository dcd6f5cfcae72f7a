"""The prefill attention schedule: tiles of rows against the keys that one of them sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specc.kernels import Attention, Kernel
from specc.targets.text import call
from specc.targets.triton.attention_text import SMALLEST, AttentionText, extent, fitted, head_lines
from specc.targets.triton.host import product_text
from specc.targets.triton.names import by_key_name
from specc.targets.triton.scope import Index, storage
from specc.targets.triton.slots import Launch, Parameter, Slots, parameters
from specc.targets.triton.tiles import TileTable

TILES = ("BLOCK_T", "BLOCK_L", "BLOCK_E", "BLOCK_D")


def prefill_slots(kernel: Kernel, table: TileTable) -> Slots:
    """Raises SpecError where the table has no tiles for it."""
    a = kernel.schedule
    assert isinstance(a, Attention)
    facts = {"D": extent(a.columns.extent), "E": extent(a.inner.extent), "group": a.head_map.group}
    configs = fitted(table.resolve("attention_prefill", facts), a)
    values = _Tiles(kernel).values()
    rows = product_text((a.row.extent,))
    grid = (
        f'triton.cdiv({rows}, config.tiles["BLOCK_T"])',
        str(a.head_map.heads),
        f'triton.cdiv({facts["D"]}, config.tiles["BLOCK_D"])',
    )
    given = parameters(kernel, values, [o.name for o in kernel.operands], lambda axis: True)
    launch = Launch(f"{kernel.name}_kernel", given, TILES, grid)
    values["one"] = _ByKey(kernel).values(given)
    exprs = (a.score, a.store.value)
    return Slots("triton/attention_prefill.py.j2", values, configs, (launch,), rows, a.q.operand, exprs)


@dataclass(frozen=True)
class OneKeyText:
    """The way that takes keys one by one as its template prints it."""

    parameters: list[str]
    rows: str
    head: list[str]
    depth: str
    step: str
    factors: list[str]
    scores: list[str]
    seen: list[str]
    storage: str
    load_v: list[str]
    epilogue: list[str]
    call: list[str]


class _Prefill(AttentionText):
    """Rows are a column vector, heads are scalars."""

    def __init__(self, kernel: Kernel) -> None:
        a = kernel.schedule
        assert isinstance(a, Attention)
        row, d = a.row.var, a.columns.var
        fixed = {row: Index(row, f"{row}_in"), a.head.var: Index(a.head.var), a.kv_head: Index(a.kv_head)}
        super().__init__(kernel, fixed, Index(d, f"{d}_in"))

    def place(self, rows: str) -> list[str]:
        """Which rows, head and columns the program has."""
        d, row = self.a.columns.var, self.a.row.var
        inside = f"{d} < {self.width} if {self.width} % BLOCK_D != 0 else tl.full((1, BLOCK_D), True, tl.int1)"
        return [
            f"{row} = ({rows})[:, None]",
            f"{row}_in = {row} < {product_text((self.a.row.extent,))}",
            *head_lines(self.a.head.var, self.a.kv_head, "tl.program_id(1)", self.a.head_map),
            f"{d} = (tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D))[None, :]",
            f"{d}_in = {inside}",
        ]

    def range(self) -> list[str]:
        """The first key that a row of the program sees, and one past the last."""
        low, high = self.bounds()
        size, inside = product_text((self.a.keys.extent,)), f"{self.a.row.var}_in"
        first = "0" if self.a.low is None else f"tl.min(tl.where({inside}, {low}, {size}))"
        last = size if self.a.high is None else f"tl.max(tl.where({inside}, {high}, 0))"
        return [f"first = {first}", f"last = {last}"]


class _Tiles(_Prefill):
    """Blocks of rows against blocks of keys."""

    def values(self) -> dict[str, object]:
        key = self.a.keys.var
        scores = self.scope({**self.fixed, key: Index(f"{key}[None, :]")}, key)
        head = [*self.place("tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)"), "lane = tl.arange(0, BLOCK_L)"]
        head += [*self.row_loads(scores), *self.range()]
        seen = self.seen(scores, "seen", f"{key}_in[None, :]")
        pointers, loop = self.loop("BLOCK_T", scores, [f"{key}_in = {key} < last"], seen)
        return {**self.shared(), "head": [*head, *pointers], "loop": loop, "epilogue": self.epilogue()}


class _ByKey(_Prefill):
    """A few rows, key by key, without tensor cores."""

    def values(self, given: Sequence[Parameter]) -> OneKeyText:
        a, key, e = self.a, self.a.keys.var, self.a.inner.var
        alone = {**self.fixed, key: Index("start")}
        factors = self.scope({**alone, e: Index(f"{e}[None, :]", f"{e}_in[None, :]")}, key, e)
        v = self.scope({**alone, **self.column}, key, a.columns.var)
        scores = self.scope(alone, key)
        head = self.place(f"first_row + tl.arange(0, {SMALLEST})")
        head += [*self.row_loads(scores), *self.range(), *factors.pointers([a.q, a.k]), *v.pointers([a.v])]
        index = [f"{e} = first_e + tl.arange(0, {SMALLEST})", f"{e}_in = {e} < {self.depth}"]
        names = [*(p.name for p in given), "BLOCK_D"]
        return OneKeyText(
            parameters=Launch("", tuple(given), ("BLOCK_D",), ()).header,
            rows=str(SMALLEST),
            head=head,
            depth=str(self.depth),
            step=str(SMALLEST),
            factors=[*index, *factors.load(a.q), *factors.load(a.k)],
            scores=scores.block([("score", a.score)]),
            seen=self.seen(scores, "seen", "(start < last)"),
            storage=storage(a.v.operand),
            load_v=v.load(a.v),
            epilogue=self.epilogue(),
            call=call(by_key_name(self.kernel), ["first_row", *names], 12),
        )
