"""Wires by name, and which operand of an op each argument of a row feeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specc import syntax_spec as m
from specc.diagnostics import nearest
from specc.ir import Phase, WireRead
from specc.ops import Op, Size, Sort, TensorSig
from specc.source import Span
from specc.typecheck.shapes import Dims, rename
from specc.typecheck.values import mistake


@dataclass(frozen=True)
class Wire:
    """A tensor that rows can read. `dims` and `sort` are None where its writer has a mistake; `origin` says who
    writes it."""

    name: str
    dims: Dims | None
    sort: Sort | None = Sort.REAL
    origin: str = ""


@dataclass(frozen=True)
class World:
    """What a row can read: wires, states and inputs by name; a state whose shape has a mistake has None."""

    wires: Mapping[str, Wire]
    states: Mapping[str, Dims | None]
    inputs: tuple[str, ...]


def weight_operands(apply: m.Apply, row: m.Row, op: Op) -> dict[str, str]:
    """Which weight of the node feeds which operand. Raises SpecError (E237)."""
    weights = [w.name for w in row.weights]
    operands = [t.name for t in op.inputs]
    found: dict[str, str] = {}
    for bind in apply.binds:
        if bind.operand not in operands:
            raise mistake(
                "E237",
                f"`{op.name}` has no operand `{bind.operand}`",
                bind.span,
                nearest(bind.operand, operands),
            )
        if bind.weight not in weights:
            raise mistake(
                "E237",
                f"`{row.path}` has no weight `{bind.weight}`",
                bind.span,
                nearest(bind.weight, weights),
            )
        if bind.operand in found:
            raise mistake("E237", f"operand `{bind.operand}` is fed twice", bind.span)
        found[bind.operand] = bind.weight
    return found | {w: w for w in weights if w in operands and w not in found}


def assign(apply: m.Apply, op: Op, weights: Mapping[str, str]) -> dict[str, m.Arg]:
    """Which argument feeds which operand: by name, else by position among the operands that are no weights.
    Raises SpecError (E237)."""
    free = [t.name for t in op.inputs if t.name not in weights]
    found: dict[str, m.Arg] = {}
    for arg in apply.args:
        if arg.operand is None:
            continue
        if arg.operand not in free:
            raise mistake(
                "E237",
                f"`{op.name}` has no operand `{arg.operand}` to be wired",
                arg.span,
                nearest(arg.operand, free),
            )
        if arg.operand in found:
            raise mistake("E237", f"operand `{arg.operand}` is fed twice", arg.span)
        found[arg.operand] = arg
    rest = [name for name in free if name not in found]
    placed = [arg for arg in apply.args if arg.operand is None]
    if len(placed) > len(rest):
        takes = ", ".join(f"`{n}`" for n in rest) or "none"
        message = f"`{op.name}` takes {len(rest)} operand{'' if len(rest) == 1 else 's'} here, {len(placed)} are wired"
        raise mistake("E237", message, placed[len(rest)].span, f"its operands: {takes}")
    return found | dict(zip(rest, placed, strict=False))


def read_of(operand: str, arg: m.Arg, world: World) -> WireRead:
    """The read that an argument is. Raises SpecError (E256)."""
    if arg.state is not None:
        if arg.state.name not in world.states:
            raise mistake("E256", f"no state `{arg.state.name}`", arg.state.span, nearest(arg.state.name, world.states))
        return WireRead(operand, arg.wire, arg.state.name)
    return WireRead(operand, arg.wire, arg.wire if arg.wire in world.states else None)


def phase_reads(
    op: Op, phase: Phase, wired: Mapping[str, WireRead], weights: Mapping[str, str], world: World, row: m.Row
) -> dict[str, WireRead]:
    """What feeds each operand of `op`, the form of the row's op in `phase`: index operands that the row does
    not wire are wired to the inputs of their names. Raises SpecError (E237, E238)."""
    operands = {t.name: t for t in op.inputs}
    for name in (*wired, *weights):
        if name not in operands:
            message = f"`{op.name}`, the {phase} form of `{row.op.name}`, has no operand `{name}`"
            raise mistake("E237", message, row.op.span)
    reads = dict(wired)
    for t in op.inputs:
        if t.name in reads or t.name in weights or t.optional:
            continue
        if t.sort is not Sort.INDEX or t.name not in world.inputs:
            raise mistake("E238", f"nothing feeds `{t.name}` of `{op.name}`", row.op.span, _advice(t, row))
        reads[t.name] = WireRead(t.name, t.name)
    return {t.name: reads[t.name] for t in op.inputs if t.name in reads}


def _advice(t: TensorSig, row: m.Row) -> str:
    if t.sort is Sort.INDEX:
        return f"declare `{t.name}` under `inputs`"
    near = nearest(t.name, [w.name for w in row.weights])
    return near if near.startswith("did") else f"wire it, or give a weight `{t.name}[…]`"


def read_dims(read: WireRead, phase: Phase, world: World, two_phases: bool) -> Dims | None:
    """The dims an operand sees: T tokens of one sequence, or in decode one token for each of B sequences. A
    state has L cached positions of one sequence in prefill, S of each of B sequences in decode."""
    if read.state is not None:
        dims = world.states[read.state]
        if dims is None:
            return None
        if phase is Phase.DECODE:
            return (Size("B"), *dims)
        return rename(dims, {"S": "L"})
    wire = world.wires[read.wire].dims
    if wire is None or phase is Phase.PREFILL or not two_phases:
        return wire
    return rename(wire, {"T": "B"})


def check_sort(sig: TensorSig, sort: Sort | None, what: str, op: Op, span: Span | None, help: str = "") -> None:
    """Raises SpecError (E242) where `what`, a tensor of `sort`, feeds an operand of another sort."""
    if sort not in (None, sig.sort):
        wanted = f"`{op.name}` reads {KINDS[sig.sort]} as `{sig.name}`"
        raise mistake("E242", f"{what} holds {KINDS[sort]}, but {wanted}", span, help)


KINDS = {Sort.INDEX: "integers", Sort.REAL: "real numbers"}
