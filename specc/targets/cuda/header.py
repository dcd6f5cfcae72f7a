"""The header that declares the launch wrappers of a model's kernels, for C and C++."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from specc.formula_text import dims_text
from specc.kernels import Kernel
from specc.render import render
from specc.targets.cuda.emit import symbol
from specc.targets.cuda.names import legal
from specc.targets.cuda.slots import touched
from specc.targets.cuda.wrapper import declaration, needs_workspace, table_declaration, workspace_declaration
from specc.targets.text import break_lines, paragraph


def header(kernels: Sequence[Kernel], space: str) -> str:
    """The text of `SPACE.h`."""
    wrappers = [_wrapper(k, space) for k in kernels]
    return break_lines(render("cuda/header.h.j2", guard=f"{space.upper()}_H", wrappers=wrappers))


@dataclass(frozen=True)
class Wrapper:
    """`shapes`: a comment."""

    shapes: list[str]
    declarations: list[str]


def declared(kernel: Kernel, space: str) -> list[str]:
    """The names of a kernel's functions in the header."""
    return re.findall(r"(\w+)\(", "\n".join(_declarations(legal(kernel), space)))


def _wrapper(kernel: Kernel, space: str) -> Wrapper:
    ready = legal(kernel)
    return Wrapper(_shapes(ready), _declarations(ready, space))


def _declarations(ready: Kernel, space: str) -> list[str]:
    name = symbol(ready, space)
    tables = [table_declaration(name, t) for t in ready.tables]
    workspace = [workspace_declaration(name, ready)] if needs_workspace(ready) else []
    return [*tables, *workspace, declaration(name, ready)]


def _shapes(ready: Kernel) -> list[str]:
    """`/* x[T, rows_1, 256], pos[T], table_[128] -> y[T, rows_1, 256] */`"""
    operands = touched(ready)
    shapes = [f"{o.name}{dims_text(o.dims)}" for o in operands if not o.output]
    shapes += [f"{t.name}[{t.extent}]" for t in ready.tables]
    results = ", ".join(f"{o.name}{dims_text(o.dims)}" for o in operands if o.output)
    return paragraph(f"/* {', '.join(shapes)} -> {results} */", hanging=" * ")
