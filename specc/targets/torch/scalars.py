"""Functions beside the nodes: the scalar functions a formula calls, and tables of what depends on indices alone."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from specc.formula_text import expr_text, snake
from specc.ops import Apply, Call, Expr, Load, Num, ScalarDef, Size, Sort, State, free_vars, walk
from specc.targets.torch.code import Code, call
from specc.targets.torch.loads import Item, into_frame
from specc.targets.torch.scope import Block, Frame, Kind, Names, Value

if TYPE_CHECKING:
    from specc.targets.torch.arrays import Lowerer

LINE = 110
WRAP = LINE - 8
PAD = "    "


@dataclass(frozen=True)
class Function:
    """A printed function: parameters with their types, result type, paragraphs of its docstring, lines of its body."""

    name: str
    params: tuple[str, ...]
    result: str
    doc: tuple[str, ...]
    body: tuple[str, ...]
    cached: bool = False

    @property
    def head(self) -> tuple[str, ...]:
        """`def name(params) -> result:`, one parameter a line when it is long."""
        line = f"def {self.name}({', '.join(self.params)}) -> {self.result}:"
        if len(line) <= LINE:
            return (line,)
        inner = ", ".join(self.params)
        middle = (f"    {inner}",) if len(inner) + 4 <= LINE else tuple(f"    {p}," for p in self.params)
        return (f"def {self.name}(", *middle, f") -> {self.result}:")

    @property
    def docstring(self) -> tuple[str, ...]:
        """The docstring's lines, indented; "" in `doc` parts paragraphs."""
        lines = [
            w for d in self.doc for part in _cases(d) for w in textwrap.wrap(part, WRAP, subsequent_indent=PAD) or [""]
        ]
        first, *rest = lines
        if not rest:
            return (f'    """{first}"""',)
        return (f'    """{first}', *(f"    {line}" if line else "" for line in rest), '    """')


def _cases(text: str) -> list[str]:
    """A long formula by cases, one case a line."""
    if len(text) <= WRAP or " = if " not in text:
        return [text]
    return text.replace(" = if ", f" =\n{PAD}if ").replace(" else ", f"\n{PAD}else ").split("\n")


@dataclass
class Helpers:
    """Scalar functions and tables that the printed nodes call, in the order in which they are first needed."""

    names: Names = field(default_factory=Names)
    owner: str = ""
    """The node whose tables come next."""
    scalars: dict[tuple[ScalarDef, tuple[Kind, ...]], Function] = field(default_factory=dict)
    tables: dict[tuple[str, Expr, tuple[Expr, ...]], Function] = field(default_factory=dict)

    def reserve(self, e: Expr) -> set[str]:
        """Names of the scalar functions that `e` may call."""
        found: set[str] = set()
        for x in walk(e):
            if isinstance(x, Apply):
                found |= {snake(x.fn.name)} | self.reserve(x.fn.computed or x.fn.body)
        return found

    def scalar(self, fn: ScalarDef, values: Sequence[Value]) -> str:
        """The name of `fn` printed for arguments of these kinds."""
        kinds = tuple(Kind.DATA if v.kind is Kind.EXACT else v.kind for v in values)
        if (fn, kinds) not in self.scalars:
            printed = self._print(fn, kinds)
            self.scalars[fn, kinds] = printed
        return self.scalars[fn, kinds].name

    def _print(self, fn: ScalarDef, kinds: Sequence[Kind]) -> Function:
        from specc.targets.torch.arrays import Lowerer

        local = Names(set(self.names.taken))
        names = [local.fresh(p.name) for p in fn.params]
        arrays = [n for n, k in zip(names, kinds, strict=True) if k is not Kind.CONST]
        reals = [n for n, k in zip(names, kinds, strict=True) if k is Kind.DATA]
        params = {p.name: Value(Code(n), k) for p, n, k in zip(fn.params, names, kinds, strict=True)}
        low = Lowerer(
            Block(local),
            self,
            {},
            params=params,
            device=f"{arrays[0]}.device" if arrays else "None",
            dtype=f"{reals[0]}.dtype" if reals else "torch.float64",
        )
        result = low.lower(fn.computed or fn.body, ())
        name = self.names.fresh(snake(fn.name))
        listed = tuple(f"{n}: {_annotation(k, p.sort)}" for n, k, p in zip(names, kinds, fn.params, strict=True))
        body = (*low.block.lines, f"return {result.code.text}")
        return Function(name, listed, _annotation(result.kind, fn.sort), _definition(fn), body)

    def table(self, e: Call | Apply, frame: Frame, low: Lowerer) -> Value | None:
        """A call that depends on nothing but indices of known ranges, as a table that is made once."""
        axes = tuple(v for v in frame if v in free_vars(e))
        bad = any(isinstance(x, Load | State | Size) for x in walk(e)) or any(v in low.loops for v in free_vars(e))
        if bad or not axes or len(axes) != len(free_vars(e)):
            return None
        extents = tuple(low.extents[v] for v in axes)
        if not all(isinstance(n, Num) for n in extents) or e.sort is not Sort.REAL:
            return None
        key = (self.owner, e, extents)
        if key not in self.tables:
            self.tables[key] = self._table(e, axes, low)
        items = [Item(":", (v,)) for v in axes]
        code, placed = into_frame(call(self.tables[key].name, low.device), items, frame)
        return Value(code, Kind.EXACT, placed)

    def _table(self, e: Call | Apply, axes: Frame, outer: Lowerer) -> Function:
        from specc.targets.torch.arrays import Lowerer

        what = e.fn.name if isinstance(e, Apply) else e.fn
        name = self.names.fresh(f"{self.owner}_{snake(what)}" if self.owner else f"{snake(what)}_table")
        block = Block(Names(set(self.names.taken)))
        low = Lowerer(block, self, {}, {v: outer.extents[v] for v in axes}, in_table=True)
        result = low.lower(e, axes)
        ranges = ", ".join(f"{v} < {expr_text(outer.extents[v])}" for v in axes)
        doc = (f"{expr_text(e)} for {ranges}, in float64.",)
        body = (*low.block.lines, f"return {result.code.text}")
        return Function(name, ("device: torch.device",), "Tensor", doc, body, cached=True)


def _annotation(kind: Kind, sort: Sort) -> str:
    if kind is not Kind.CONST:
        return "Tensor"
    return {Sort.INDEX: "int", Sort.REAL: "float", Sort.BOOL: "bool"}[sort]


def _definition(fn: ScalarDef) -> tuple[str, ...]:
    head = f"{fn.name}({', '.join(p.name for p in fn.params)}) = "
    lines = [head + expr_text(fn.body)]
    if fn.computed is not None:
        lines.append("computed as " + expr_text(fn.computed))
    return tuple(lines)
