"""Names of generated functions and files: those that rows of the node table ask for, and those that are taken."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping

from specc import syntax_spec as m
from specc.diagnostics import Collector
from specc.ir import Phase
from specc.ops import Op

RESERVED = frozenset((
    "__init__", "launch", "before_layers", "after_layers", "append", "append_each", "masked_softmax", "rounded",
    "views", "weighted_sum", "Precision", "Tensor", "Mapping", "torch", "math", "triton", "tl", "w", "p", "cache",
    "device", "abs", "float", "int", "max", "min", "range", "__debug__",
))  # fmt: skip
"""Files of a generated package, and names that its modules use as they stand."""


FILES = frozenset(("__init__", "launch"))
"""Of these, the files."""


def check_node_names(nodes: m.Nodes, ops: Mapping[str, Op], report: Collector) -> None:
    """E229: no row is named like something that generated code has already, or like another row once dots are gone, nor
    has it a file whose name differs from another one by case only."""
    taken: dict[str, tuple[str, m.Row]] = {}
    groups: dict[str, tuple[str, m.Row]] = {}
    for row in nodes.rows:
        bad = reserved_name(row)
        if bad is not None:
            first, *rest = row.path.split(".")
            help_ = f"choose another name, such as `{'.'.join([f'{first}_node', *rest])}`"
            report.error("E229", f"the name `{bad}` of a node is reserved in generated code", row.span, help_)
            continue
        group = row.path.split(".")[0]
        other, known = groups.setdefault(group.lower(), (group, row))
        if other != group:
            _one_file(row, known, report)
            continue
        for name in function_names(row, ops.get(row.op.name)):
            other, known = taken.setdefault(name.lower(), (name, row))
            if other != name:
                _one_file(row, known, report)
                break
            if known is not row and (known.path, known.layers.name) != (row.path, row.layers.name):
                _one_name(row, known, name, report)
                break


def _one_file(row: m.Row, known: m.Row, report: Collector) -> None:
    message = f"`{row.path}` and `{known.path}` would be one file where upper and lower case are the same"
    if known is row:
        message = f"two applications of `{row.path}` would be one file where upper and lower case are the same"
    report.error("E229", message, row.span, _help(row, known))


def _one_name(row: m.Row, known: m.Row, name: str, report: Collector) -> None:
    both = f"`{row.path}` and `{known.path}`" if row.path != known.path else "a node in the layers and one outside"
    report.error("E229", f"{both} would both be called `{name}` in generated code", row.span, _help(row, known))


def _help(row: m.Row, known: m.Row) -> str:
    return (
        "give one of them another label" if known is row else f"choose another name; the first stands at {known.span!r}"
    )


def reserved_name(row: m.Row) -> str | None:
    """The part of the row's name that generated code cannot have, if any."""
    first = row.path.split(".")[0]
    if keyword.iskeyword(first) or first == "__init__":
        return first
    stem = _stem(row)
    return stem if keyword.iskeyword(stem) or stem in RESERVED or stem.lower() in FILES else None


def function_names(row: m.Row, op: Op | None) -> Iterator[str]:
    """The names of what is generated for a row: one a phase, and one more for each further use of its op."""
    phases = [""] if op is None or op.prefill is None else [f"_{phase}" for phase in Phase]
    for phase in phases:
        yield _stem(row) + phase
        for n, apply in enumerate(row.applies[1:], start=1):
            yield f"{_stem(row)}{phase}_{apply.label or n}"


def _stem(row: m.Row) -> str:
    """As `NodeVariant.variant_name`."""
    stem = row.path.replace(".", "_")
    return stem if row.layers.name in ("-", "all") else f"{stem}_{row.layers.name}"
