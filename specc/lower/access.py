"""Reads of operands as named accesses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from specc.kernels import Access
from specc.ops import Bin, Cmp, Expr, FormulaTensor, Load, Logic, Num, Select, Sort, Var, rebuild, walk


class Reader:
    """Replaces element reads by names and keeps the accesses, in order of first need."""

    def __init__(self, inputs: tuple[FormulaTensor, ...]) -> None:
        self.inputs = {t.name: t for t in inputs}
        self.found: dict[tuple[str, tuple[Expr, ...]], Access] = {}

    def __call__(self, e: Expr, guard: Expr | None = None) -> Expr:
        """`e` with every Load replaced by a Var of its access. `guard` holds where `e` is evaluated."""
        match e:
            case Load():
                return self._load(e, guard)
            case Select(cond, then, other):
                known = self(cond, guard)
                if _of_indices(known):
                    return Select(known, self(then, both(guard, known)), self(other, both(guard, _not(known))), e.sort)
                return Select(known, self(then, guard), self(other, guard), e.sort)
        return rebuild(e, lambda child: self(child, guard))

    def _load(self, e: Load, guard: Expr | None) -> Var:
        indices = tuple(self(i, guard) for i in e.indices)
        from_data = [n for n, i in enumerate(e.indices) if any(isinstance(x, Load) for x in walk(i))]
        for n in from_data:
            guard = both(guard, _inside(indices[n], self.inputs[e.tensor].dims[n]))
        key = (e.tensor, indices)
        if key not in self.found:
            self.found[key] = Access(self._name(e, indices), e.tensor, indices, guard, bool(from_data))
        elif not from_data and self.found[key].guard != guard:
            self.found[key] = replace(self.found[key], guard=_either(self.found[key].guard, guard))
        return Var(self.found[key].name, e.sort)

    def _name(self, e: Load, indices: tuple[Expr, ...]) -> str:
        used = {a.name for a in self.found.values()}
        name = e.tensor
        offset = _offset(indices[-1]) if indices else 0
        if offset:
            name = f"{e.tensor}_{'p' if offset > 0 else 'm'}{abs(offset)}"
        count = 2
        stem = name
        while name in used:
            name, count = f"{stem}_{count}", count + 1
        return name

    def take(self, *names: str) -> tuple[Access, ...]:
        """The accesses of these names, in order of first need."""
        return tuple(a for a in self.found.values() if a.name in names)


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


def _either(a: Expr | None, b: Expr | None) -> Expr | None:
    return None if a is None or b is None else Logic("or", (a, b))


def _not(e: Expr) -> Expr:
    flipped = {"<": ">=", ">=": "<", "<=": ">", ">": "<=", "==": "!=", "!=": "=="}
    return Cmp(flipped[e.op], e.left, e.right) if isinstance(e, Cmp) else Logic("not", (e,))


def _inside(index: Expr, dim: Expr) -> Expr:
    return Logic("and", (Cmp(">=", index, Num(Fraction(0), Sort.INDEX)), Cmp("<", index, dim)))


def _of_indices(cond: Expr) -> bool:
    return all(getattr(x, "sort", None) is not Sort.REAL for x in walk(cond))


def axis_names(accesses: list[tuple[Expr, ...]], rank: int) -> tuple[str, ...]:
    """A name per axis for stride arguments: the variable that alone indexes it in every access, else its number."""
    names: list[str] = []
    for axis in range(rank):
        plain = sorted({_plain(i[axis], axis) for i in accesses})
        name = plain[0] if len(plain) == 1 else f"d{axis}"
        names.append(name if name not in names else f"d{axis}")
    return tuple(names)


def _plain(index: Expr, axis: int) -> str:
    return index.name if isinstance(index, Var) else f"d{axis}"
