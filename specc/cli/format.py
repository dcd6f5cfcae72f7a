"""`specc fmt`."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from specc.cli.options import Json
from specc.cli.output import FAILED, print_json
from specc.diagnostics import Collector, Diagnostic, SpecError
from specc.echo import visible
from specc.inputs import read_source
from specc.storage import rewrite_file


def fmt(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help=".spec and .ops files.")],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if a file would change.")] = False,
    json: Json = False,
) -> None:
    """Rewrite specs and op libraries in their canonical form."""
    report = Collector()
    texts: dict[Path, tuple[str, str]] = {}
    for path in files:
        try:
            texts[path] = read_source(path).text, canonical(path)
        except SpecError as error:
            report.take(error)
    report.finish()
    changed = {path: pair for path, pair in texts.items() if pair[0] != pair[1]}
    if not check:
        for path, (_, after) in changed.items():
            _write(path, after)
    if json:
        print_json({"ok": not (check and changed), "changed": [str(p) for p in changed]})
    elif check:
        print("".join(_diff(path, *pair) for path, pair in changed.items()), end="")
    else:
        print("\n".join(f"{visible(str(p))}: {'formatted' if p in changed else 'unchanged'}" for p in files))
    if check and changed:
        raise typer.Exit(FAILED)


def canonical(path: Path) -> str:
    """The canonical text of a spec or op library. Raises SpecError."""
    from specc.format import format_ops, format_spec
    from specc.parse import parse_ops
    from specc.parse_spec import parse_spec

    match path.suffix:
        case ".spec":
            return format_spec(parse_spec(read_source(path)))
        case ".ops":
            return format_ops(parse_ops(read_source(path)))
    raise SpecError([Diagnostic("E506", f"`{path}` is neither a .spec nor an .ops file")])


def _write(path: Path, text: str) -> None:
    try:
        rewrite_file(path, text.encode())
    except OSError as error:
        raise SpecError([Diagnostic("E502", f"cannot write `{path}`: {error.strerror}")]) from error


def _diff(path: Path, before: str, after: str) -> str:
    name = visible(str(path))
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, f"{name} (formatted)", lineterm="")
    return "\n".join(lines) + "\n"
