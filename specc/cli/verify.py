"""`specc verify`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from specc.cli.output import FAILED, print_json


def verify(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A spec by its path or key.")],
    seed: Annotated[
        int | None, typer.Option(help="Seed of weights and texts; a new one when not given.", min=0)
    ] = None,
    draws: Annotated[int, typer.Option(help="How many draws of weights.", min=1)] = 2,
    lift: Annotated[
        bool, typer.Option("--lift/--no-lift", help="Run the official code in float64 where it asks for float32.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Report as JSON.")] = False,
) -> None:
    """Hold a spec against the official implementation, layer by layer in float64."""
    # The matrices are small: threads only get into each other's way.
    for library in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(library, "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from specc.api import load
    from specc.verify import report

    found = report.verify(load(model), _new_seed() if seed is None else seed, draws, lift)
    if json:
        print_json(report.values(found))
    else:
        print("\n".join(report.lines(found)))
    if not found.ok:
        raise typer.Exit(FAILED)


def _new_seed() -> int:
    import secrets

    return secrets.randbelow(2**32)
