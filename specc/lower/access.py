"""Reads of operands as named accesses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import takewhile

from specc.kernels import Access
from specc.lower.draft import NoFit
from specc.lower.names import Names
from specc.lower.ranges import bounds_of, static_ranges
from specc.ops import Bin, Cmp, Expr, Formula, Load, Logic, Num, Select, Sort, Var, free_vars, rebuild, walk


class Reader:
    """Replaces element reads by names and keeps the accesses, in order of first need.

    `axes`: extents of the index variables. `late`: names of values that are known only after all reads."""

    def __init__(self, formula: Formula, names: Names, axes: Mapping[str, Expr], late: Collection[str] = ()) -> None:
        self.inputs = {t.name: t for t in formula.inputs}
        self.names, self.axes, self.late = names, axes, late
        self.ranges = static_ranges(axes)
        self.found: dict[str, Access] = {}

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
        if lazy is not None and not self.in_range(e):
            guard = both(guard, lazy)
            if set(free_vars(lazy)) & set(self.late):
                raise NoFit(f"`{e.tensor}` may only be read where a reduction of the same row says so")
        indices = tuple(self(i, guard, lazy) for i in e.indices)
        from_data = [n for n, i in enumerate(e.indices) if _reads(i)]
        for n in from_data:
            guard = both(guard, _inside(indices[n], self.inputs[e.tensor].dims[n]))
        name = self.names.read(e.tensor, indices, _stem(e.tensor, indices))
        known = self.found.get(name)
        if known is None:
            self.found[name] = Access(name, e.tensor, indices, guard, bool(from_data))
        else:
            self.found[name] = merged(known, guard, {*self.axes, *takewhile(lambda n: n != name, self.found)})
        return Var(name, e.sort)

    def in_range(self, e: Load) -> bool:
        """Whether every index is seen to lie in the operand whatever the data, or comes from data and is checked."""
        dims = self.inputs[e.tensor].dims if e.tensor in self.inputs else ()
        return all(self._covers(d, i) for d, i in zip(dims, e.indices, strict=False))

    def _covers(self, dim: Expr, index: Expr) -> bool:
        if _reads(index) or (isinstance(index, Var) and self.axes.get(index.name) == dim):
            return True
        found = bounds_of(index, self.ranges)
        return found is not None and isinstance(dim, Num) and found[0] >= 0 and found[1] < dim.value

    @property
    def accesses(self) -> tuple[Access, ...]:
        return tuple(self.found.values())


def _reads(index: Expr) -> bool:
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


def both(a: Expr | None, b: Expr | None) -> Expr | None:
    """Conjunction; None is no condition."""
    if a is None or b is None:
        return b if a is None else a
    return a if a == b else Logic("and", (a, b))


def either(a: Expr | None, b: Expr | None) -> Expr | None:
    """Disjunction; None always holds."""
    if a is None or b is None:
        return None
    return a if a == b else Logic("or", (a, b))


def merged(known: Access, guard: Expr | None, before: Collection[str]) -> Access:
    """An access that is needed where `guard` holds as well, in terms of what is known `before` it."""
    if guard is None or known.guard is None:
        return replace(known, guard=None)
    return replace(known, guard=either(known.guard, weakened(guard, before)))


def weakened(e: Expr, known: Collection[str], positive: bool = True) -> Expr | None:
    """A condition over `known` names that holds wherever `e` does (or where it does not, if not `positive`)."""
    match e:
        case Logic("not", (arg,)):
            return weakened(arg, known, not positive)
        case Logic("and" | "or" as op, args):
            parts = [weakened(a, known, positive) for a in args]
            return reduce(both if (op == "and") == positive else either, parts)
    if set(free_vars(e)) <= set(known):
        return e if positive else negation(e)
    return None


def negation(e: Expr) -> Expr:
    """`not e`. A comparison of indices is turned round; one of real numbers is not, for NaN fails both."""
    flipped = {"<": ">=", ">=": "<", "<=": ">", ">": "<=", "==": "!=", "!=": "=="}
    if isinstance(e, Cmp) and e.left.sort is Sort.INDEX and e.right.sort is Sort.INDEX:
        return Cmp(flipped[e.op], e.left, e.right)
    return Logic("not", (e,))


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
