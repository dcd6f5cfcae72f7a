"""The commands under one name, and the one place where an error becomes a message and an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Annotated, TextIO

import typer

from specc import __version__
from specc.cli import build, check, config, diff, evaluate, format, show, verify
from specc.cli.output import BAD_INPUT, print_errors
from specc.diagnostics import Diagnostic, SpecError, cannot_write

EXTRAS = {
    "numpy": "run",
    "torch": "run",
    "triton": "run",
    "hypothesis": "check",
    "mpmath": "check",
    "transformers": "verify",
}
"""Libraries that only some commands need, and the extra that installs them."""

app = typer.Typer(
    name="specc",
    help="From a readable Model Spec to GPU kernels and a PyTorch reference, with evidence.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("build")(build.build)
app.command("show")(show.show)
app.command("config")(config.config)
app.command("list")(show.list_models)
app.command("fmt")(format.fmt)
app.command("check")(check.check)
app.command("diff")(diff.diff)
app.command("eval")(evaluate.evaluate)
app.command("verify")(verify.verify)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"specc {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    pass


def _missing(library: str) -> Diagnostic:
    return Diagnostic("E509", f"this needs {library}", None, f"pip install 'specc[{EXTRAS[library]}]'")


def run(arguments: Sequence[str]) -> int:
    """The exit status of `specc ARGUMENTS`. What a user did wrong is printed, never raised."""
    try:
        app(list(arguments), prog_name="specc", standalone_mode=True)
    except SpecError as error:
        print_errors(error, as_json="--json" in arguments)
        return BAD_INPUT
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        print_errors(SpecError([_missing(error.name)]), as_json="--json" in arguments)
        return BAD_INPUT
    except MemoryError as error:
        said = f"memory does not suffice: {str(error) or 'nothing is left'}"
        print_errors(SpecError([Diagnostic("E510", said)]), as_json="--json" in arguments)
        return BAD_INPUT
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0 if done.code is None else BAD_INPUT
    return 0


def main() -> None:
    """The `specc` command. What it cannot print is one more mistake, never a traceback."""
    _open_streams()
    try:
        status = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
        status = 0
    except OSError as error:
        _silence(sys.stdout)
        _complain(error)
        status = BAD_INPUT
    sys.exit(status)


def _open_streams() -> None:
    """Gives the streams that were closed, which Python has as None, nothing to write to."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
        elif isinstance(stream, TextIOWrapper) and name != "stdin":
            stream.reconfigure(errors="backslashreplace")


def _silence(stream: TextIO) -> None:
    """Lets what is still to be written to `stream` go nowhere, so that nothing fails at the end of the process."""
    handle = os.open(os.devnull, os.O_WRONLY)
    os.dup2(handle, stream.fileno())
    os.close(handle)


def _complain(error: OSError) -> None:
    try:
        print_errors(cannot_write(error, "the report"), as_json=False)
        sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)
