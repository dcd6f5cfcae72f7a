"""Nodes of two models side by side: which belong together, and what each says, as texts that can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, prod

from specc.format import format_value
from specc.formula_text import dims_text, expr_text
from specc.ir import Application, NodeVariant, Piece, Role, Weight, WireRead
from specc.ops import Bin, Call, Expr, Neg, Num, Op, ParamSig, Sort, TensorSig
from specc.page.tables import called, function_text

Table = dict[str, str]
WIRE = "wire "
"""Starts the names of wires among `shapes`."""


@dataclass(frozen=True)
class Pair:
    """A variant before and after; None on a side where it is not."""

    old: NodeVariant | None
    new: NodeVariant | None


def pair_nodes(old: Sequence[NodeVariant], new: Sequence[NodeVariant], classes: Mapping[str, str]) -> tuple[Pair, ...]:
    """The variants that belong together, in the order of `new`; those that went follow what stood before them. A path
    keeps its variants by layer class, then by the layers they share. A node of another path is the same one if all but
    its path is the same, and there is just one like it. `classes`: layer classes that have another name now."""
    ranks = {
        (a, b): rank for a, x in enumerate(old) for b, y in enumerate(new) if (rank := _same_path(x, y, classes)) > 0
    }
    found: dict[int, int] = {}
    for a, b in sorted(ranks, key=lambda pair: (-ranks[pair], pair)):
        if a not in found and b not in found.values():
            found[a] = b
    gone = [a for a in range(len(old)) if a not in found]
    come = [b for b in range(len(new)) if b not in found.values()]
    like = [(a, b) for a in gone for b in come if _says(old[a], classes) == _says(new[b], {})]
    for a, b in like:
        if sum(a == x for x, _ in like) == 1 == sum(b == y for _, y in like):
            found[a] = b
    return tuple(_in_order(old, new, found))


def _same_path(old: NodeVariant, new: NodeVariant, classes: Mapping[str, str]) -> int:
    """0 for another path; the more layers are shared, the higher, and highest in the same class of layers."""
    if old.path != new.path:
        return 0
    if _class(old, classes) == new.layer_class and old.outside_order == new.outside_order:
        return 1 << 60
    return 1 + len({*(old.layers or ())} & {*(new.layers or ())})


def _class(node: NodeVariant, classes: Mapping[str, str]) -> str | None:
    return None if node.layer_class is None else classes.get(node.layer_class, node.layer_class)


def _says(node: NodeVariant, classes: Mapping[str, str]) -> object:
    """All that a row says but the path."""
    around = node.op.name, place(node, classes), constant_texts(node)
    return *around, application_texts(node), shapes(node), weight_texts(node, {})


def _in_order(old: Sequence[NodeVariant], new: Sequence[NodeVariant], found: Mapping[int, int]) -> Iterator[Pair]:
    sources = {b: a for a, b in found.items()}
    after: dict[int, list[int]] = {}
    last = -1
    for a in range(len(old)):
        last = found.get(a, last)
        if a not in found:
            after.setdefault(last, []).append(a)
    for b in range(-1, len(new)):
        if b >= 0:
            yield Pair(old[sources[b]] if b in sources else None, new[b])
        yield from (Pair(old[a], None) for a in after.get(b, ()))


def place(node: NodeVariant, classes: Mapping[str, str]) -> str:
    """`before the layers`, `all layers`, `sliding layers`."""
    if node.layers is None:
        return "before the layers" if node.outside_order < 0 else "after the layers"
    return f"{_class(node, classes)} layers"


def value_text(value: Expr | str | bool) -> str:
    """A constant as the page shows it; a number that the page shows like another one of its own is written out."""
    text = format_value(value)
    if isinstance(value, Num) and Fraction(text) != value.value:
        return f"{value.value.numerator}/{value.value.denominator}"
    return text


def constant_texts(node: NodeVariant) -> Table:
    return {name: value_text(value) for name, value in node.constants}


def same_values(old: NodeVariant, new: NodeVariant) -> frozenset[str]:
    """Names of constants that are the same real number on both sides, in whatever form."""
    before, after = dict(old.constants), dict(new.constants)
    pairs = ((name, _signed_square(before[name]), _signed_square(after[name])) for name in before if name in after)
    return frozenset(name for name, one, other in pairs if one is not None and one == other)


def _signed_square(value: Expr | str | bool) -> Fraction | None:
    """`x·|x|` of a real number x that is a fraction times the root of one; None for any other value."""
    match value:
        case Num(number):
            return number * abs(number)
        case Neg(arg):
            square = _signed_square(arg)
            return None if square is None else -square
        case Call("sqrt", (arg,)):
            square = _signed_square(arg)
            return None if square is None else _fraction(square)
        case Bin("·" | "/" as op, left, right):
            one, other = _signed_square(left), _signed_square(right)
            if one is None or other is None or (op == "/" and other == 0):
                return None
            return one * other if op == "·" else one / other
    return None


def _fraction(square: Fraction) -> Fraction | None:
    """The positive fraction whose square this is, if there is one."""
    if square < 0:
        return None
    parts = isqrt(square.numerator), isqrt(square.denominator)
    return Fraction(*parts) if Fraction(*parts) ** 2 == square else None


def application_texts(node: NodeVariant) -> Table:
    """By label what each application reads and gives: `x=q, w=wq -> qn`; several results are named too."""
    return {a.label or str(n or ""): _application(a) for n, a in enumerate(node.applications)}


def _application(a: Application) -> str:
    reads = [f"{r.operand}={_read(r)}" for r in a.reads] + [f"{operand}={name}" for operand, name in a.weights]
    several = len(a.writes) > 1
    writes = [f"{w.operand}={name}" if several else name for w in a.writes for name, _ in w.views]
    return f"{', '.join(reads)} -> {', '.join(writes)}"


def _read(read: WireRead) -> str:
    return f"{read.state} + {read.wire}" if read.appends else read.wire


def shapes(node: NodeVariant) -> dict[str, tuple[str, ...]]:
    """Dims of what a node reads and of the wires that it gives; weights apart."""
    found: dict[str, tuple[str, ...]] = {}
    for phase, bound in node.bound:
        for a, b in zip(node.applications, bound, strict=True):
            roles = dict(b.roles)
            prefix = ".".join(x for x in (phase if len(node.bound) > 1 else "", a.label) if x)
            read = {f"{prefix} {t.name}".strip(): t.dims for t in b.formula.inputs if roles[t.name] is not Role.WEIGHT}
            written = {WIRE + name: dims for w in a.writes for name, dims in w.views}
            found |= {name: tuple(map(expr_text, dims)) for name, dims in (read | written).items()}
    return found


def weight_texts(node: NodeVariant, paths: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """By name the shape of each weight, and where its rows come from. `paths`: nodes that have another path now."""
    return {w.name: (str(list(w.shape)), _source(w, paths)) for w in node.weights}


def _source(weight: Weight, paths: Mapping[str, str]) -> str:
    if weight.tied is not None:
        node, name = weight.tied
        return f"tied {paths.get(node, node)}.{name}"
    alone = len(weight.pieces) == 1
    return " ++ ".join(_piece(p, weight, alone) for p in weight.pieces)


def _piece(piece: Piece, weight: Weight, alone: bool) -> str:
    """Its name, the rows taken unless it gives them all alone, and its shape where the weight has another one."""
    axes = [str(size) if (low, high) == (0, size) else f"{low}:{high} of {size}" for low, high, size in piece.view]
    whole = alone and all((low, high) == (0, size) for low, high, size in piece.view)
    plain = (prod(size for _, _, size in piece.view), *weight.shape[1:])
    rows = "" if whole else f"[{', '.join(axes)}]"
    return piece.name + rows + ("" if piece.full == plain else f" as {list(piece.full)}")


def op_lines(op: Op) -> tuple[str, ...]:
    """An op with its functions, line by line; a `let` is shown by its value."""
    inputs = ", ".join(map(_tensor, op.inputs))
    params = "; " + ", ".join(map(_param, op.params)) if op.params else ""
    lines = [f"op {op.name}({inputs}{params}) -> {', '.join(map(_tensor, op.outputs))}"]
    lines += [f"require {expr_text(e)}" for e in op.requires]
    lines += [f"prefill {op.prefill}"] if op.prefill else []
    for rec in op.recs:
        ranges = ", ".join(f"{v} < {expr_text(n)}" for v, n in rec.indices)
        lines.append(f"rec {rec.name}[{ranges}] from {expr_text(rec.init)} = {expr_text(rec.step)}")
    lines += [f"{q.tensor.name}{dims_text(q.indices)} = {expr_text(q.expr)}" for q in op.equations]
    exprs = [e for r in op.recs for e in (r.init, r.step)] + [q.expr for q in op.equations]
    return (*lines, *(line.strip() for fn in called(exprs) for line in function_text(fn)))


def _tensor(t: TensorSig) -> str:
    return f"{t.name}{dims_text(t.dims)}{': index' if t.sort is Sort.INDEX else ''}{'?' if t.optional else ''}"


def _param(p: ParamSig) -> str:
    default = "" if p.default is None else f" = {format_value(p.default)}"
    return f"{p.name}: {p.kind}{'?' if p.optional else ''}{default}"
