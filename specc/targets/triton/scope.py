"""Reads and writes of operands as Triton source: pointers, masks, neutral values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from specc.ir import Role
from specc.kernels import Access, Kernel, Store
from specc.ops import Expr, Neg, Num, Sort, Var, children, free_vars, rebuild, substitute, walk
from specc.targets.index_width import index_ranges
from specc.targets.text import LIMIT, call
from specc.targets.triton.names import Names, found
from specc.targets.triton.printer import Printer

ZERO = Num(Fraction(0), Sort.INDEX)
DEEPEST = 8
"""Columns that statements inside a loop are set in by."""


@dataclass(frozen=True)
class Index:
    """An index variable in one place: how it prints, and the condition that keeps it inside its axis (None: it never
    leaves it). `parts`: the variable as a sum of a scalar and what one program adds to it, so that the scalar's share
    of an offset can be formed apart."""

    view: str
    mask: str | None = None
    parts: tuple[str, str] | None = None


def storage(operand: str) -> str:
    """The storage type of an operand, as an expression of the kernel."""
    return f"{operand}_ptr.dtype.element_ty"


def main_operand(kernel: Kernel) -> str:
    """The operand whose storage type chooses the tiles: the first that holds reals in a type of its own."""
    reals = [o for o in kernel.operands if o.sort is Sort.REAL]
    own = [o.name for o in reals if o.role is not Role.ACCUMULATOR]
    return [*own, *(o.name for o in reals)][0]


def kernel_printer(kernel: Kernel, indices: Mapping[str, Index]) -> Printer:
    """A printer that knows the storage types and tables of `kernel`, and that indices are never negative."""
    roles = {str(Role.ACCUMULATOR): "tl.float32"}
    for o in kernel.operands:
        if o.sort is Sort.REAL:
            roles.setdefault(str(o.role), storage(o.name))
    first = main_operand(kernel)
    for role in (Role.WEIGHT, Role.ACTIVATION, Role.CACHE):
        roles.setdefault(str(role), storage(first))
    ranges = index_ranges(kernel)
    views = {i.view: ranges[n] for n, i in indices.items() if n in ranges}
    return Printer(roles, doubles(kernel), {*indices, *(i.view for i in indices.values())}, ranges | views)


def doubles(kernel: Kernel) -> frozenset[str]:
    """Names of what is read from tables, in float64."""
    tables = {t.name for t in kernel.tables}
    return frozenset(a.name for a in found(kernel.schedule, Access) if a.operand in tables)


class Scope:
    """Prints accesses where `indices` are local variables. What does not depend on `inner` goes into a row pointer,
    made once."""

    def __init__(self, kernel: Kernel, names: Names, indices: Mapping[str, Index], inner: Collection[str]) -> None:
        self.kernel, self.names, self.indices = kernel, names, dict(indices)
        self.inner = frozenset(inner)
        self.printer = kernel_printer(kernel, indices)
        self.tables = {t.name for t in kernel.tables}
        self.reach = {name: frozenset((name,)) for name in indices}
        self.rows: dict[tuple[str, tuple[str, ...]], str] = {}
        self.found: dict[str, str] = {}

    def seen(self, e: Expr) -> Expr:
        """`e` with every index variable as it prints here."""
        return substitute(e, {n: Var(i.view) for n, i in self.indices.items() if i.view != n})

    def text(self, e: Expr) -> str:
        return self.printer.expr(self.seen(e))

    def atom(self, e: Expr) -> str:
        return self.printer.atom(self.seen(e))

    def depends(self, *exprs: Expr | None) -> frozenset[str]:
        """Index variables that `exprs` depend on, through what was loaded."""
        names = [n for e in exprs if e is not None for n in free_vars(e)]
        return frozenset(v for n in names for v in self.reach.get(n, ()))

    def note(self, access: Access) -> None:
        """`access` is a local variable from here on."""
        self.reach[access.name] = self.depends(*access.indices, access.guard)

    def pointers(self, places: Iterable[Access | Store]) -> list[str]:
        """Row pointers that `places` need and that are not there yet."""
        lines: list[str] = []
        for place in places:
            if isinstance(place, Access):
                lines += self._finding(place, inside=False)
                self.note(place)
            outer, inner = self._terms(place)
            if outer and inner and (place.operand, outer) not in self.rows:
                name = self.names.fresh(f"{place.operand}_row")
                self.rows[place.operand, outer] = name
                lines.append(f"{name} = {' + '.join((f'{place.operand}_ptr', *outer))}")
        return lines

    def load(self, access: Access, upcast: bool = True, summed: bool = False) -> list[str]:
        """`name = tl.load(…)`, in float32 unless it is an index, a table, or kept in storage. `summed`: lanes past the
        end take part in a sum, so they read 0 where an index out of data is in range."""
        lines = self._finding(access, inside=True)
        items = [self.pointer(access)]
        mask = self.mask(access)
        if mask is not None:
            other, found = self._other(access), self.found.get(access.name)
            items += [f"mask={mask}", f"other={f'tl.where({found}, 0.0, {other})' if summed and found else other}"]
        self.note(access)
        cast = ".to(tl.float32)" if upcast and self._real(access) else ".to(tl.int64)" if self._long(access) else ""
        return [*lines, *call(f"{access.name} = tl.load", items, DEEPEST, cast)]

    def store(self, store: Store, value: str) -> list[str]:
        """`tl.store(…)` of a local variable or number, rounded to storage."""
        conditions = self._conditions(self.depends(*store.indices))
        rounded = value if isinstance(store.value, Num) else f"{value}.to({storage(store.operand)})"
        items = [self.pointer(store), rounded] + ([f"mask={' & '.join(conditions)}"] if conditions else [])
        return call("tl.store", items, DEEPEST)

    def values(self, stores: Sequence[Store]) -> tuple[list[str], list[str]]:
        """Statements that compute what is stored, and the texts that stand for it."""
        computed = {s: self.names.fresh(s.operand) for s in stores if not isinstance(s.value, Num | Var)}
        lines = self.block([(name, s.value) for s, name in computed.items()])
        return lines, [computed.get(s) or self.text(s.value) for s in stores]

    def block(self, named: Sequence[tuple[str, Expr]]) -> list[str]:
        """One assignment a name; what occurs twice among them is computed once, in names no later statement may use."""
        before = dict(self.printer.named)
        steps = [(name, self.seen(e)) for name, e in named]
        while True:
            lines = self.printer.block(steps)
            longer = self._split(steps)
            self.printer.named = dict(before)
            if longer is None:
                return lines
            steps = longer

    def _split(self, steps: list[tuple[str, Expr]]) -> list[tuple[str, Expr]] | None:
        """`steps` with a part of the first one whose line is too long as a step of its own; None when all fit."""
        room = LIMIT - DEEPEST
        for n, (name, e) in enumerate(steps):
            if len(f"{name} = {self.printer.expr(e)}") <= room:
                continue
            sizes = [(len(self.printer.expr(p)), p) for p in walk(e) if self._separable(p)]
            fitting = [(size, p) for size, p in sizes if size <= room // 2]
            if fitting:
                _, part = max(fitting, key=lambda found: found[0])
                own = self.names.fresh(f"{name}_part")
                return [*steps[:n], (own, part), (name, _replaced(e, part, Var(own, part.sort))), *steps[n + 1 :]]
        return None

    def _separable(self, e: Expr) -> bool:
        """Whether `e` may get a name: it is a truth value, or computed in float32, and has none yet."""
        named = isinstance(e, Neg | Num | Var) or e in self.printer.named
        return e.sort is not Sort.INDEX and bool(children(e)) and not named and not self.printer.is_double(e)

    def pointer(self, place: Access | Store) -> str:
        """The place of an element: its row pointer and what depends on the inner variables."""
        outer, inner = self._terms(place)
        if outer and inner:
            return " + ".join((self.rows[place.operand, outer], *inner))
        return " + ".join((f"{place.operand}_ptr", *outer, *inner))

    def mask(self, access: Access) -> str | None:
        """Where the element may be read; None: everywhere."""
        parts = self._conditions(self.depends(*access.indices))
        if access.guard is not None:
            parts.append(self.found.get(access.name) or self.atom(access.guard))
        return " & ".join(parts) or None

    def _conditions(self, variables: Collection[str]) -> list[str]:
        masks = [i.mask for n, i in self.indices.items() if n in variables and i.mask is not None]
        return list(dict.fromkeys(masks))

    def _finding(self, access: Access, inside: bool) -> list[str]:
        """Names the condition that an index out of data is in range, at the place where it is first known."""
        if not access.data_index or access.name in self.found or access.guard is None:
            return []
        if bool(self.depends(access.guard) & self.inner) is not inside:
            return []
        self.found[access.name] = self.names.fresh(f"{access.name}_found")
        return [f"{self.found[access.name]} = {self.text(access.guard)}"]

    def _terms(self, place: Access | Store) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Offsets in elements that do not depend on the inner variables, and those that do."""
        outer: list[str] = []
        inner: list[str] = []
        constant: list[str] = []
        strides = self._strides(place.operand, len(place.indices))
        for index, stride in zip(place.indices, strides, strict=True):
            if index != ZERO:
                moves = self.depends(index) & self.inner
                terms = inner if moves else outer if stride or not isinstance(index, Num) else constant
                terms += self._parts(place.operand, index, stride) or [self._term(place, index, stride)]
        return tuple(outer if inner else outer + constant), tuple(inner + constant if inner else inner)

    def _term(self, place: Access | Store, index: Expr, stride: str) -> str:
        if isinstance(place, Access) and place.name in self.found and set(free_vars(index)) - set(self.indices):
            text = self._in_range(place, index)
        elif stride and self._wide(place.operand):
            text = self.atom(index) + ".to(tl.int64)"
            text = f"tl.full((), {self.text(index)}, tl.int64)" if isinstance(index, Num) else text
        else:
            text = self.atom(index)
        return f"{text} * {stride}" if stride else text

    def _parts(self, operand: str, index: Expr, stride: str) -> list[str]:
        parts = self.indices[index.name].parts if isinstance(index, Var) and index.name in self.indices else None
        if parts is None:
            return []
        start, rest = parts
        start = f"{start}.to(tl.int64)" if self._wide(operand) and stride else start
        return [f"{start} * {stride}", f"{rest} * {stride}"] if stride else [start, rest]

    def _in_range(self, access: Access, index: Expr) -> str:
        """An index out of data, replaced by 0 where it is out of range, so that no offset overflows."""
        kind = "tl.int64" if self._wide(access.operand) else "tl.int32"
        return f"tl.where({self.found[access.name]}, {self.text(index)}, 0).to({kind})"

    def _strides(self, operand: str, rank: int) -> list[str]:
        if operand in self.tables:
            return [""] * rank
        axes = self.kernel.operand(operand).axes
        return [f"{operand}_stride_{a}" for a in axes[:-1]] + [""] * min(1, rank)

    def _wide(self, operand: str) -> bool:
        return operand not in self.tables and self.kernel.operand(operand).wide

    def _long(self, access: Access) -> bool:
        """Whether it reads an integer of any size."""
        known = access.name in self.printer.ranges
        return access.operand not in self.tables and not self._real(access) and not known

    def _real(self, access: Access) -> bool:
        return access.operand not in self.tables and self.kernel.operand(access.operand).sort is Sort.REAL

    def _other(self, access: Access) -> str:
        """What is read where the mask does not hold: NaN, or an index that is nowhere, for an index out of data."""
        if not self._real(access) and access.operand not in self.tables:
            return "-1" if access.data_index else "0"
        return 'float("nan")' if access.data_index else "0.0"


def _replaced(e: Expr, old: Expr, new: Expr) -> Expr:
    return new if e == old else rebuild(e, lambda c: _replaced(c, old, new))
