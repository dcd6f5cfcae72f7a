"""Sums, products, maxima and softmax as operations on whole axes; a Σ of products is one `einsum`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from specc.ops import Bin, Expr, Load, Named, Neg, Num, Reduce, Softmax, Sort, State, free_vars
from specc.targets.torch.code import Code, binary, call, negative, power
from specc.targets.torch.loads import Item, into_frame, read_as_stored
from specc.targets.torch.scope import WIDTH, Frame, Kind, Value, joined

if TYPE_CHECKING:
    from specc.targets.torch.arrays import Lowerer

REDUCTIONS = {"Σ": "torch.sum", "Π": "torch.prod", "Max": "torch.amax"}
NEUTRAL = {"Σ": "0", "Π": "1", "Max": "-math.inf"}

AROUND = 14
"""Characters about each operand of a long `torch.einsum`."""


@dataclass(frozen=True)
class Product:
    """`± Π inner · Π outer / Π under`: the factors that depend on an index, those that do not, and the divisors."""

    sign: int
    inner: tuple[Expr, ...] = ()
    outer: tuple[Expr, ...] = ()
    under: tuple[Expr, ...] = ()


def reduce(e: Reduce, frame: Frame, low: Lowerer) -> Value:
    """`e` with its axes aligned with `frame`. What does not depend on the index of a Σ stands outside."""
    low = low.inside(**{e.var: e.extent})
    if e.op != "Σ" or e.where is not None or e.sort is not Sort.REAL:
        return _whole_axis(e, frame, low)
    product = _product(e.body, e.var)
    if not product.inner:
        return _whole_axis(e, frame, low)
    if len(product.inner) == 1:
        value = _whole_axis(replace(e, body=product.inner[0]), frame, low)
    else:
        value = _sum_of_products(e.var, product.inner, frame, low)
    return _scaled(product, e, value, frame, low)


def _product(e: Expr, var: str) -> Product:
    match e:
        case Bin("·", left, right) if e.sort is Sort.REAL:
            a, b = _product(left, var), _product(right, var)
            return Product(a.sign * b.sign, a.inner + b.inner, a.outer + b.outer, a.under + b.under)
        case Bin("/", left, right) if var not in free_vars(right):
            a = _product(left, var)
            return replace(a, under=(*a.under, right))
        case Neg(arg) if e.sort is Sort.REAL:
            a = _product(arg, var)
            return replace(a, sign=-a.sign)
    return Product(1, (e,)) if var in free_vars(e) else Product(1, (), (e,))


def _scaled(product: Product, e: Expr, value: Value, frame: Frame, low: Lowerer) -> Value:
    for f in reversed(product.outer):
        (left, right), kind = low.unify([(f, low.lower(f, frame)), (e, value)], Sort.REAL)
        if left.code.text != "1":
            value = Value(binary("·", *low.block.fit(left.code, right.code)), kind, joined((left, right)))
    for f in product.under:
        (left, right), kind = low.unify([(e, value), (f, low.lower(f, frame))], Sort.REAL)
        value = Value(binary("/", *low.block.fit(left.code, right.code)), kind, joined((left, right)))
    return value if product.sign > 0 else replace(value, code=negative(value.code))


def _is_weight(e: Expr, var: str) -> bool:
    while isinstance(e, Named):
        e = e.expr
    return isinstance(e, Softmax) and e.var == var


def _sum_of_products(var: str, factors: Sequence[Expr], frame: Frame, low: Lowerer) -> Value:
    weights = [f for f in factors if _is_weight(f, var)]
    if len(weights) == 1:
        return _weighted(weights[0], [f for f in factors if f is not weights[0]], var, frame, low)
    return _einsum([_operand(f, (*frame, var), low) for f in factors], var, frame, low)


def _operand(e: Expr, frame: Frame, low: Lowerer) -> Value:
    """A factor whose every axis is an index variable, none of size 1."""
    if isinstance(e, Load):
        value = read_as_stored(low.tensors[e.tensor], e.indices, frame, low)
    elif isinstance(e, State):
        value = read_as_stored(low.states[e.name], e.indices[1:], frame, low)
    else:
        own = tuple(v for v in frame if v in free_vars(e))
        value = low.lower(e, own)
    for n, axis in reversed(list(enumerate(value.axes))):
        if axis is None:
            value = replace(value, code=value.code.method("squeeze", str(n)))
    value = replace(value, axes=tuple(a for a in value.axes if a))
    return low.as_accumulator(e, value)


def _einsum(operands: Sequence[Value], var: str, frame: Frame, low: Lowerer) -> Value:
    present = {a for v in operands for a in v.axes}
    left = tuple(v for v in frame if v in present and v != var)
    equation, codes = _equation(operands, left), [v.code for v in operands]
    code = call("torch.einsum", equation, *codes)
    if len(code.text) > WIDTH:
        code = call("torch.einsum", equation, *low.block.fit(*codes, around=AROUND))
    return _placed(code, left, frame)


def _equation(operands: Sequence[Value], out: Frame) -> str:
    """`"tk,nk->tn"`; an index keeps its letter when it has one to itself."""
    letters: dict[str, str] = {}
    for axis in [a for v in operands for a in v.axes if a]:
        free = [c for c in (axis[0], *"abcdefghijklmnopqrstuvwxyz") if _is_letter(c) and c not in letters.values()]
        letters.setdefault(axis, free[0])
    terms = ["".join(letters[a] for a in v.axes if a) for v in operands]
    return f'"{",".join(terms)}->{"".join(letters[a] for a in out)}"'


def _is_letter(c: str) -> bool:
    return c.isascii() and c.isalpha()


def _placed(code: Code, axes: Frame, frame: Frame) -> Value:
    placed, slots = into_frame(code, [Item(":", (a,)) for a in axes], frame)
    return Value(placed, Kind.DATA, slots)


def _weighted(weight: Expr, others: Sequence[Expr], var: str, frame: Frame, low: Lowerer) -> Value:
    """Σ of softmax weights times values: an invisible position does not count, whatever its value holds."""
    product = others[0]
    for f in others[1:]:
        product = Bin("·", product, f, Sort.REAL)
    wide = (*frame, var)
    own = tuple(v for v in wide if v in free_vars(weight))
    weights, visible = _weights(weight, own, low)
    values = _operand(product, wide, low if visible is None else low.guard())
    present = {*weights.axes, *values.axes}
    left = tuple(v for v in frame if v in present and v != var)
    equation = _equation([weights, values], left)
    if visible is None:
        return _placed(call("torch.einsum", equation, weights.code, values.code), left, frame)
    return _placed(call("weighted_sum", equation, weights.code, values.code, visible.code), left, frame)


def _weights(e: Expr, frame: Frame, low: Lowerer) -> tuple[Value, Value | None]:
    if isinstance(e, Named):
        value = low.lower(e, frame)
        inner: Expr = e
        while isinstance(inner, Named):
            inner = inner.expr
        assert isinstance(inner, Softmax)
        return value, None if inner.visible is None else low.condition(inner.visible, frame)
    assert isinstance(e, Softmax)
    value, visible = softmax(e, frame, low)
    return replace(value, code=low.block.assign("weights", value.code)), visible


def softmax(e: Softmax, frame: Frame, low: Lowerer) -> tuple[Value, Value | None]:
    """The weights along `e.var`, and where they count."""
    low = low.inside(**{e.var: e.extent})
    visible = None if e.visible is None else low.condition(e.visible, frame)
    score = low.guard().lower(e.score, frame)
    score = low.as_accumulator(e.score, score)
    dim = str(frame.index(e.var) - len(frame))
    if visible is None:
        code = call("torch.softmax", low.block.fit(score.code)[0], f"dim={dim}")
        axes = score.axes
    else:
        last = () if dim == "-1" else (f"dim={dim}",)
        code = call("masked_softmax", low.block.fit(score.code)[0], visible.code, *last)
        axes = joined((score, visible))
    value = Value(code, Kind.DATA, axes)
    role = low.rounds.get("softmax")
    return value if role is None else low.rounded(value, role), visible


def _whole_axis(e: Reduce, frame: Frame, low: Lowerer) -> Value:
    """The body over every position, reduced along the axis of `e.var`. The axis takes the last place of the frame
    where nothing else needs it, and is kept with size 1 there; else it is a new last axis, and goes."""
    if e.where is None and e.var not in free_vars(e.body):
        return _repeated(e, low.lower(e.body, frame), low)
    keep = bool(frame) and frame[-1] not in (*free_vars(e.body), *(free_vars(e.where) if e.where else ()))
    body = _masked_body(e, (*frame[:-1], e.var) if keep else (*frame, e.var), low)
    if not body.axes or body.axes[-1] != e.var:
        raise ValueError(f"nothing in the {e.op} over `{e.var}` has its index on an axis")
    (code,) = low.block.fit(body.code, around=32)
    if e.op == "Max" and not isinstance(e.extent, Num):
        code = low.block.assign("padded", call("torch.nn.functional.pad", code, "(0, 1)", "value=-math.inf"))
    code = call(REDUCTIONS[e.op], code, "dim=-1", *(("keepdim=True",) if keep else ()))
    return Value(code, body.kind, (*body.axes[:-1], None) if keep else body.axes[:-1])


def _masked_body(e: Reduce, frame: Frame, low: Lowerer) -> Value:
    """The body at every position, the neutral element where it does not count."""
    if e.where is None:
        return low.real(low.lower(e.body, frame))
    where = low.condition(e.where, frame)
    body = low.real(low.guard().lower(e.body, frame))
    kind = body.kind
    if kind is Kind.CONST:
        kind, body = Kind.EXACT, low.exact(body)
    code = call("torch.where", *low.block.fit(where.code, body.code), NEUTRAL[e.op])
    return Value(code, kind, joined((where, body)))


def _repeated(e: Reduce, body: Value, low: Lowerer) -> Value:
    """A body that does not depend on the index: n times it, its n-th power, or itself."""
    extent = low.number(e.extent)
    match e.op:
        case "Σ":
            return replace(body, code=binary("·", *low.block.fit(extent, body.code)))
        case "Π":
            return replace(body, code=power(body.code, extent))
    return body
