"""Reads of tensors: whole axes, slices, points, and advanced indexing for every other index map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specc.ops import Expr, Load, free_vars, walk
from specc.targets.torch.affine import difference, integer, linear, minus, normal, plus, same, shift_of
from specc.targets.torch.code import FULL, Code, call, permuted, slice_text, subscript
from specc.targets.torch.scope import Axes, Frame, Kind, Operand, Value, joined

if TYPE_CHECKING:
    from specc.targets.torch.arrays import Lowerer


@dataclass(frozen=True)
class Item:
    """One place between the brackets. `axes` are the variables it leaves; none for a point."""

    text: str
    axes: tuple[str, ...] = ()


def read(operand: Operand, indices: Sequence[Expr], frame: Frame, low: Lowerer) -> Value:
    """`operand[indices]` with its axes in the order of `frame`."""
    base, items = _items(operand, indices, frame, low)
    code, axes = into_frame(base, items, frame)
    return Value(low.to_accumulator(code) if operand.cast else code, operand.kind, axes)


def read_as_stored(operand: Operand, indices: Sequence[Expr], frame: Frame, low: Lowerer) -> Value:
    """`operand[indices]` with its axes in the order in which they are stored."""
    base, items = _items(operand, indices, frame, low)
    code = subscript(base, [i.text for i in items])
    axes = tuple(v for i in items for v in i.axes)
    return Value(low.to_accumulator(code) if operand.cast else code, operand.kind, axes)


def into_frame(base: Code, items: Sequence[Item], frame: Frame) -> tuple[Code, Axes]:
    """`base[items]` with new axes where `frame` has a variable that it lacks, from its first one on."""
    axes = [v for i in items for v in i.axes]
    order = sorted(range(len(axes)), key=lambda n: frame.index(axes[n]))
    if order != list(range(len(axes))) or any(len(i.axes) > 1 for i in items):
        base = permuted(subscript(base, [i.text for i in items]), order)
        axes = [axes[n] for n in order]
        items = [Item(FULL, (v,)) for v in axes]
    if not axes:
        return subscript(base, [i.text for i in items]), ()
    wanted = list(frame[frame.index(axes[0]) :])
    slots = tuple(v if v in axes else None for v in wanted)
    texts: list[str] = []
    for item in items:
        if item.axes:
            skipped = wanted.index(item.axes[0])
            texts += ["None"] * skipped
            del wanted[: skipped + 1]
        texts.append(item.text)
    return subscript(base, texts + ["None"] * len(wanted)), slots


def _items(operand: Operand, indices: Sequence[Expr], frame: Frame, low: Lowerer) -> tuple[Code, list[Item]]:
    pairs = [(normal(i), d) for i, d in zip(indices, operand.dims, strict=True)]
    places = [_basic(i, d, low) for i, d in pairs]
    axes = [v for p in places if p for v in p.axes]
    gathers = [n for n, p in enumerate(places) if p is None]
    if len(set(axes)) != len(axes) or len(gathers) > 1:
        return _advanced(operand, pairs, frame, low)
    if not gathers:
        return operand.code, [p for p in places if p]
    index, dim = pairs[gathers[0]]
    own = _own(index, frame, low)
    if set(own) & set(axes) or any(p and not p.axes for p in places):
        return _advanced(operand, pairs, frame, low)
    item = Item(_index(index, dim, own, low).code.text, own)
    return operand.code, [p or item for p in places]


def _advanced(
    operand: Operand, pairs: Sequence[tuple[Expr, Expr]], frame: Frame, low: Lowerer
) -> tuple[Code, list[Item]]:
    moving = {v for i, _ in pairs for v in free_vars(i)}
    common = tuple(v for v in frame if v in moving)
    values = [_index(i, d, common, low) for i, d in pairs]
    axes = tuple(a for a in joined(values) if a)
    return subscript(operand.code, [v.code.text for v in values]), [Item(FULL, (a,)) for a in axes]


def _own(index: Expr, frame: Frame, low: Lowerer) -> Frame:
    return tuple(v for v in frame if v in free_vars(index) and v not in low.loops)


def _index(index: Expr, dim: Expr, frame: Frame, low: Lowerer) -> Value:
    """An index as a value, kept inside the dimension where a guard may let it out."""
    found = low.lower(index, frame)
    if not low.guarded or _inside(index, dim, low):
        return found
    last = low.number(minus(dim, integer(1))).text
    if found.is_array:
        return Value(found.code.method("clamp", "0", last), found.kind, found.axes)
    return Value(call("max", "0", call("min", found.code, last)), Kind.CONST)


def _basic(index: Expr, dim: Expr, low: Lowerer) -> Item | None:
    """A point or a slice; None for what needs advanced indexing."""
    if any(isinstance(e, Load) for e in walk(index)):
        return None
    if all(v in low.loops for v in free_vars(index)):
        return Item(_index(index, dim, (), low).code.text)
    shift = shift_of(index)
    if shift is None or shift[0] in low.loops or (low.guarded and not _inside(index, dim, low)):
        return None
    name, start = shift
    stop = plus(start, low.extents[name])
    first = None if same(start, integer(0)) else low.number(start)
    return Item(slice_text(first, None if same(stop, dim) else low.number(stop)), (name,))


def _inside(index: Expr, dim: Expr, low: Lowerer) -> bool:
    """Whether an index surely lies in 0 <= index < dim."""
    name, start = shift_of(index) or ("", index)
    if name and name not in low.extents:
        return False
    first, room = linear(start), difference(dim, plus(start, low.extents[name] if name else integer(1)))
    return not first.terms and first.const >= 0 and not room.terms and room.const >= 0
