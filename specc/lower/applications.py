"""One formula for all applications of a node, and the pitch of the buffers that they read."""

from __future__ import annotations

from dataclasses import replace

from specc.formula_text import expr_text
from specc.ir import BoundOp, Model, NodeVariant
from specc.ops import Expr, Formula, FormulaTensor, Num, Size


class Apart(Exception):
    """The applications of a node cannot share a kernel; the text says why."""


def shared_formula(bound: tuple[BoundOp, ...]) -> tuple[Formula, dict[str, int]]:
    """One formula for applications that differ in the extents of axes only: such an extent becomes a run-time size,
    `rows_1` and so on, whose largest values are returned as well. Raises Apart."""
    formulas = tuple(b.formula for b in bound)
    first, *others = formulas
    if any(dict(b.roles) != dict(bound[0].roles) for b in bound):
        raise Apart(_roles(bound))
    if all(f == first for f in others):
        return first, {}
    if any(_skeleton(f) != _skeleton(first) for f in others):
        raise Apart("its applications differ in more than the length of an axis")
    merger = _Merger()
    inputs = tuple(merger.tensor(*ts) for ts in zip(*(f.inputs for f in formulas), strict=True))
    equations = tuple(
        replace(qs[0], tensor=merger.tensor(*(q.tensor for q in qs)))
        for qs in zip(*(f.equations for f in formulas), strict=True)
    )
    return replace(first, inputs=inputs, equations=equations), merger.largest


def _roles(bound: tuple[BoundOp, ...]) -> str:
    tables = [dict(b.roles) for b in bound]
    for name, role in tables[0].items():
        other = next((t[name] for t in tables[1:] if t.get(name) != role), None)
        if other is not None:
            return f"its applications store `{name}` differently, as {role} and as {other}"
    return "its applications differ in the operands that they give"


def _skeleton(f: Formula) -> tuple[object, ...]:
    """Everything of a formula but the extents of its tensors."""
    tensors = [(t.name, len(t.dims), t.sort) for t in (*f.inputs, *f.outputs)]
    return (f.op, f.lead, f.recs, tensors, [(q.indices, q.expr) for q in f.equations])


class _Merger:
    def __init__(self) -> None:
        self.names: dict[tuple[Expr, ...], str] = {}
        self.largest: dict[str, int] = {}

    def tensor(self, *ts: FormulaTensor) -> FormulaTensor:
        return replace(ts[0], dims=tuple(self.dim(*d) for d in zip(*(t.dims for t in ts), strict=True)))

    def dim(self, *dims: Expr) -> Expr:
        if all(d == dims[0] for d in dims):
            return dims[0]
        numbers = [int(d.value) for d in dims if isinstance(d, Num)]
        if len(numbers) < len(dims):
            listed = " and ".join(f"`{expr_text(d)}`" for d in dict.fromkeys(dims))
            raise Apart(f"its applications have {listed} where they would share an axis")
        name = self.names.setdefault(dims, f"rows_{len(self.names) + 1}")
        self.largest[name] = max(numbers)
        return Size(name)


def pitches(model: Model, node: NodeVariant) -> dict[str, int]:
    """Elements between neighbouring rows of every operand that some application reads from a view of a fused buffer;
    the largest where there are several."""
    writers = (n for n in model.nodes if _meet(n, node))
    widths: dict[str, int] = {}
    for write in (w for n in writers for a in n.applications for w in a.writes if len(w.views) > 1):
        width = sum(_row_size(dims) for _, dims in write.views)
        widths |= {wire: max(width, widths.get(wire, 0)) for wire, _ in write.views}
    found: dict[str, int] = {}
    for read in (r for a in node.applications for r in a.reads if r.state is None and r.wire in widths):
        found[read.operand] = max(found.get(read.operand, 0), widths[read.wire])
    return found


def _meet(writer: NodeVariant, reader: NodeVariant) -> bool:
    """Whether the two stand in a layer together; what stands outside of the layers may meet anything."""
    return writer.layers is None or reader.layers is None or not writer.layer_set.isdisjoint(reader.layer_set)


def _row_size(dims: tuple[Expr, ...]) -> int:
    size = 1
    for d in dims[1:]:
        size *= int(d.value) if isinstance(d, Num) else 1
    return size


def largest_sizes(model: Model) -> dict[str, int]:
    """Largest run-time sizes; a prefill sees at most as many keys as positions are cached."""
    largest = {d.name: d.high for d in model.domain}
    return {"L": largest.get("S", largest.get("T", 1)), **largest}
