"""Names of a generated kernel: none from a formula collides with Python, Triton or the names that templates use."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from specc.kernels import Access, Axis, Kernel, Operand, Pointwise, Stage, Store, Table
from specc.ops import ScalarDef, Size, Sort, Var

RESERVED = frozenset(
    (*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "tl", "triton", "torch", "math", "libdevice", "cache")
)
DERIVED = re.compile(
    r".*_(ptr|row|in|tile|raw|rows|kernel|table|part|found|value|values|all|new)|.*_stride_.*|.*__|t\d+|[A-Z]+(_[A-Z]+)+|_.*"
)
"""Forms of the names that templates and printers make."""
TEMPLATE = (
    "BLOCK", "CONFIGS", "Config", "Configs", "OPERANDS", "Operand", "ROWS", "SPLITS", "TILE", "acc", "base", "bind",
    "block", "blocks", "config", "count", "device", "fade", "first", "grid", "lane", "largest", "last", "merge", "on",
    "out", "part", "pick", "piece", "pid", "program", "result", "results", "score", "sizes", "span", "split", "splits",
    "step", "top", "total", "turn_fraction", "weight", "whole", "workspace", "workspace_of",
)  # fmt: skip
"""Names that templates use as they stand."""

T = TypeVar("T")


class Names:
    """Hands out names that are free."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)

    def fresh(self, wanted: str) -> str:
        """`wanted`, or with a number after it."""
        name, count = wanted, 2
        while name in self.taken:
            name, count = f"{wanted}_{count}", count + 1
        self.taken.add(name)
        return name


def found(node: object, kind: type[T]) -> list[T]:
    """All values of type `kind` inside a schedule, in order."""
    values: list[T] = [node] if isinstance(node, kind) else []
    if isinstance(node, tuple):
        inner: list[object] = list(node)
    elif is_dataclass(node) and not isinstance(node, type | ScalarDef):
        inner = [getattr(node, f.name) for f in fields(node)]
    else:
        inner = []
    return values + [v for x in inner for v in found(x, kind)]


def legal(kernel: Kernel) -> Kernel:
    """The same kernel with every name of its schedule, operands, tables and sizes fit for a generated file."""
    axes = [a.var for a in found(kernel.schedule, Axis)]
    if isinstance(kernel.schedule, Pointwise):
        axes.append(kernel.schedule.inner)
    other = [a.name for a in found(kernel.schedule, Access)] + [s.name for s in found(kernel.schedule, Stage)]
    other += [o.name for o in kernel.operands] + [t.name for t in kernel.tables] + list(kernel.sizes)
    names = Names()
    renamed = {n: names.fresh(_safe(n)) for n in dict.fromkeys(other)}
    renamed_axes = {n: names.fresh(_safe(n)) for n in dict.fromkeys(axes)}
    if all(a == b for a, b in (*renamed.items(), *renamed_axes.items())):
        return kernel
    return _Renaming(renamed, renamed_axes).kernel(kernel)


def _safe(name: str) -> str:
    bad = name in RESERVED or name in TEMPLATE or DERIVED.fullmatch(name) is not None
    return f"{name.strip('_')}_" if bad else name


class _Renaming:
    """Replaces names of axes, and all other names, throughout a kernel."""

    def __init__(self, names: dict[str, str], axes: dict[str, str]) -> None:
        self.names, self.axes = names, axes

    def kernel(self, kernel: Kernel) -> Kernel:
        return replace(
            kernel,
            schedule=self.tree(kernel.schedule),
            operands=self.tree(kernel.operands),
            tables=tuple(replace(t, name=self.names[t.name]) for t in kernel.tables),
            sizes=tuple(self.names[s] for s in kernel.sizes),
        )

    def tree(self, x: Any) -> Any:
        """A slot, or a tuple of them."""
        if isinstance(x, tuple):
            return tuple(self.tree(item) for item in x)
        if isinstance(x, Var) and x.sort is Sort.INDEX and x.name in self.axes:
            return replace(x, name=self.axes[x.name])
        if not is_dataclass(x) or isinstance(x, type | ScalarDef):
            return x
        own = self._own(x)
        rest = {f.name: getattr(x, f.name) for f in fields(x) if f.name not in own}
        return replace(x, **{n: self.tree(v) for n, v in rest.items() if not isinstance(v, str)}, **own)

    def _own(self, x: Any) -> dict[str, Any]:
        """New values of the fields that are names."""
        match x:
            case Var(name) | Size(name):
                return {"name": self._local(name)}
            case Axis(var):
                return {"var": self.axes[var]}
            case Pointwise(inner=inner):
                return {"inner": self.axes[inner]}
            case Access(name, operand):
                return {"name": self.names[name], "operand": self.names[operand]}
            case Store(operand):
                return {"operand": self.names[operand]}
            case Operand(name, axes=axes):
                return {"name": self.names[name], "axes": tuple(self._axis(a) for a in axes)}
            case Stage(name) | Table(name):
                return {"name": self.names[name]}
        return {}

    def _local(self, name: str) -> str:
        stage = name.removesuffix("_raw")
        if name not in self.names and stage != name and stage in self.names:
            return f"{self.names[stage]}_raw"
        return self.names.get(name, name)

    def _axis(self, name: str) -> str:
        return self.axes.get(name, self.names.get(name, name))
