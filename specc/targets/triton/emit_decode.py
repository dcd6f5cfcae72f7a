"""The decode attention schedule: keys split among programs, and a merge of the parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specc.kernels import Attention, Kernel
from specc.ops import Expr
from specc.targets.triton.attention_text import SMALLEST, AttentionText, extent, fitted, query_head
from specc.targets.triton.host import host_text, product_text
from specc.targets.triton.scope import Index
from specc.targets.triton.slots import Launch, Parameter, Slots, parameters, strings
from specc.targets.triton.tiles import TileTable, next_power_of_two

TILES = ("BLOCK_L", "BLOCK_E", "BLOCK_D", "SPLITS")
MERGED = ("BLOCK_D", "SPLITS")
FEWEST = 64
"""Keys that are worth a split of their own."""
UNBOUNDED = 2**31 - 1
SCRATCH = ("sums", "tops", "totals")
"""Of each row, head and part: the weighted sum of values, the largest score, and the sum of the weights."""


@dataclass(frozen=True)
class MergeText:
    """The merging function as its template prints it."""

    decorator: str
    function: str
    parameters: list[str]
    head: list[str]
    epilogue: list[str]


def decode_slots(kernel: Kernel, table: TileTable) -> Slots:
    """Raises SpecError where the table has no tiles for it."""
    a = kernel.schedule
    assert isinstance(a, Attention)
    configs = fitted(table.resolve("attention_decode", _facts(a)), a)
    rows, keys, width = product_text((a.row.extent,)), product_text((a.keys.extent,)), extent(a.columns.extent)
    values, merge = _Split(kernel).values(), _Merge(kernel)
    head, epilogue = merge.head(), merge.epilogue()
    blocks = f'triton.cdiv({width}, config.tiles["BLOCK_D"])'
    name, (heads, kv_heads) = f"{kernel.name}_kernel", (str(a.head_map.heads), str(a.head_map.kv_heads))
    split = Launch(name, _given(kernel, values, a), TILES, (rows, kv_heads, f"{blocks} * splits"))
    given = _given(kernel, (head, epilogue), a)
    others = [o.name for o in kernel.operands]
    merged = Launch(f"{name}_merge", given, MERGED, (rows, heads, blocks), _options(MERGED))
    values["merge"] = MergeText(merged.decorator, merged.function, merged.header, head, epilogue)
    return Slots(
        template="triton/attention_decode.py.j2",
        values=values,
        configs=configs,
        launches=(split, merged),
        rows=rows,
        like=a.q.operand,
        exprs=(a.score, a.store.value),
        plan=(
            'splits = config.tiles["SPLITS"]',
            f"parts = {rows} * {heads} * splits",
            f"scratch = workspace_of(workspace, parts * {width + 2}, ({', '.join(others)}))",
            f"sums, tops, totals = scratch[: parts * {width + 2}].split([parts * {width}, parts, parts])",
        ),
        caps=(("SPLITS", f"{keys} // {FEWEST} + 1"),),
        workspace=f"{rows} · {heads} · SPLITS · {width + 2}",
    )


def _facts(a: Attention) -> Mapping[str, int]:
    """What the table's conditions speak of."""
    m = a.head_map
    sizes = {"D": extent(a.columns.extent), "E": extent(a.inner.extent), "group": m.group}
    return {**sizes, "kv_heads": m.kv_heads, "span": span(a)}


def _options(names: tuple[str, ...]) -> str:
    return f"**config.options({', '.join(repr(n) for n in names)})".replace("'", '"')


def _given(kernel: Kernel, printed: object, a: Attention) -> tuple[Parameter, ...]:
    """Strides are compiled in, but for those between sequences."""
    found = parameters(kernel, printed, [o.name for o in kernel.operands], lambda axis: axis != a.row.var)
    pointers = [p for p in found if p.name.endswith("_ptr")]
    used = [p for p in pointers if any(p.name in s for s in strings(printed))]
    rest = [p for p in found if not p.name.endswith("_ptr")]
    return (*used, *(Parameter(f"{n}_ptr", n) for n in SCRATCH), *rest)


def span(a: Attention) -> int:
    """Keys that a row sees at most, where that is a number: the length of a window."""
    if a.low is None or a.high is None:
        return UNBOUNDED
    found = {_distance(a.low, a.high, a, place) for place in (10**6, 10**7)}
    return found.pop() if len(found) == 1 else UNBOUNDED


def _distance(low: Expr, high: Expr, a: Attention, place: int) -> int:
    """`high - low` for a row whose operands are all `place`."""
    names = {x.name: str(place) for x in a.row_loads} | {a.row.var: "0"}
    try:
        return int(eval(f"({host_text(high, names)}) - ({host_text(low, names)})", {"max": max, "min": min}))  # noqa: S307
    except NameError:
        return UNBOUNDED


class _Decode(AttentionText):
    """Rows are scalars; the heads are those of one program."""

    def __init__(self, kernel: Kernel, head: Index, column: Index) -> None:
        a = kernel.schedule
        assert isinstance(a, Attention)
        super().__init__(kernel, {a.row.var: Index(a.row.var), a.head.var: head, a.kv_head: Index(a.kv_head)}, column)

    @property
    def part(self) -> str:
        """The running number of a row and head."""
        return f"{self.a.row.var}.to(tl.int64) * {self.a.head_map.heads} + {self.a.head.var}"

    def columns(self, block: str, view: str, shape: str) -> list[str]:
        """Which columns the program has."""
        d = self.a.columns.var
        inside = f"{d} < {self.width} if {self.width} % BLOCK_D != 0 else tl.full({shape}, True, tl.int1)"
        values = f"{block} * BLOCK_D + tl.arange(0, BLOCK_D)"
        return [f"{d} = ({values}){view}" if view else f"{d} = {values}", f"{d}_in = {inside}"]


class _Split(_Decode):
    """The query heads of a KV head against one part of the keys."""

    def __init__(self, kernel: Kernel) -> None:
        a = kernel.schedule
        assert isinstance(a, Attention)
        d = a.columns.var
        super().__init__(kernel, Index(f"{a.head.var}[:, None]", "member_in[:, None]"), Index(d, f"{d}_in"))

    def values(self) -> dict[str, object]:
        """What the template prints, but for the merge."""
        a, key = self.a, self.a.keys.var
        tile = max(SMALLEST, next_power_of_two(a.head_map.group))
        scores = self.scope({**self.fixed, key: Index(f"{key}[None, :]")}, key)
        flat = self.scope({**self.fixed, key: Index(key)}, key)
        head = [*self._place(tile), *self.row_loads(scores, flat), *self._range()]
        there = self.seen(flat, f"{key}_in", f"({key} < last)")
        pointers, loop = self.loop(str(tile), scores, there, [f"seen = {key}_in[None, :]"])
        return {
            **self.shared(), "head": [*head, *pointers], "loop": loop, "place": self.part, "width": str(self.width),
            "column": a.columns.var,
        }  # fmt: skip

    def _place(self, tile: int) -> list[str]:
        m = self.a.head_map
        return [
            f"{self.a.row.var} = tl.program_id(0)",
            f"{self.a.kv_head} = tl.program_id(1)",
            f"blocks: tl.constexpr = ({self.width} + BLOCK_D - 1) // BLOCK_D",
            "split = tl.program_id(2) // blocks",
            f"member = tl.arange(0, {tile})",
            f"member_in = member < {m.group}",
            f"{self.a.head.var} = {query_head(self.a.kv_head, 'member', m)}",
            *self.columns("tl.program_id(2) % blocks", "[None, :]", "(1, BLOCK_D)"),
            "lane = tl.arange(0, BLOCK_L)",
        ]

    def _range(self) -> list[str]:
        low, high = self.bounds()
        return [
            f"low = {low}",
            f"high = {high}",
            "share = tl.cdiv(tl.cdiv(tl.maximum(high - low, 0), SPLITS), BLOCK_L) * BLOCK_L",
            "first = low + split * share",
            "last = tl.minimum(first + share, high)",
        ]


class _Merge(_Decode):
    """One query head: everything but the columns is a scalar."""

    def __init__(self, kernel: Kernel) -> None:
        a = kernel.schedule
        assert isinstance(a, Attention)
        d = a.columns.var
        super().__init__(kernel, Index(a.head.var), Index(d, f"{d}_in"))

    def head(self) -> list[str]:
        """Which row, head and columns the program has."""
        place = [f"{self.a.row.var} = tl.program_id(0)", f"{self.a.head.var} = tl.program_id(1)"]
        return [*place, *self.columns("tl.program_id(2)", "", "(BLOCK_D,)"), *self.row_loads(only=self.a.store.value)]
