"""What a schedule hands to its template and to the launch wrapper."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass

from specc.kernels import Access, Axis, Kernel, Operand
from specc.ops import Expr, Num, Sort
from specc.targets.cuda.printer import Printer
from specc.targets.cuda.scope import storage
from specc.targets.naming import found as found_in


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel: its declared type and its name there, and its name in the launch wrapper."""

    declared: str
    name: str
    argument: str


@dataclass(frozen=True)
class Instance:
    """One instance of a kernel: its name with template arguments that may name `Element`, the threads of a block, and
    its dynamic shared memory in bytes."""

    kernel: str
    threads: int
    shared_bytes: int = 0


@dataclass(frozen=True)
class Slots:
    """A schedule filled for one kernel. `values` go to the template; `exprs` are all expressions that were printed."""

    template: str
    values: Mapping[str, object]
    exprs: tuple[Expr, ...]
    parameters: tuple[Parameter, ...]
    rows: str
    """The number of rows, over the sizes of the launch wrapper."""
    aligned: tuple[str, ...]
    """Operands that are read or written in vectors."""
    launch: tuple[str, ...]
    """Statements of the launch wrapper that know `Element`, VEC and `rows`, and set `grid` and `block`."""
    shared_bytes: str = "0"
    """Dynamic shared memory of a block, in C++."""
    complete: bool = False
    """Whether `launch` holds the launches themselves, of kernels in a namespace `kernels`, and returns."""
    workspace: tuple[str, ...] = ()
    """Statements that return the number of float32 elements that the launch needs beside its operands."""
    min_blocks: int | None = None
    """Blocks that a multiprocessor must hold. Where nothing is said, ptxas aims at a number, perhaps by spilling."""
    others: Callable[[int], tuple[Instance, ...]] | None = None
    """Instances of the kernels for a storage type of so many bytes, where they are not `NAME_kernel<Element, VEC>`."""

    def instances(self, kernel: str, width: int) -> tuple[Instance, ...]:
        """What the launch wrapper launches for a storage type of `width` bytes: vectors where operands allow them, and
        single elements."""
        if self.others is not None:
            return self.others(width)
        lengths = (16 // width, 1) if self.aligned else (1,)
        threads = int(str(self.values["threads"]))
        return tuple(Instance(f"{kernel}_kernel<Element, {n}>", threads) for n in lengths)


class Function:
    """One of several kernels of a file: `NAME_kernel`, or `NAME_SUFFIX_kernel`. Its template parameters are Element,
    VEC and others. `printed`: what its text mentions; `also`: other sizes; `extra`: parameters that no operand has."""

    def __init__(
        self,
        kernel: Kernel,
        suffix: str,
        threads: str,
        printed: object,
        also: tuple[str, ...] = (),
        extra: tuple[Parameter, ...] = (),
    ) -> None:
        self.name = "_".join(filter(None, (kernel.name, suffix, "kernel")))
        self.threads = threads
        used = {w for text in strings(printed) for w in re.findall(r"\w+", text)} | set(also)
        self.parameters = (*(p for p in parameters(kernel, [printed, *also]) if p.name in used), *extra)

    @property
    def signature(self) -> str:
        declared = ", ".join(f"{p.declared} {p.name}" for p in self.parameters)
        return f"__global__ void __launch_bounds__({self.threads}) {self.name}({declared}) {{"

    def template_id(self, arguments: str = "") -> str:
        """The kernel with `arguments` behind Element and VEC."""
        return f"kernels::{self.name}<{', '.join(filter(None, ('Element, VEC', arguments)))}>"

    def runner(self, name: str) -> list[str]:
        """Statements that make `name(kernel, grid, threads, shared bytes)` launch it."""
        given = ["kernel", "grid", "threads", "size_t(bytes)", "stream", *(p.argument for p in self.parameters)]
        head = f"const auto {name} = [&](auto kernel, specc::Grid grid, int threads, int64_t bytes) {{"
        return [head, f"    return specc::launch({', '.join(given)});", "};"]


def touched(kernel: Kernel) -> tuple[Operand, ...]:
    """Operands that are read or written; others only have a size that is used."""
    read = {a.operand for a in found_in(kernel.schedule, Access)}
    return tuple(o for o in kernel.operands if o.output or o.name in read)


def parameters(kernel: Kernel, printed: object) -> tuple[Parameter, ...]:
    """Parameters that `printed` (strings, in any nesting) mentions, pointers to all that is read or written, and the
    number of rows."""
    used = {w for text in strings(printed) for w in re.findall(r"\w+", text)}
    found = [Parameter("int", "index_bytes", "index_bytes")] if "index_bytes" in used else []
    for o in touched(kernel):
        kind = "void" if o.sort is Sort.INDEX else storage(kernel, o.name)
        constant = "" if o.output else "const "
        argument = o.name if o.sort is Sort.INDEX else f"static_cast<{constant}{kind}*>({o.name})"
        found.append(Parameter(f"{constant}{kind}* __restrict__", f"{o.name}_ptr", argument))
    found += [Parameter("const double* __restrict__", f"{t.name}_ptr", t.name) for t in kernel.tables]
    found += [Parameter("int", "rows", "int(rows)")] if "rows" in used else []
    found += [Parameter("int", s, f"int({s})") for s in kernel.sizes if s in used]
    for o in kernel.operands:
        names = [f"{o.name}_stride_{axis}" for axis in o.axes[:-1]]
        found += [Parameter("int64_t", name, name) for name in names if name in used]
    return tuple(found)


def strings(x: object) -> list[str]:
    """All texts inside a value of a template."""
    if isinstance(x, str):
        return [x]
    if isinstance(x, Mapping):
        return [s for v in x.values() for s in strings(v)]
    if isinstance(x, list | tuple):
        return [s for v in x for s in strings(v)]
    return [s for v in vars(x).values() for s in strings(v)] if is_dataclass(x) else []


def extent_text(e: Expr) -> str:
    """An extent in C++."""
    return Printer().atom(e)


def product_text(axes: Iterable[Axis]) -> str:
    """The number of points of some axes: `T * 32`. Numbers come last, so that the product has 64 bits."""
    extents = [a.extent for a in axes]
    ordered = [e for e in extents if not isinstance(e, Num)] + [e for e in extents if isinstance(e, Num)]
    return " * ".join(extent_text(e) for e in ordered) or "1"


def unravel(axes: tuple[Axis, ...]) -> list[str]:
    """Row variables out of the number `row`."""
    if not axes:
        return []
    lines: list[str] = []
    rest = "row"
    for n, a in reversed(list(enumerate(axes))):
        if n == 0:
            lines.append(f"const int {a.var} = {rest};")
        else:
            extent = extent_text(a.extent)
            lines.append(f"const int {a.var} = {rest} % {extent};")
            rest = f"{rest} / {extent}" if " " not in rest else f"({rest}) / {extent}"
    return lines
