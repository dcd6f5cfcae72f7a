"""What all ways through attention print: factors, scores and visibility, over the shared loop of `attention.j2`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from specc.kernels import Access, Attention, HeadMap, Kernel
from specc.ops import Expr, Num, Sort, Var, free_vars
from specc.targets.cuda.factor import FactorText, factor_text
from specc.targets.cuda.names import local_names
from specc.targets.cuda.scope import LONGEST_VECTOR, Inner, Scope
from specc.targets.cuda.slots import extent_text
from specc.targets.index_width import cut_positions


@dataclass(frozen=True)
class LoopText:
    """The loop over keys as `attention.j2` prints it. `element` defines what a score of one row and key needs, `score`
    computes it, and `seen` says whether it counts; `key_read` says which keys are read at all."""

    row: str
    key: str
    inner: str
    column: str
    dot: str
    depth: int
    width: int
    depth_first: str
    column_first: str
    q: FactorText
    k: FactorText
    v: FactorText
    key_read: str
    element: list[str]
    score: list[str]
    seen: str


def length(e: Expr) -> int:
    """An extent that lowering has found to be a number."""
    assert isinstance(e, Num)
    return int(e.value)


class AttentionText:
    """Names of a kernel's file, and texts over `rows`: the variables of a row, its heads, and a key."""

    def __init__(self, kernel: Kernel) -> None:
        assert isinstance(kernel.schedule, Attention)
        self.kernel, self.a = kernel, kernel.schedule
        a = self.a
        self.names = local_names(kernel)
        self.cut = cut_positions(kernel)
        self.depth, self.width = length(a.inner.extent), length(a.columns.extent)
        self.depth_first = self.names.fresh(f"{a.inner.var}_first")
        self.column_first = self.names.fresh(f"{a.columns.var}_first")
        self.fixed = [a.row.var, a.head.var, a.kv_head]

    def scope(self, *more: str) -> Scope:
        """For single elements, where `more` are local variables too."""
        alone = Inner(self.names.fresh("alone"), "0", LONGEST_VECTOR)
        scope = Scope(self.kernel, self.names, [*self.fixed, *more], alone)
        for access in self.a.row_loads:
            scope.note(access)
        return scope

    def row_loads(self, *exprs: Expr | None) -> list[str]:
        """Reads of a row that `exprs` need."""
        names = {n for e in exprs if e is not None for n in free_vars(e)}
        return self.reads([x for x in self.a.row_loads if x.name in names])

    def reads(self, accesses: Sequence[Access]) -> list[str]:
        """Some reads of a row; positions that are cut have 32 bits."""
        scope = self.scope()
        lines = [line for access in accesses for line in scope.load_row(access)]
        cut = re.compile(rf"^const int64_t ({'|'.join(map(re.escape, sorted(self.cut))) or '0'}) = (.*);$")
        return [cut.sub(r"const int \1 = specc::position(\2);", line) for line in lines]

    def bounds(self) -> tuple[str, str]:
        """Of the keys that a row sees: the first, and one past the last, inside of all keys."""
        size = extent_text(self.a.keys.extent)
        low = "0" if self.a.low is None else self._inside(self.a.low, "max(int({}), 0)")
        return low, size if self.a.high is None else self._inside(self.a.high, f"min(int({{}}), {size})")

    def _inside(self, bound: Expr, cut: str) -> str:
        """A bound of keys, cut on one side; one of 64 bits on both, so that 32 hold it."""
        scope = self.scope()
        if not scope.printer.is_long(bound):
            return cut.format(scope.text(bound))
        return f"specc::within({scope.text(bound)}, {extent_text(self.a.keys.extent)})"

    def visible(self) -> str | None:
        """The condition that a row sees a key, beside that the key is there."""
        scope = self.scope(self.a.keys.var)
        return None if self.a.visible is None else scope.text(self.a.visible)

    def score(self) -> list[str]:
        return self.scope(self.a.keys.var).printer.block([("score", self.a.score)])

    def loop(self, key_read: str, element: Sequence[str], seen: str) -> LoopText:
        a = self.a
        return LoopText(
            a.row.var, a.keys.var, a.inner.var, a.columns.var, a.dot, self.depth, self.width, self.depth_first,
            self.column_first, self._factor(a.q), self._factor(a.k), self._factor(a.v), key_read, list(element),
            self.score(), seen,
        )  # fmt: skip

    def _factor(self, access: Access) -> FactorText:
        a = self.a
        inner = Inner(a.columns.var, self.column_first, self.width)
        if access is not a.v:
            inner = Inner(a.inner.var, self.depth_first, self.depth)
        rows = [*self.fixed, a.keys.var]
        return factor_text(self.kernel, self.names, rows, inner, (access,), Var(access.name, Sort.REAL), access.name)

    def aligned(self) -> tuple[str, ...]:
        """Operands that are read or written in vectors."""
        return tuple(dict.fromkeys((self.a.q.operand, self.a.k.operand, self.a.v.operand, self.a.store.operand)))


def head_lines(head: str, kv_head: str, program: str, m: HeadMap) -> list[str]:
    """The KV head of a block and its query head; blocks of one KV head follow each other."""
    if m.group == 1:
        return [f"const int {kv_head} = {program};", f"const int {head} = {times(kv_head, m.outer)};"]
    member = f"{program} % {m.group}"
    return [
        f"const int {kv_head} = {program} / {m.group};",
        f"const int {head} = {times(kv_head, m.outer)} + {times(member, m.step)};",
    ]


def times(name: str, factor: int) -> str:
    """A product without the factor 1."""
    return name if factor == 1 else f"{name} * {factor}"


def shared_bytes(rows: int, keys: int, warps: int, depth: int, width: int, stored: int) -> int:
    """As `AttentionShape` computes it."""
    unit = 16 * (warps * 16 // rows)
    e, d = -(-depth // 16) * 16, -(-width // unit) * unit
    return max((rows * e + keys * (e + d) + rows * keys) * stored, rows * (d + 8) * 4)
