"""Pages as Markdown, text and JSON values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from specc.ir import Model
from specc.lowered import Lowered
from specc.page.markdown import Table, code, paragraph, plain, table_markdown, table_text
from specc.page.model import Page, model_page
from specc.page.node import NodePage

Draw = Callable[[Table], list[str]]


def page_markdown(model: Model, lowered: Sequence[Lowered]) -> str:
    """The page that stands beside the generated files."""
    return print_page(model_page(model, lowered), "markdown")


def print_page(page: Page, form: str) -> str:
    """`form`: markdown or text."""
    lines = _markdown(page)
    return _text([line for line in lines if line is not None]) if form == "text" else _join(lines, table_markdown)


def print_node(page: NodePage, form: str) -> str:
    """`form`: markdown or text."""
    table = Table(("", ""), page.facts)
    lines: list[str | Table] = [f"# {page.title}", table]
    for heading, block in page.blocks:
        lines += [f"## {heading}", "", "```", *block, "```", ""]
    return _text(lines) if form == "text" else _join(lines, table_markdown)


def _markdown(page: Page) -> list[str | Table]:
    inside, outside = page.keys
    lines: list[str | Table] = [f"# {page.title}", "", paragraph(page.about), "", "## At a glance"]
    lines += [Table(("", ""), tuple((f.label, f.value) for f in page.facts))]
    lines += [
        "## Compute-graph nodes",
        "",
        f"Spec Keys: {code(inside)} in the layers, {code(outside)} outside of them.",
    ]
    lines += [page.nodes]
    if page.functions:
        lines += ["Functions that the formulas name:", "", "```", *page.functions, "```", ""]
    sections = (("Tensors", page.tensors), ("Weights", page.weights), ("State", page.states))
    for heading, table in (*sections, ("Rounding profile", page.profile), ("Kernels", page.kernels)):
        lines += [f"## {heading}", table] if table.rows else []
    return lines


def _join(lines: Sequence[str | Table], draw: Draw) -> str:
    flat = [line for x in lines for line in (draw(x) if isinstance(x, Table) else [x])]
    kept = [line for n, line in enumerate(flat) if line or (n > 0 and flat[n - 1])]
    return "\n".join(kept).rstrip() + "\n"


def _text(lines: Sequence[str | Table]) -> str:
    fence = "```"
    inside = False
    found: list[str | Table] = []
    for line in lines:
        if line == fence:
            inside = not inside
        elif isinstance(line, Table):
            found.append(_formula_last(line))
        elif inside:
            found.append(f"  {line}")
        else:
            found.append(plain(line).lstrip("# ") if line.startswith("#") else plain(line))
    return _join(found, table_text)


def _formula_last(table: Table) -> Table:
    """The widest column runs free at the end of a line."""
    order = sorted(range(len(table.header)), key=lambda n: table.header[n] == "Formula")
    return Table(tuple(table.header[n] for n in order), tuple(tuple(row[n] for n in order) for row in table.rows))


def table_values(table: Table) -> list[dict[str, str]]:
    """One object a row, by column, as a reader sees it."""
    return [dict(zip(table.header, map(plain, row), strict=True)) for row in table.rows]


def page_values(page: Page) -> dict[str, object]:
    """The page as JSON values."""
    return {
        "model": page.title,
        "about": page.about,
        "facts": {f.label: plain(f.value) for f in page.facts},
        "nodes": table_values(page.nodes),
        "functions": list(page.functions),
        "tensors": table_values(page.tensors),
        "weights": table_values(page.weights),
        "states": table_values(page.states),
        "profile": table_values(page.profile),
        "kernels": table_values(page.kernels),
    }


def node_values(page: NodePage) -> dict[str, object]:
    """The page of a node as JSON values."""
    return {
        "node": page.title,
        "facts": {plain(label): plain(value) for label, value in page.facts},
        **{heading: list(lines) for heading, lines in page.blocks},
    }
