"""What all ways through attention print: places of rows and heads, bounds of keys, the loop over blocks of keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specc.kernels import Attention, HeadMap, Kernel
from specc.ops import Expr, Logic, Num, Sort, Var, free_vars
from specc.targets.index_width import FARTHEST, cut_positions
from specc.targets.triton.host import product_text
from specc.targets.triton.names import local_names
from specc.targets.triton.scope import Index, Scope
from specc.targets.triton.slots import map_configs
from specc.targets.triton.tiles import Config, Configs, next_power_of_two

SMALLEST = 16
"""Of any side of a tile: what a tensor core takes."""


@dataclass(frozen=True)
class LoopText:
    """The loop over blocks of keys as its template prints it; `rows` in a tile."""

    rows: str
    depth: str
    whole_q: list[str]
    part_q: list[str]
    depth_index: list[str]
    key_index: list[str]
    load_k: list[str]
    scores: list[str]
    seen: list[str]
    load_v: list[str]


def extent(e: Expr) -> int:
    """An extent that lowering has found to be a number."""
    assert isinstance(e, Num)
    return int(e.value)


def fitted(configs: Configs, a: Attention) -> Configs:
    """No tile larger than its side needs."""
    limits = {"BLOCK_E": extent(a.inner.extent), "BLOCK_D": extent(a.columns.extent)}

    def tiles(c: Config) -> tuple[tuple[str, int], ...]:
        return tuple(
            (n, min(size, max(SMALLEST, next_power_of_two(limits[n]))) if n in limits else size) for n, size in c.tiles
        )

    return map_configs(configs, tiles)


class AttentionText:
    """Names and scopes of one device function. `fixed` are the variables that a program does not loop over."""

    def __init__(self, kernel: Kernel, fixed: Mapping[str, Index], column: Index) -> None:
        assert isinstance(kernel.schedule, Attention)
        self.kernel, self.a = kernel, kernel.schedule
        a = self.a
        self.names = local_names(kernel)
        self.cut = cut_positions(kernel)
        self.depth, self.width = extent(a.inner.extent), extent(a.columns.extent)
        self.fixed, self.column = dict(fixed), {a.columns.var: column}
        self.reader = self.scope(self.fixed)
        self.out = self.scope({**self.fixed, **self.column}, a.columns.var)

    def scope(self, indices: Mapping[str, Index], *inner: str) -> Scope:
        """A scope with names of this function."""
        return Scope(self.kernel, self.names, indices, inner)

    def row_loads(self, *scopes: Scope, only: Expr | None = None) -> list[str]:
        """Reads of the rows, known in `scopes` from then on; only what an expression needs, if it is given."""
        lines: list[str] = []
        for access in self.a.row_loads:
            if only is not None and access.name not in free_vars(only):
                continue
            lines += [*self.reader.pointers([access]), *self.reader.load(access)]
            if access.name in self.cut:
                name = access.name
                lines.append(f"{name} = tl.minimum(tl.maximum({name}, -{FARTHEST}), {FARTHEST}).to(tl.int32)")
            for scope in (*scopes, self.out):
                scope.note(access)
        return lines

    def bounds(self) -> tuple[str, str]:
        """Of the keys that a row sees: the first, and one past the last, inside of all keys."""
        size = product_text((self.a.keys.extent,))
        low = "0" if self.a.low is None else self._inside(self.a.low, "tl.maximum({}, 0)")
        return low, size if self.a.high is None else self._inside(self.a.high, f"tl.minimum({{}}, {size})")

    def _inside(self, bound: Expr, cut: str) -> str:
        """A bound of keys, cut on one side; one of 64 bits on both, so that 32 hold it."""
        text, size = self.out.text(bound), product_text((self.a.keys.extent,))
        if not self.out.printer.is_long(bound):
            return cut.format(text)
        return f"tl.minimum(tl.maximum({text}, 0), {size}).to(tl.int32)"

    def seen(self, scope: Scope, name: str, inside: str) -> list[str]:
        """`name`: where a row sees a key. `inside` says that it is there."""
        there, visible = Var(inside, Sort.BOOL), self.a.visible
        if visible is None:
            return scope.block([(name, there)])
        parts = visible.args if isinstance(visible, Logic) and visible.op == "and" else (visible,)
        return scope.block([(name, Logic("and", (there, *parts)))])

    def epilogue(self) -> list[str]:
        """From the weighted sum to the result."""
        lines, (result,) = self.out.values([self.a.store])
        return [*self.out.pointers([self.a.store]), *lines, *self.out.store(self.a.store, result)]

    def loop(self, rows: str, scores: Scope, there: list[str], seen: list[str]) -> tuple[list[str], LoopText]:
        """Row pointers, and the loop. `scores` is where scores are computed; `there` says which keys are read, `seen`
        which scores count."""
        a, key, e = self.a, self.a.keys.var, self.a.inner.var
        across = Index(f"{key}[None, :]", f"{key}_in[None, :]", ("start", "lane[None, :]"))
        down = Index(f"{key}[:, None]", f"{key}_in[:, None]", ("start", "lane[:, None]"))
        q = self.scope({**self.fixed, e: Index(f"{e}[None, :]", f"{e}_in[None, :]")}, e)
        k = self.scope({**self.fixed, key: across, e: Index(f"{e}[:, None]", f"{e}_in[:, None]")}, key, e)
        v = self.scope({**self.fixed, key: down, **self.column}, key, a.columns.var)
        pointers = [*q.pointers([a.q]), *k.pointers([a.k]), *v.pointers([a.v])]
        load_q = q.load(a.q, upcast=False)
        inside = f"{e}_in = {e} < {self.depth} if {self.depth} % BLOCK_E != 0 else tl.full((BLOCK_E,), True, tl.int1)"
        return pointers, LoopText(
            rows, str(self.depth), [f"{e} = tl.arange(0, BLOCK_E)", inside, *load_q], load_q,
            [f"{e} = first_e + tl.arange(0, BLOCK_E)", inside],
            [f"{key} = start + lane", *there], k.load(a.k, upcast=False),
            scores.block([("score", a.score)]), seen, v.load(a.v, upcast=False),
        )  # fmt: skip

    def shared(self) -> dict[str, object]:
        """Names that the templates share."""
        a = self.a
        return {"acc": a.accumulator, "dot": a.dot, "q": a.q.name, "k": a.k.name, "v": a.v.name}


def head_lines(head: str, kv_head: str, program: str, m: HeadMap) -> list[str]:
    """The KV head of a program and its query head; programs of one KV head follow each other."""
    if m.group == 1:
        return [f"{kv_head} = {program}", f"{head} = {times(kv_head, m.outer)}"]
    return [f"{kv_head} = {program} // {m.group}", f"{head} = {query_head(kv_head, f'{program} % {m.group}', m)}"]


def query_head(kv_head: str, member: str, m: HeadMap) -> str:
    """The query head that is `member` of a KV head."""
    return f"{times(kv_head, m.outer)} + {times(member, m.step)}"


def times(name: str, factor: int) -> str:
    """A product without the factor 1."""
    return name if factor == 1 else f"{name} * {factor}"
