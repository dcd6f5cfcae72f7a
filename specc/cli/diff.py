"""`specc diff`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from specc.cli.options import Json
from specc.cli.output import FAILED, print_json, print_warnings
from specc.diagnostics import Collector, SpecError
from specc.echo import visible

if TYPE_CHECKING:
    from pathlib import Path

    from specc.compare import Change, Touched
    from specc.ir import Model
    from specc.syntax_spec import SpecFile

LONG = 100
"""Longest value that is printed whole."""
KEPT = 30
"""How much of what two long values begin with alike is printed."""

Named = Annotated[str, typer.Argument(help="specs/gemma4.spec, HEAD:specs/gemma4.spec, google/gemma-4-31B.")]
Side = tuple["Model", dict[str, str], tuple[str, ...]]


def diff(old: Named, new: Named, json: Json = False) -> None:
    """Say what differs in meaning between two Model Specs, and which generated files that touches.

    Exits with 1 where the meaning differs."""
    from specc.compare import compare, compare_files

    (before, old_files, old_words), (after, new_files, new_words) = _both(old, new)
    changes, files = compare(before, after), compare_files(old_files, new_files)
    if json:
        values = {"changes": [change_values(c) for c in changes], "files": [_file_values(f) for f in files]}
        print_json({"ok": not changes, **values})
    else:
        lines = change_lines(changes) or [same_meaning(before == after and old_words == new_words)]
        print("\n".join([*lines, *(f"  {f.effect:<9}  {f.name}" for f in files)]))
    if changes:
        raise typer.Exit(FAILED)


def _both(*names: str) -> list[Side]:
    """The models, generated files and wordings of both specs. Raises SpecError with the mistakes of both."""
    found, report = [], Collector()
    for name in names:
        try:
            found.append(_side(name))
        except SpecError as error:
            report.take(error)
    report.finish()
    return found


def _side(name: str) -> Side:
    from specc import pipeline
    from specc.cli.revision import found
    from specc.inputs import Options

    with found(name) as spec:
        syntax = pipeline.parse(spec.path)
        model = pipeline.check(spec.path, syntax)
        print_warnings([spec.named(w) for w in model.library.warnings])
        return model, pipeline.files(model, pipeline.lower(model), Options()), wording(spec.path, syntax)


def wording(path: Path, syntax: SpecFile) -> tuple[str, ...]:
    """A spec and the libraries that it uses, without comments and in canonical form. Raises SpecError."""
    from specc import pipeline
    from specc.format import format_ops, format_spec
    from specc.inputs import read_source
    from specc.parse import parse_ops

    libraries = [parse_ops(read_source(file)) for file in pipeline.used_files(path, syntax)]
    texts = [format_spec(syntax), *map(format_ops, libraries)]
    lines = [line for text in texts for line in text.splitlines()]
    return tuple(line for line in lines if line.strip() and not line.lstrip().startswith("#"))


def same_meaning(same_words: bool) -> str:
    """One line for two specs that mean the same."""
    return f"same meaning: {'only formatting differs' if same_words else 'other order or wording, same values'}"


def change_lines(changes: Sequence[Change]) -> list[str]:
    """One line a change, and below a formula its lines; those of an op stand below the first of its nodes."""
    lines: list[str] = []
    shown: list[list[str]] = []
    for change in changes:
        head, body = f"{_where(change)} {_what(change)}", _lines(change)
        if not body:
            lines.append(f"{head}{_values(change)}")
        elif body in shown:
            lines.append(f"{head}: as above")
        else:
            lines += [head, *body]
            shown.append(body)
    return [visible(line) for line in lines]


def short_text(change: Change) -> str:
    """A change in a few words, without the model: `attn.rope (sliding) theta 10000 → 20000`."""
    key, colon, node = _where(change).partition(":")
    path = node.removeprefix("layers[*].")
    if change.kind == "node":
        return f"{path} {'added' if change.old is None else 'removed'}"
    head = f"{path} {_what(change)}" if colon else _what(change)
    return visible(head if _lines(change) else f"{head}{_values(change).removeprefix(':')}")


def _where(change: Change) -> str:
    return change.key if change.variant is None else f"{change.key} ({change.variant})"


def _what(change: Change) -> str:
    if change.kind == "renamed":
        return f"{change.name} renamed"
    if change.kind == "constant":
        return change.name
    return f"{change.kind} {change.name}".rstrip()


def _lines(change: Change) -> list[str]:
    """Lines of a formula before and after."""
    if change.kind != "formula":
        return []
    sides = ((sign, text) for sign, text in (("-", change.old), ("+", change.new)) if text is not None)
    return [f"  {sign} {line}" for sign, text in sides for line in text.splitlines()]


def _values(change: Change) -> str:
    if change.old is None:
        return f" added: {clip(change.new or '')}"
    if change.new is None:
        return f" removed: {clip(change.old)}"
    start = _alike(change.old, change.new)
    form = " (another form of the same value)" if change.same_value else ""
    return f": {clip(change.old, start)} → {clip(change.new, start)}{form}"


def _alike(old: str, new: str) -> int:
    """How many characters two texts begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def clip(text: str, start: int = 0) -> str:
    """`text`, or of a long one a part around `start`."""
    first = max(0, start - KEPT)
    if len(text) <= LONG:
        return text
    part = text[first : first + LONG]
    return f"{'…' if first else ''}{part}{'…' if first + LONG < len(text) else ''}"


def change_values(change: Change) -> dict[str, str | bool | None]:
    return {
        "key": change.key,
        "variant": change.variant,
        "kind": str(change.kind),
        "name": change.name,
        "old": change.old,
        "new": change.new,
        "same_value": change.same_value,
    }


def _file_values(file: Touched) -> dict[str, str]:
    return {"file": file.name, "effect": str(file.effect)}
