"""The header that declares the launch wrappers of a model's kernels, for C and C++."""

from __future__ import annotations

from collections.abc import Sequence

from specc.kernels import Kernel
from specc.render import render
from specc.targets.cuda.emit import symbol
from specc.targets.cuda.names import legal
from specc.targets.cuda.wrapper import declaration, needs_workspace, table_declaration, workspace_declaration
from specc.targets.text import break_lines


def header(kernels: Sequence[Kernel], space: str) -> str:
    """The text of `SPACE.h`."""
    wrappers = [_declarations(k, space) for k in kernels]
    return break_lines(render("cuda/header.h.j2", guard=f"{space.upper()}_H", wrappers=wrappers))


def _declarations(kernel: Kernel, space: str) -> list[str]:
    ready = legal(kernel)
    name = symbol(kernel, space)
    tables = [table_declaration(name, t) for t in ready.tables]
    workspace = [workspace_declaration(name, ready)] if needs_workspace(ready) else []
    return [*tables, *workspace, declaration(name, ready)]
