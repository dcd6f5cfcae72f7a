"""`specc show` and `specc list`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from specc.cli.options import Json
from specc.cli.output import print_json
from specc.echo import visible

if TYPE_CHECKING:
    from specc.ir import Model


class Form(StrEnum):
    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def show(
    name: Annotated[
        str, typer.Argument(metavar="MODEL|SPEC|KEY", help="google/gemma-4-31B, a .spec file, a Spec Key.")
    ],
    format: Annotated[Form, typer.Option(help="How to print the page.")] = Form.TEXT,
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Print the page of a model, or of one node."""
    from specc import pipeline
    from specc.models import find_model, split_name
    from specc.page import model_page, page_values, print_page

    model_name, key = split_name(name)
    model = pipeline.load(find_model(model_name))
    form = Form.JSON if json else format
    if key is not None:
        _show_node(model, key, form)
        return
    page = model_page(model, pipeline.lower(model))
    if form is Form.JSON:
        print_json(page_values(page))
    else:
        print(print_page(page, form), end="")


def _show_node(model: Model, key: str, form: Form) -> None:
    from specc.lowered import lower_each
    from specc.page import node_page, node_values, print_node
    from specc.spec_key import parse_key, resolve

    layer = parse_key(key).layer
    one = layer if isinstance(layer, int) else None
    pages = [node_page(model, n, lower_each(model, [n]), one) for n in resolve(model, key)]
    if form is Form.JSON:
        print_json([node_values(page) for page in pages])
    else:
        print("\n".join(print_node(page, form) for page in pages), end="")


def list_models(json: Json = False) -> None:
    """List the models that have a spec here, and the ops that a spec can name."""
    from specc.library import load_library
    from specc.models import known_models

    models, ops = known_models(), load_library().ops
    if json:
        found = [{"model": m.key, "version": m.version, "spec": str(m.path)} for m in models]
        print_json({"models": found, "ops": [op.name for op in ops]})
        return
    print("Models")
    for m in models:
        print(f"  {m.key}@{m.version}  {visible(str(m.path))}")
    print("Ops")
    width = max(len(op.name) for op in ops)
    for op in ops:
        print(f"  {op.name.ljust(width)}  {op.doc}".rstrip())
