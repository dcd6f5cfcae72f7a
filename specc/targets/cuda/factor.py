"""A factor of a product: how a vector of it along the inner variable is read, or made, in its storage type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from specc.kernels import Access, Kernel
from specc.ops import Cmp, Expr, Logic, Rounded, Select, Sort, Var
from specc.targets.cuda.emit_pointwise import mentions
from specc.targets.cuda.scope import LONGEST_VECTOR, Inner, Scope
from specc.targets.naming import Names


@dataclass(frozen=True)
class FactorText:
    """`lines` come first, then VEC elements lie at `address`; where that is None they are in the vector `vector`."""

    lines: list[str]
    address: str | None
    vector: str
    ragged: bool


def factor_text(
    kernel: Kernel, names: Names, rows: Sequence[str], inner: Inner, accesses: Sequence[Access], value: Expr, name: str
) -> FactorText:
    """VEC elements of `value` at `inner`, where `rows` are local variables and `left` elements are left of the row."""
    scope = Scope(kernel, names, rows, inner)
    for access in accesses:
        scope.note(access)
    kept = value.expr if isinstance(value, Rounded) else value
    address = _address(scope, kept, {a.name: a for a in accesses}, None)
    ragged = inner.length % LONGEST_VECTOR != 0
    if address is not None:
        still = [a for a in accesses if not scope.moves(*a.indices) and a.name not in _chosen(kept)]
        return FactorText([line for a in still for line in scope.load_row(a)], address, "", ragged)
    return _computed(scope, names, accesses, kept, name)


def _computed(scope: Scope, names: Names, accesses: Sequence[Access], value: Expr, name: str) -> FactorText:
    """A vector that is worked out element by element; those past the end of the row are neither read nor computed."""
    scope.inner = replace(scope.inner, inside="left > 0")
    still = [a for a in accesses if not scope.moves(*a.indices, a.guard)]
    moving = [a for a in accesses if a not in still]
    lines = [line for a in still for line in scope.load_row(a)] + scope.pointers(moving)
    lines += [scope.load_vector(a) for a in moving if scope.is_vector(a)]
    vector, result = names.fresh(f"{name}_v"), names.fresh(name)
    elements = [scope.element(a) for a in moving] + scope.printer.block([(result, value)])
    if any(mentions(line, scope.inner.var) for line in elements):
        elements.insert(0, f"const int {scope.inner.var} = {scope.inner.first} + n;")
    lines += [f"specc::Vec<Element, VEC> {vector} = {{}};", "for (int n = 0; n < VEC && n < left; ++n) {"]
    lines += [*(f"    {line}" for line in elements), f"    {vector}.at[n] = specc::round_to<Element>({result});", "}"]
    return FactorText(lines, None, vector, scope.inner.ragged)


def _address(scope: Scope, e: Expr, accesses: dict[str, Access], known: Expr | None) -> str | None:
    """Where the elements of `e` lie, if it only chooses among rows of operands."""
    match e:
        case Var(name) if name in accesses:
            access = accesses[name]
            fits = scope.is_vector(access) and not access.data_index
            return scope.address(access) if fits and (access.guard is None or access.guard == known) else None
        case Select(cond, then, other) if not scope.moves(cond):
            a, b = _address(scope, then, accesses, cond), _address(scope, other, accesses, negated(cond))
            return None if a is None or b is None else f"({scope.text(cond)} ? {a} : {b})"
    return None


def negated(e: Expr) -> Expr:
    """The condition that holds where `e` does not."""
    match e:
        case Cmp(op, left, right, sort):
            return Cmp({"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}[op], left, right, sort)
    return Logic("not", (e,), Sort.BOOL)


def _chosen(e: Expr) -> set[str]:
    match e:
        case Var(name):
            return {name}
        case Select(_, then, other):
            return _chosen(then) | _chosen(other)
    return set()
