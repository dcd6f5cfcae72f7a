"""`specc config`."""

from __future__ import annotations

from typing import Annotated

import typer


def config(
    name: Annotated[str, typer.Argument(metavar="MODEL|SPEC", help="google/gemma-4-31B, or a .spec file.")],
) -> None:
    """Print the Hugging Face configuration of a model, as JSON."""
    from specc import pipeline
    from specc.models import find_model

    print(pipeline.config_text(pipeline.load(find_model(name))), end="")
