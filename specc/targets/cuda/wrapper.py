"""The launch wrapper of a kernel: a C function of pointers, sizes, strides and a stream."""

from __future__ import annotations

import re
from dataclasses import dataclass

from specc.formula_text import expr_text
from specc.kernels import Attention, Axis, Kernel, Table
from specc.ops import Num, Size, Sort
from specc.targets.cuda.printer import double_text
from specc.targets.cuda.scope import storage
from specc.targets.cuda.slots import Slots, extent_text, touched
from specc.targets.divisors import divisors
from specc.targets.naming import found as found_in


@dataclass(frozen=True)
class Argument:
    """One argument of a launch wrapper. `kind`: type, index_bytes, operand, table, workspace, size, stride, stream."""

    kind: str
    declared: str
    name: str
    operand: str = ""
    axis: int = 0


def arguments(ready: Kernel) -> tuple[Argument, ...]:
    """The arguments of a kernel's launch wrapper, in order: one kernel, one order, for every caller."""
    found, operands = [Argument("type", "int ", "type")], touched(ready)
    if any(o.sort is Sort.INDEX for o in operands):
        found.append(Argument("index_bytes", "int ", "index_bytes"))
    found += [Argument("operand", "void* " if o.output else "const void* ", o.name, o.name) for o in operands]
    found += [Argument("table", "const double* ", t.name, t.name) for t in ready.tables]
    found += [Argument("workspace", "void* ", "workspace")] if needs_workspace(ready) else []
    found += [Argument("size", "int64_t ", s) for s in ready.sizes]
    for o in operands:
        found += [Argument("stride", "int64_t ", f"{o.name}_stride_{a}", o.name, n) for n, a in enumerate(o.axes[:-1])]
    return (*found, Argument("stream", "cudaStream_t ", "stream"))


def needs_workspace(ready: Kernel) -> bool:
    """Whether a launch needs memory beside its operands."""
    return isinstance(ready.schedule, Attention) and ready.schedule.decode


def workspace_declaration(symbol: str, ready: Kernel) -> str:
    """The declaration, but for what ends it, of the function that says how much memory that is."""
    return f"int64_t {symbol}_workspace({', '.join(f'int64_t {s}' for s in ready.sizes)})"


def declaration(symbol: str, ready: Kernel) -> str:
    """A launch wrapper's declaration, but for what ends it."""
    return f"int {symbol}({', '.join(a.declared + a.name for a in arguments(ready))})"


@dataclass(frozen=True)
class TableText:
    """The function that fills a table, as the skeleton prints it."""

    signature: str
    text: str
    var: str
    extent: int
    value: str


def tables(symbol: str, ready: Kernel) -> list[TableText]:
    """For each table of a kernel the function that fills it."""
    return [
        TableText(
            table_declaration(symbol, t),
            f"{t.name}[{t.var}] = {expr_text(t.expr)}",
            t.var,
            t.extent,
            double_text(t.expr),
        )
        for t in ready.tables
    ]


def table_declaration(symbol: str, table: Table) -> str:
    """A filling function's declaration, but for what ends it."""
    return f"void {symbol}_{table.name}(double* table)"


@dataclass(frozen=True)
class WrapperText:
    """A launch wrapper as the skeleton prints it."""

    signature: str
    inner: str
    launch: list[str]
    checks: list[str]
    choice: list[str]
    workspace: list[str]
    """The function that says how much memory a launch needs beside its operands, if any."""


def wrapper(symbol: str, space: str, ready: Kernel, slots: Slots) -> WrapperText:
    """Values for the wrapper part of the skeleton."""
    texts = [*slots.launch, slots.shared_bytes, *(p.argument for p in slots.parameters), "stream"]
    used = {w for text in texts for w in re.findall(r"\w+", text)}
    passed = [a for a in arguments(ready) if a.name in used and a.kind != "type"]
    inner = [*(a.declared + a.name for a in passed), "int64_t rows"]
    kernel = f"{space}::{ready.name}_kernel<Element, VEC>"
    given = [kernel, "grid", "block", slots.shared_bytes, "stream", *(p.argument for p in slots.parameters)]
    last = f"return specc::launch({', '.join(given)});"
    names = ", ".join([*(a.name for a in passed), "rows"])
    return WrapperText(
        f'extern "C" {declaration(symbol, ready)} {{',
        f"cudaError_t {ready.name}_launch({', '.join(inner)}) {{",
        [f"namespace kernels = {space};", *slots.launch] if slots.complete else [*slots.launch, last],
        _checks(ready, slots),
        _choice(ready, slots, names),
        _workspace(symbol, ready, slots) if slots.workspace else [],
    )


def _workspace(symbol: str, ready: Kernel, slots: Slots) -> list[str]:
    lines = (*_undivided(ready, "0"), *slots.workspace)
    return [f'extern "C" {workspace_declaration(symbol, ready)} {{', *(f"    {line}" for line in lines), "}"]


def _checks(ready: Kernel, slots: Slots) -> list[str]:
    """Sizes that no launch can have, and empty results."""
    extents = [a.extent for a in found_in(ready.schedule, Axis)]
    compound = dict.fromkeys(extent_text(e) for e in extents if not isinstance(e, Num | Size))
    undivided = _undivided(ready, "cudaErrorInvalidValue")
    groups = [[*ready.sizes], [*compound]] if undivided else [[*ready.sizes, *compound]]
    fit = [f"if (!specc::sizes_fit({{{', '.join(g)}}})) return cudaErrorInvalidValue;" for g in groups if g]
    lines = [*fit[:1], *undivided, *fit[1:]]
    if any(a.kind == "index_bytes" for a in arguments(ready)):
        lines.append("if (index_bytes != 4 && index_bytes != 8) return cudaErrorInvalidValue;")
    product = f"1.0 * {slots.rows}" if " * " in slots.rows else slots.rows
    lines.append(f"if ({product} > specc::MOST_ROWS) return cudaErrorInvalidValue;")
    lines.append(f"const int64_t rows = {slots.rows};")
    return [*lines, "if (rows == 0) return cudaSuccess;"]


def _undivided(ready: Kernel, result: str) -> list[str]:
    """Returns `result` where something would be divided by 0."""
    zero = " || ".join(f"{extent_text(d)} == 0" for d in divisors(ready.schedule))
    return [f"if ({zero}) return {result};"] if zero else []


def _choice(ready: Kernel, slots: Slots, names: str) -> list[str]:
    """Vectors of 16 bytes where every one of them starts at a multiple of 16, else single elements."""
    conditions = [f"specc::aligned({name})" for name in slots.aligned]
    for o in ready.operands:
        if o.name in slots.aligned:
            size = f"sizeof({storage(ready, o.name)})"
            conditions += [f"specc::aligned({o.name}_stride_{a}, {size})" for a in o.axes[:-1]]
    run = f"{ready.name}_launch"
    plain = f"return {run}<Element, 1>({names});"
    if not conditions:
        return [plain]
    return [f"if ({' && '.join(conditions)}) return {run}<Element, specc::FULL<Element>>({names});", plain]
