"""`specc verify`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from specc.cli.options import Json
from specc.cli.output import FAILED, print_json
from specc.diagnostics import Diagnostic, SpecError
from specc.ir import Role

EXACT = "float64"
MOST = 1 << 20
"""What an option of time or memory may be at most."""


def verify(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A spec by its path or key.")],
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A model of your own: a Python file with `build`.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of weights and texts; a new one when not given.", min=0)
    ] = None,
    draws: Annotated[int, typer.Option(help="How many draws of weights.", min=1)] = 2,
    lift: Annotated[
        bool, typer.Option("--lift/--no-lift", help="Run the official code in float64 where it asks for float32.")
    ] = True,
    dtype: Annotated[
        str, typer.Option(help="float64: the formulas. The type of the profile: how far its rounding is from float64.")
    ] = EXACT,
    timeout: Annotated[int, typer.Option(help="Seconds that FILE may run.", min=1, max=MOST)] = 300,
    memory: Annotated[int, typer.Option(help="GiB of memory that FILE may take.", min=1, max=MOST)] = 4,
    search: Annotated[int, typer.Option(help="Seconds to look for what FILE does instead.", min=0, max=MOST)] = 120,
    json: Json = False,
) -> None:
    """Hold a spec against the official implementation, or your own, layer by layer in float64."""
    # The matrices are small: threads only get into each other's way.
    for library in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(library, "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from specc.api import load
    from specc.verify import report, rounding, user_report
    from specc.verify.user import Bounds

    spec = load(model)
    number = _new_seed() if seed is None else seed
    if file is not None:
        if dtype != EXACT:
            raise SpecError([Diagnostic("E505", f"a model file is not judged in `{dtype}`", None, f"it is in {EXACT}")])
        verdict = user_report.verify_file(spec, file, number, Bounds(timeout, memory << 30), draws, lift, search)
        _finish(verdict.ok, user_report.values(verdict) if json else user_report.lines(verdict))
        return
    if dtype == EXACT:
        found = report.verify(spec, number, draws, lift)
        _finish(found.ok, report.values(found) if json else report.lines(found))
        return
    stored = spec.model.profile.type_of(Role.ACTIVATION)
    if dtype != stored:
        help_ = f"{EXACT}, or {stored} as in the profile"
        raise SpecError([Diagnostic("E505", f"there is no type `{dtype}`", None, help_)])
    roundings = rounding.verify_rounding(spec, number, draws)
    _finish(roundings.ok, rounding.values(roundings) if json else rounding.lines(roundings))


def _finish(ok: bool, found: dict[str, Any] | Iterator[str]) -> None:
    """Prints a report, as JSON or line by line. Ends the command with FAILED unless `ok`."""
    if isinstance(found, dict):
        print_json(found)
    else:
        print("\n".join(found))
    if not ok:
        raise typer.Exit(FAILED)


def _new_seed() -> int:
    import secrets

    return secrets.randbelow(2**32)
