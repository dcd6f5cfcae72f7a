"""Reads and writes of operands as CUDA C++: row pointers, vectors of VEC neighbouring elements, single elements."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from specc.ir import Role
from specc.kernels import Access, Kernel, Store
from specc.ops import Bin, Expr, Num, Sort, Var, free_vars
from specc.targets.cuda.printer import Printer
from specc.targets.index_width import index_ranges
from specc.targets.naming import Names, found
from specc.targets.printing import ATOM, PRODUCT

ZERO = Num(Fraction(0), Sort.INDEX)
LONGEST_VECTOR = 8
"""Elements of the longest vector, 16 bytes of the narrowest storage type; every other length divides it."""


@dataclass(frozen=True)
class Inner:
    """The variable along which a thread handles VEC neighbours: it is `first + n`. `length`: where it ends.
    `inside`: a condition that keeps `first` inside, where it may leave (None: it never does)."""

    var: str
    first: str
    length: int
    inside: str | None = None

    @property
    def ragged(self) -> bool:
        """Whether a vector may pass the end."""
        return self.length % LONGEST_VECTOR != 0


def storage(kernel: Kernel, operand: str) -> str:
    """The storage type of an operand's elements."""
    if operand in {t.name for t in kernel.tables}:
        return "double"
    return "specc::Accumulator<Element>" if kernel.operand(operand).role is Role.ACCUMULATOR else "Element"


def doubles(kernel: Kernel) -> frozenset[str]:
    """Names of what is read from tables, in float64."""
    tables = {t.name for t in kernel.tables}
    return frozenset(a.name for a in found(kernel.schedule, Access) if a.operand in tables)


def kernel_printer(kernel: Kernel, nonneg: Collection[str]) -> Printer:
    """A printer that knows the storage types and tables of `kernel`."""
    roles = {str(role): "Element" for role in (Role.WEIGHT, Role.ACTIVATION, Role.CACHE)}
    roles[str(Role.ACCUMULATOR)] = "specc::Accumulator<Element>"
    return Printer(roles, doubles(kernel), nonneg, index_ranges(kernel))


class Scope:
    """Prints accesses where `rows` are local variables, and `inner` runs over a vector."""

    def __init__(self, kernel: Kernel, names: Names, rows: Sequence[str], inner: Inner) -> None:
        self.kernel, self.names, self.inner = kernel, names, inner
        self.printer = kernel_printer(kernel, {*rows, inner.var})
        self.tables = {t.name for t in kernel.tables}
        self.reach: dict[str, frozenset[str]] = {name: frozenset((name,)) for name in (*rows, inner.var)}
        self.row_pointers: dict[tuple[str, str], str] = {}
        self.found: dict[str, str] = {}
        self.valid: dict[str, str] = {}
        """By access through an index out of data: 1 where that is in range, else NaN. A factor, not a choice, so that a
        compiler makes no vector load conditional and splits it."""
        self.results: Mapping[Store, str] = {}
        """Vectors that collect what is stored."""

    def depends(self, *exprs: Expr | None) -> frozenset[str]:
        """Index variables that `exprs` depend on, through what was loaded."""
        names = [n for e in exprs if e is not None for n in free_vars(e)]
        return frozenset(v for n in names for v in self.reach.get(n, ()))

    def moves(self, *exprs: Expr | None) -> bool:
        """Whether `exprs` depend on the inner variable."""
        return self.inner.var in self.depends(*exprs)

    def is_vector(self, place: Access | Store) -> bool:
        """Whether VEC neighbours of the inner variable are neighbours in memory, on a boundary of a vector."""
        *outer, last = place.indices or (ZERO,)
        guard = place.guard if isinstance(place, Access) else None
        return _shift(last, self.inner.var) is not None and not self.moves(*outer, guard) and self.is_real(place)

    def is_real(self, place: Access | Store) -> bool:
        return place.operand in self.tables or self.kernel.operand(place.operand).sort is Sort.REAL

    def text(self, e: Expr) -> str:
        return self.printer.expr(e)

    def pointers(self, places: Iterable[Access | Store]) -> list[str]:
        """Row pointers that `places` need and that are not there yet; integers are read without."""
        lines: list[str] = []
        for place in places:
            if isinstance(place, Access):
                lines += self._finding(place)
                self.note(place)
            row = self._row(place) if self.is_real(place) else ""
            if row and (place.operand, row) not in self.row_pointers:
                name = self.names.fresh(f"{place.operand}_row")
                self.row_pointers[place.operand, row] = name
                lines.append(f"const auto {name} = {place.operand}_ptr + {row};")
        return lines

    def note(self, access: Access) -> None:
        """Makes known what an access depends on."""
        self.reach[access.name] = self.depends(*access.indices, access.guard)

    def load_row(self, access: Access) -> list[str]:
        """A single element that does not depend on the inner variable, as a local variable."""
        lines = self.pointers([access])
        return [*lines, self._single(access)]

    def load_vector(self, access: Access) -> str:
        """`VEC` neighbouring elements as `NAME_v`."""
        return f"const auto {access.name}_v = {self.vector(access)};"

    def vector(self, access: Access) -> str:
        """The expression that reads a vector; zeros where the guard of the access, or the inner variable, is out."""
        conditions = [self.inner.inside] if self.inner.inside else []
        if access.guard is not None and access.name not in self.found:
            conditions.append(self.printer.expr(access.guard))
        place, left = self.place(access), f", {self.left()}" if self.inner.ragged else ""
        name = "load_up_to" if self.inner.ragged else "load"
        call = f"specc::{name}<VEC>({place}{left})"
        empty = f"specc::Vec<{self.storage(access)}, VEC>{{}}"
        return f"{_all(conditions)} ? {call} : {empty}" if conditions else call

    def storage(self, place: Access | Store) -> str:
        return storage(self.kernel, place.operand)

    def left(self) -> str:
        return f"{self.inner.length} - {self.inner.first}"

    def element(self, access: Access, vector: str | None = None) -> str:
        """Inside the loop over a vector: one element as a local variable. `vector`: what holds its vector."""
        if not self.is_vector(access):
            return self._single(access)
        value = f"{vector or f'{access.name}_v'}.at[n]"
        return f"const {self._value(access, value)};"

    def store_vector(self, store: Store) -> str:
        """The statement that stores `OPERAND_v`; the place is inside unless the row is ragged."""
        if self.inner.ragged:
            return f"specc::store_up_to({self.place(store)}, {self.results[store]}, {self.left()});"
        return f"specc::store({self.place(store)}, {self.results[store]});"

    def store_single(self, store: Store, value: str) -> str:
        place = f"{self._pointer(store)}[{self._inner_offset(store)}]"
        return f"{place} = specc::round_to<{self.storage(store)}>({value});"

    def place(self, place: Access | Store) -> str:
        """The address of the first element of a vector."""
        *_, last = place.indices
        shift = _shift(last, self.inner.var)
        assert shift is not None
        return f"{self._pointer(place)} + {self.inner.first}" + (f" + {shift}" if shift else "")

    def address(self, access: Access) -> str:
        """As `place`, from the start of the operand."""
        row = self._row(access)
        shift = _shift(access.indices[-1], self.inner.var)
        assert shift is not None
        return " + ".join(
            [f"{access.operand}_ptr", *filter(None, [row]), self.inner.first, *([str(shift)] if shift else [])]
        )

    def _single(self, access: Access) -> str:
        guards = [] if access.guard is None else [self.found.get(access.name) or self.printer.expr(access.guard)]
        if self.inner.ragged and self.moves(*access.indices):
            guards.insert(0, f"{self.inner.var} < {self.inner.length}")
        if not self.is_real(access):
            value = f"specc::index_at({access.operand}_ptr, index_bytes, {self._offset(access)})"
            return f"const int64_t {access.name} = {f'{_all(guards)} ? {value} : -1' if guards else value};"
        value = f"{self._pointer(access)}[{self._inner_offset(access)}]"
        text = self._value(access, value)
        if not guards or access.name in self.found:
            return f"const {text};"
        name, _, read = text.partition(" = ")
        return f"const {name} = {_all(guards)} ? {read} : real(0);"

    def _value(self, access: Access, value: str) -> str:
        """`real NAME = …` of a stored element; NaN where an index out of data is out of range."""
        if access.operand in self.tables:
            return f"double {access.name} = {value}"
        factor = f" * {self.valid[access.name]}" if access.name in self.valid else ""
        return f"real {access.name} = specc::to_real({value}){factor}"

    def _finding(self, access: Access) -> list[str]:
        """Names the condition that an index out of data is in range."""
        if not access.data_index or access.guard is None or access.name in self.found or self.moves(access.guard):
            return []
        found = self.found[access.name] = self.names.fresh(f"{access.name}_found")
        lines = [f"const bool {found} = {self.printer.expr(access.guard)};"]
        if self.is_real(access):
            valid = self.valid[access.name] = self.names.fresh(f"{access.name}_valid")
            lines.append(f"const real {valid} = {found} ? 1.0f : specc::not_a_number();")
        return lines

    def _pointer(self, place: Access | Store) -> str:
        return self.row_pointers.get((place.operand, self._row(place)), f"{place.operand}_ptr")

    def _row(self, place: Access | Store) -> str:
        """The offset of what does not depend on the inner variable, but for the last index."""
        return " + ".join(
            self._term(place, i, s) for i, s in self._strided(place) if s and i != ZERO and not self.moves(i)
        )

    def _inner_offset(self, place: Access | Store) -> str:
        terms = [self._term(place, i, s) for i, s in self._strided(place) if i != ZERO and (not s or self.moves(i))]
        return " + ".join(terms) or "0"

    def _offset(self, place: Access | Store) -> str:
        return " + ".join(self._term(place, i, s) for i, s in self._strided(place) if i != ZERO) or "0"

    def _term(self, place: Access | Store, index: Expr, stride: str) -> str:
        text = self.printer._text(index, PRODUCT if stride else ATOM - 3)
        if isinstance(place, Access) and place.name in self.found and self._from_data(index):
            text = f"({self.found[place.name]} ? {self.printer.expr(index)} : 0)"
        return f"{text} * {stride}" if stride else text

    def _from_data(self, index: Expr) -> bool:
        return any(n not in self.reach or self.reach[n] != {n} for n in free_vars(index))

    def _strided(self, place: Access | Store) -> list[tuple[Expr, str]]:
        """Indices with their strides; that of the last axis is 1, written as nothing."""
        if place.operand in self.tables:
            return [(i, "") for i in place.indices]
        axes = self.kernel.operand(place.operand).axes
        strides = [*(f"{place.operand}_stride_{a}" for a in axes[:-1]), ""]
        return list(zip(place.indices, strides, strict=False))


def _shift(index: Expr, var: str) -> int | None:
    """`c`, where an index is `var + c` and a vector at `var` a vector there; None for other forms."""
    match index:
        case Var(name) if name == var:
            return 0
        case Bin("+", Var(name), Num(c)) | Bin("+", Num(c), Var(name)) if name == var:
            return int(c) if c.denominator == 1 and c % LONGEST_VECTOR == 0 else None
        case Bin("-", Var(name), Num(c)) if name == var:
            return -int(c) if c.denominator == 1 and c % LONGEST_VECTOR == 0 else None
    return None


def _all(conditions: Sequence[str]) -> str:
    return conditions[0] if len(conditions) == 1 else " && ".join(f"({c})" if " " in c else c for c in conditions)
