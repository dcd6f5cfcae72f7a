"""Reads of operands as named accesses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import takewhile

from specc.kernels import Access
from specc.lower.draft import NoFit
from specc.lower.logic import both, either, negation, weakened
from specc.lower.names import Names
from specc.lower.visible import covered
from specc.ops import Bin, Cmp, Expr, Formula, Load, Logic, Num, Select, Sort, Var, free_vars, rebuild, walk


class Reader:
    """Replaces element reads by names and keeps the accesses, in order of first need.

    `axes`: extents of the index variables. `inner`: the one of them that runs inside a row. `late`: names of values
    that are known only after all reads."""

    def __init__(
        self,
        formula: Formula,
        names: Names,
        axes: Mapping[str, Expr],
        inner: str | None = None,
        late: Collection[str] = (),
    ) -> None:
        self.inputs = {t.name: t for t in formula.inputs}
        self.names, self.axes, self.inner, self.late = names, axes, inner, late
        self.found: dict[str, Access] = {}
        self.reach = {v: frozenset((v,)) for v in axes}
        """Index variables on which a name depends."""

    def __call__(self, e: Expr, guard: Expr | None = None, lazy: Expr | None = None) -> Expr:
        """`e` with every Load replaced by a Var of its access. `guard` and `lazy` hold where `e` is evaluated; `lazy`
        guards only those reads that might be out of range without it."""
        match e:
            case Load():
                return self._load(e, guard, lazy)
            case Select(cond, then, other):
                known = self(cond, guard, lazy)
                no = negation(known)
                if _of_indices(known):
                    return Select(
                        known, self(then, both(guard, known), lazy), self(other, both(guard, no), lazy), e.sort
                    )
                return Select(known, self(then, guard, both(lazy, known)), self(other, guard, both(lazy, no)), e.sort)
            case Logic("and" | "or" as op, (first, *rest)):
                return self._junction(op, first, rest, guard, lazy)
        return rebuild(e, lambda child: self(child, guard, lazy))

    def _junction(self, op: str, first: Expr, rest: list[Expr], guard: Expr | None, lazy: Expr | None) -> Expr:
        """Each part is only evaluated where those before it leave the truth open."""
        parts = [self(first, guard, lazy)]
        for e in rest:
            lazy = both(lazy, parts[-1] if op == "and" else negation(parts[-1]))
            parts.append(self(e, guard, lazy))
        return Logic(op, tuple(parts))

    def _load(self, e: Load, guard: Expr | None, lazy: Expr | None) -> Var:
        if lazy is not None and not self.in_range(e, guard):
            guard = both(guard, lazy)
            if set(free_vars(lazy)) & set(self.late):
                raise NoFit(f"`{e.tensor}` may only be read where a reduction of the same row says so")
        indices = tuple(self(i, guard, lazy) for i in e.indices)
        guard = self._of_row(e, indices, guard)
        from_data = [n for n, i in enumerate(e.indices) if reads(i)]
        for n in from_data:
            guard = both(guard, _inside(indices[n], self.inputs[e.tensor].dims[n]))
        name = self.names.read(e.tensor, indices, _stem(e.tensor, indices))
        known = self.found.get(name)
        if known is None:
            self.found[name] = Access(name, e.tensor, indices, guard, bool(from_data))
        else:
            self.found[name] = merged(known, guard, {*self.axes, *takewhile(lambda n: n != name, self.found)})
        self.reach[name] = self._reach(*indices, self.found[name].guard)
        return Var(name, e.sort)

    def _of_row(self, e: Load, indices: tuple[Expr, ...], guard: Expr | None) -> Expr | None:
        """`guard`; for a read at one place a row what it says of the row, and for one at one place in all nothing.
        Raises NoFit where that is not enough."""
        place, told = self._reach(*indices), self._reach(guard)
        foreign = told if not place else told & {self.inner} - place
        if guard is None or not foreign:
            return guard
        weaker = weakened(guard, {n for n, axes in self.reach.items() if not axes & foreign})
        if not self.in_range(e, weaker):
            listed = ", ".join(f"`{n}`" for n in sorted(foreign))
            raise NoFit(f"`{e.tensor}` is read where only {listed} says so, on which its place does not depend")
        return weaker

    def _reach(self, *exprs: Expr | None) -> frozenset[str]:
        names = [n for e in exprs if e is not None for n in free_vars(e)]
        return frozenset(v for n in names for v in self.reach.get(n, ()))

    def in_range(self, e: Load, given: Expr | None = None) -> bool:
        """Whether every index is seen to lie in the operand where `given` holds, or comes from data and is checked.
        A table is made to measure."""
        if e.tensor not in self.inputs:
            return True
        places = zip(e.indices, self.inputs[e.tensor].dims, strict=True)
        return all(reads(index) or covered(index, dim, self.axes, given) for index, dim in places)

    @property
    def accesses(self) -> tuple[Access, ...]:
        return tuple(self.found.values())


def reads(index: Expr) -> bool:
    """Whether an index comes from data."""
    return any(isinstance(x, Load) for x in walk(index))


def _stem(tensor: str, indices: tuple[Expr, ...]) -> str:
    offset = _offset(indices[-1]) if indices else 0
    return f"{tensor}_{'p' if offset > 0 else 'm'}{abs(offset)}" if offset else tensor


def _offset(index: Expr) -> int:
    match index:
        case Bin("+", _, Num(c)):
            return int(c)
        case Bin("-", _, Num(c)):
            return -int(c)
    return 0


def merged(known: Access, guard: Expr | None, before: Collection[str]) -> Access:
    """An access that is needed where `guard` holds as well, in terms of what is known `before` it."""
    if guard is None or known.guard is None:
        return replace(known, guard=None)
    return replace(known, guard=either(known.guard, weakened(guard, before)))


def _inside(index: Expr, dim: Expr) -> Expr:
    return Logic("and", (Cmp(">=", index, Num(Fraction(0), Sort.INDEX)), Cmp("<", index, dim)))


def _of_indices(cond: Expr) -> bool:
    return all(x.sort is not Sort.REAL for x in walk(cond))


def depends_on(access: Access) -> tuple[str, ...]:
    """Variables and earlier accesses that the place of a read depends on."""
    exprs = (*access.indices, *((access.guard,) if access.guard is not None else ()))
    return tuple(dict.fromkeys(n for e in exprs for n in free_vars(e)))


def axis_names(accesses: Iterable[tuple[Expr, ...]], rank: int) -> tuple[str, ...]:
    """A name per axis for stride arguments: the variable that alone indexes it in every access, else its number."""
    places, names = list(accesses), list[str]()
    for axis in range(rank):
        plain = sorted({_plain(i[axis], axis) for i in places})
        name = plain[0] if len(plain) == 1 else f"d{axis}"
        names.append(name if name not in names else f"d{axis}")
    return tuple(names)


def _plain(index: Expr, axis: int) -> str:
    return index.name if isinstance(index, Var) else f"d{axis}"
