"""Every stage of the compiler in order, with what goes in and what comes out.

    path -> text -> syntax tree -> model -> kernels -> files
            Source  SpecFile       Model    Lowered    {name: text}

`build` runs them and hands the files to the writer; `up_to_date` answers before any of them runs.
"""

from __future__ import annotations

import contextlib
import errno
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from specc import emit
from specc.diagnostics import Collector, Diagnostic, SpecError, nearest
from specc.hygiene import fault
from specc.inputs import TARGETS, Options, read_inputs, read_source, used_file
from specc.manifest import Hashes, Manifest, digest, read_manifest

if TYPE_CHECKING:
    from specc.emit import Drift, Written
    from specc.ir import Model
    from specc.lowered import Lowered
    from specc.ops import Library
    from specc.source import Source
    from specc.syntax_spec import SpecFile
    from specc.targets.base import Target

STAGES = ("syntax", "model", "kernels", "files")
"""What `dump` can print."""


@dataclass(frozen=True)
class Build:
    """What one build gave: the folder, and what was written (None where nothing had to be done)."""

    folder: Path
    written: Written | None
    files: tuple[str, ...]
    warnings: tuple[Diagnostic, ...] = ()


def parse(path: Path) -> SpecFile:
    """The syntax tree of a Model Spec. Raises SpecError."""
    from specc.parse_spec import parse_spec

    return parse_spec(read_source(path))


def libraries(path: Path, syntax: SpecFile) -> Library:
    """The shipped ops and those of the files that the spec uses. Raises SpecError: with the mistakes of all files."""
    from specc.library import library_of

    report = Collector()
    texts: dict[str, Source | None] = {}
    for line in syntax.uses:
        if line.text in texts:
            report.error("E105", f'`use "{line.text}"` is given twice', line.span)
            continue
        texts[line.text] = None
        try:
            texts[line.text] = read_source(used_file(path, line.text, line.place), line.place)
        except SpecError as error:
            report.take(error)
    return library_of([t for t in texts.values() if t is not None], report)


def used_files(path: Path, syntax: SpecFile) -> tuple[Path, ...]:
    """The op libraries that a spec may read, whether they can be read or not."""
    found: list[Path] = []
    for line in syntax.uses:
        with contextlib.suppress(SpecError):
            found.append(used_file(path, line.text))
    return tuple(found)


def check(path: Path, syntax: SpecFile) -> Model:
    """The typed model of a syntax tree. Raises SpecError: where op libraries have mistakes, with those of the spec that
    can be seen without them."""
    from specc.library import load_library
    from specc.typecheck.model import check_model

    try:
        library = libraries(path, syntax)
    except SpecError as error:
        return check_model(syntax, load_library(), error)
    return check_model(syntax, library)


def load(path: Path) -> Model:
    """The typed model of a file. Raises SpecError."""
    return check(path, parse(path))


def lower(model: Model) -> tuple[Lowered, ...]:
    """The kernels of every node, or the reasons why it has none, in the order of the page."""
    from specc.lowered import lower_each

    return lower_each(model)


def files(model: Model, lowered: Sequence[Lowered], options: Options) -> dict[str, str]:
    """The text of every generated file, by its name under the model's folder. Raises SpecError."""
    from specc.page import page_markdown
    from specc.tiles import tile_tables

    tile_tables(options.tiles, targets=options.targets)
    found = {"config.json": config_text(model), "README.md": page_markdown(model, lowered)}
    for target in options.targets:
        found |= {f"{target}/{name}": text for name, text in emit_target(target, model, lowered, options).items()}
    return found


def emit_target(name: str, model: Model, lowered: Sequence[Lowered], options: Options) -> Mapping[str, str]:
    """The files of one target, by their names under its folder. Raises SpecError."""
    if name not in TARGETS:
        raise SpecError([Diagnostic("E505", f"there is no target `{name}`", None, nearest(name, TARGETS))])
    target: Target = import_module(f"specc.targets.{name}.target")
    return target.emit_model(model, lowered, options.tiles)


def config_text(model: Model) -> str:
    """The published configuration as JSON: dotted keys become objects, in the order of the spec."""
    root: dict[str, object] = {}
    for key, value in model.config:
        *outer, last = key.split(".")
        place = root
        for name in outer:
            inner = place.setdefault(name, {})
            assert isinstance(inner, dict)
            place = inner
        place[last] = value
    return json.dumps(root, indent=2, ensure_ascii=False) + "\n"


def folder_of(path: Path, out: Path) -> Path:
    """Where the files of a spec go: `out/<stem of the spec>`. Raises SpecError for a stem that makes no good folder."""
    if not re.fullmatch(r"\w[\w.+-]*", path.stem) or fault(path.stem) is not None:
        help_ = "the folder under `generated/` has the spec's name: letters, digits, `_`, `.`, `+`, `-`"
        raise SpecError([Diagnostic("E503", f"{path.stem!r} is no name for a folder", None, help_)])
    return out / path.stem


def build(path: Path, out: Path, options: Options) -> Build:
    """Makes `out/<stem>` hold what the spec says. An unchanged input is seen before anything is parsed.

    Raises SpecError; also for a folder that cannot be written."""
    folder = folder_of(path, out)
    done = up_to_date(path, folder, options)
    if done is not None:
        return Build(folder, None, tuple(name for name, _ in done.files))
    produced, inputs, warnings = compile_files(path, options)
    try:
        written = emit.write(folder, produced, options.table(), inputs)
    except OSError as error:
        raise _unwritable(folder, error) from error
    return Build(folder, written, tuple(sorted(produced)), warnings)


def up_to_date(path: Path, folder: Path, options: Options) -> Manifest | None:
    """The manifest of `folder`, if it says that this spec was built there as it is now. Raises SpecError."""
    try:
        old = read_manifest(folder)
    except OSError:
        return None
    if old is None or dict(old.inputs).get("spec") != digest(read_source(path).text.encode()):
        return None  # of another text it does not say what that uses
    try:
        inputs = read_inputs(path, old.uses)
    except SpecError:  # a library that is gone, or that somebody wrote into the manifest: a build tells which
        return None
    return emit.up_to_date(folder, options.table(), inputs)


def compile_files(path: Path, options: Options) -> tuple[dict[str, str], Hashes, tuple[Diagnostic, ...]]:
    """All files of a spec, the hashes of what they were made from, and warnings. Raises SpecError; E501 for a text that
    never stays the same from when it is parsed until all is made."""
    for _ in range(RETRIES):
        before = options.table()
        syntax = parse(path)
        uses = [line.text for line in syntax.uses]
        try:
            inputs = read_inputs(path, uses)
        except SpecError:
            check(path, syntax)  # raises it with its place, beside all other mistakes
            raise
        model = check(path, syntax)
        produced = files(model, lower(model), options)
        parsed = digest(syntax.span.source.text.encode())
        if inputs == read_inputs(path, uses) and dict(inputs)["spec"] == parsed and before == options.table():
            return produced, inputs, model.library.warnings
    raise SpecError([Diagnostic("E501", f"`{path}`, or what it uses, changes while it is read")])


RETRIES = 5


def drift(path: Path, out: Path, options: Options) -> tuple[Drift, ...]:
    """How the output folder differs from what `build` would leave there. Writes nothing. Raises SpecError."""
    produced, inputs, _ = compile_files(path, options)
    return emit.drift(folder_of(path, out), produced, options.table(), inputs)


def _unwritable(folder: Path, error: OSError) -> SpecError:
    reason = error.strerror or type(error).__name__
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            help_ = "files written so far are whole; build again when there is room"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            help_ = "choose a folder that can be written: `--out`"
        case errno.EEXIST | errno.EFBIG | errno.EISDIR | errno.ELOOP | errno.ENOTDIR:
            help_ = "move it away, or choose another folder: `--out`"
        case _:
            help_ = ""
    return SpecError([Diagnostic("E502", f"cannot write `{error.filename or folder}`: {reason}", None, help_)])


def dump(path: Path, stage: str, options: Options) -> str:
    """What a stage gives, as text. Raises SpecError."""
    if stage not in STAGES:
        raise SpecError([Diagnostic("E505", f"there is no stage `{stage}`", None, nearest(stage, STAGES))])
    from specc import dump as printers
    from specc.lowered import all_kernels

    syntax = parse(path)
    if stage == "syntax":
        from specc.format import format_spec

        return format_spec(syntax)
    model = check(path, syntax)
    match stage:
        case "model":
            return printers.dump_model(model)
        case "kernels":
            return printers.dump_kernels(all_kernels(lower(model)))
        case _:
            return "".join(f"==> {n} <==\n{t}\n" for n, t in sorted(files(model, lower(model), options).items()))
