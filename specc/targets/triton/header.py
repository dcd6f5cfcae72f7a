"""The parts of a kernel file around its device functions: what it says about itself, tables of tiles and operands."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from specc.formula_text import expr_text
from specc.ir import Role
from specc.kernels import Attention, Contraction, Kernel
from specc.ops import Expr, Num, Size, Sort, walk
from specc.targets.text import call
from specc.targets.triton.host import dim_text, host_text
from specc.targets.triton.printer import uses_libdevice
from specc.targets.triton.slots import Slots, strings
from specc.targets.triton.tiles import Config, Configs


def imports(kernel: Kernel, slots: Slots, doubles: Collection[str]) -> list[str]:
    """Import lines, of what the file uses only."""
    lines = []
    if any("math." in host_text(t.expr) for t in kernel.tables):
        lines.append("import math")
    if kernel.tables:
        lines.append("from functools import cache")
    lines += [""] if lines else []
    lines += ["import torch", "import triton", "import triton.language as tl"]
    if uses_libdevice(slots.exprs, doubles) or any("libdevice." in s for s in strings(slots.values)):
        lines.append("from triton.language.extra import libdevice")
    runtime = ["Config", "Configs", "Operand", "bind", "on", "pick", *(["workspace_of"] if slots.workspace else [])]
    return [*lines, "", f"from .launch import {', '.join(runtime)}"]


def config_lines(configs: Configs) -> list[str]:
    """Lines of CONFIGS."""
    lines: list[str] = []
    for arch, widths in configs:
        lines.append(f'"{arch}": {{')
        for width, found in widths:
            texts = [_config(c) for c in found]
            one = f"    {width}: ({texts[0]},),"
            lines += [one] if len(texts) == 1 else [f"    {width}: (", *(f"        {t}," for t in texts), "    ),"]
        lines.append("},")
    return lines


def _config(c: Config) -> str:
    tiles = "{" + ", ".join(f'"{n}": {v}' for n, v in c.tiles) + "}"
    return f"Config({c.rows}, {c.warps}, {c.stages}, {tiles})"


def groups(kernel: Kernel) -> dict[str, str]:
    """For each real operand the first one whose storage type it shares: those of one role, and factors of a product."""
    leaders: dict[str, str] = {}
    reals = [o for o in kernel.operands if o.sort is Sort.REAL]
    factors = _factors(kernel)
    for o in reals:
        if o.role is Role.ACCUMULATOR:
            leaders[o.name] = o.name
            continue
        same = [p.name for p in reals if p.role == o.role or (o.name in factors and p.name in factors)]
        known = [leaders[n] for n in same if n in leaders]
        others = [p.name for p in reals if p.role is not Role.ACCUMULATOR]
        leaders[o.name] = known[0] if known else others[0] if o.output else o.name
    return leaders


def _factors(kernel: Kernel) -> tuple[str, ...]:
    match kernel.schedule:
        case Contraction(a_loads=a, b_loads=b):
            return tuple(x.operand for x in (*a, *b))
        case Attention(q=q, k=k, v=v):
            return (q.operand, k.operand, v.operand)
    return ()


def operand_lines(kernel: Kernel) -> list[str]:
    """Lines of OPERANDS."""
    leaders = groups(kernel)
    lines: list[str] = []
    for o in kernel.operands:
        items = [f'"{o.name}"', dims_tuple(o.dims)]
        if o.sort is Sort.INDEX:
            items.append("index=True")
        elif leaders[o.name] != o.name:
            items.append(f'like="{leaders[o.name]}"')
        items += [f"{flag}=True" for flag in ("output", "wide") if getattr(o, flag)]
        items += ["accumulator=True"] if o.role is Role.ACCUMULATOR else []
        *most, last = call("Operand", items, 5)
        lines += [*most, last + ","]
    return lines


def dims_tuple(dims: tuple[Expr, ...]) -> str:
    """`("T", 5376)`."""
    texts = [_dim(d) for d in dims]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _dim(d: Expr) -> str:
    match d:
        case Num(value):
            return str(int(value))
        case Size(name):
            return f'"{name}"'
    names = {n.name: f'sizes["{n.name}"]' for n in _sizes(d)}
    return f"lambda sizes: {dim_text(d, names)}"


def _sizes(e: Expr) -> list[Size]:
    return [n for n in walk(e) if isinstance(n, Size)]


@dataclass(frozen=True)
class TableText:
    """The function that fills a table, as the skeleton prints it."""

    function: str
    text: str
    var: str
    extent: int
    value: str


def table_values(kernel: Kernel) -> list[TableText]:
    """For each table the function that fills it."""
    return [TableText(f"_{t.name}", expr_text(t.expr), t.var, t.extent, host_text(t.expr)) for t in kernel.tables]
