"""What may come of a case: clean diagnostics or a valid build, and nothing else."""

from __future__ import annotations

import json
import signal
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TypeVar

from specc import pipeline
from specc.cli.diff import change_lines
from specc.codes import CODES
from specc.compare import compare
from specc.diagnostics import Diagnostic, SpecError
from specc.dump import dump_model
from specc.format import format_ops, format_spec
from specc.inputs import Options, read_source
from specc.ir import Model
from specc.library import load_library
from specc.lowered import Lowered
from specc.ops import Library
from specc.page import model_page, page_values, print_page
from specc.parse import parse_ops
from specc.parse_spec import parse_spec
from specc.source import Source
from specc.spec_key import format_key, resolve
from specc.syntax import OpsFile
from specc.typecheck.model import check_model
from specc.typecheck.ops import check_library
from tests.fuzz.cases import Case
from tests.fuzz.command import furnish, run_command
from tests.fuzz.hosts import SHIPPED, grammar_of
from tests.typecheck.mini import MINI

T = TypeVar("T")
LIMIT = 2.0
"""Seconds of processor time for a case."""


class Stage(IntEnum):
    """How far a case came."""

    READ = 0
    LEXED = 1
    PARSED = 2
    CHECKED = 3
    LOWERED = 4
    BUILT = 5


class Broken(AssertionError):
    """A case that ended as none may."""


class _TooSlow(BaseException):
    """Passes every handler of the code under test."""


def judge(case: Case, folder: Path) -> str:
    """How far `case` came (a stage, or an exit status), run in the empty `folder`.

    Raises Broken, or whatever specc lets through."""
    _warm()
    if case.arguments:
        furnish(folder)
        _warm_commands()
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    with _limited():
        if case.arguments:
            return f"exit {run_command(case.arguments, folder)}"
        return _build(case, folder).name.lower()


@cache
def _warm() -> None:
    """What a process pays for once: imports, templates, the shipped ops."""
    lowered = pipeline.lower(_mini())
    _ask(_mini(), lowered)
    _emit(_mini(), lowered)


@cache
def _warm_commands() -> None:
    for name in ("torch", "triton", "specc.targets.triton.target", "specc.targets.torch.target", "specc.oracle"):
        import_module(name)


@contextmanager
def _limited() -> Iterator[None]:
    """Raises Broken where LIMIT is passed; stops the case when twice as much is."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, 2 * LIMIT)
    started = time.process_time()
    try:
        yield
    except _TooSlow:
        raise Broken(f"not done after {2 * LIMIT} s") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    if time.process_time() - started > LIMIT:
        raise Broken(f"took {time.process_time() - started:.1f} s")


def _build(case: Case, folder: Path) -> Stage:
    reached = [Stage.READ]
    try:
        _stages(case, folder, reached)
    except SpecError as error:
        check_diagnostics(error)
        if reached[0] is Stage.READ:
            _lexed(case, folder, reached)
    return reached[0]


def _stages(case: Case, folder: Path, reached: list[Stage]) -> None:
    """Every stage of a build. `reached` follows. Raises SpecError."""
    spec = folder / "case.spec"
    libraries = [_same_again(read_source(folder / n), parse_ops, format_ops) for n in case.files if n.endswith(".ops")]
    if "case.spec" not in case.files:
        reached[0] = Stage.PARSED
        check_library(libraries)
        reached[0] = Stage.CHECKED
        return
    syntax = _same_again(read_source(spec), parse_spec, format_spec)
    reached[0] = Stage.PARSED
    model = check_model(syntax, _library(case, folder) or pipeline.libraries(spec, syntax))
    reached[0] = Stage.CHECKED
    lowered = pipeline.lower(model)
    _ask(model, lowered)
    if not any(x.refusal for x in lowered):
        reached[0] = Stage.LOWERED
    _emit(model, lowered)
    if reached[0] is Stage.LOWERED:
        reached[0] = Stage.BUILT


def _library(case: Case, folder: Path) -> Library | None:
    """The ops where a file stands for a shipped library."""
    if not set(case.files) & set(SHIPPED):
        return None
    mine = {n: parse_ops(read_source(folder / n)) for n in case.files if n.endswith(".ops")}
    return check_library([*(tree for name, tree in _shipped() if name not in mine), *mine.values()])


@cache
def _shipped() -> tuple[tuple[str, OpsFile], ...]:
    return tuple((name, parse_ops(Source(name, text))) for name, text in SHIPPED.items())


def _same_again(source: Source, parse: Callable[[Source], T], write: Callable[[T], str]) -> T:
    """The tree of a text, whose canonical form must have the same tree and be its own canonical form."""
    tree = parse(source)
    text = write(tree)
    try:
        again = parse(Source("formatted", text))
    except SpecError as error:
        raise Broken(f"the canonical form is refused:\n{error}") from error
    if again != tree:
        raise Broken(f"the canonical form means something else:\n{text}")
    if write(again) != text:
        raise Broken(f"the canonical form is not canonical:\n{text}")
    return tree


def _ask(model: Model, lowered: tuple[Lowered, ...]) -> None:
    """What `show`, `diff` and `--dump-stage` print of a model."""
    page = model_page(model, lowered)
    print_page(page, "text").encode()
    json.dumps(page_values(page))
    dump_model(model)
    if compare(model, model):
        raise Broken("a model differs from itself")
    for old, new in ((_mini(), model), (model, _mini())):
        "\n".join(change_lines(compare(old, new))).encode()
    for node in model.nodes:
        if node not in resolve(model, format_key(model, node)):
            raise Broken(f"{format_key(model, node)} is not the key of its node")


@cache
def _mini() -> Model:
    return check_model(parse_spec(Source("mini.spec", MINI)), load_library())


def _emit(model: Model, lowered: tuple[Lowered, ...]) -> None:
    """Both targets, sometimes twice. Raises SpecError."""
    files = pipeline.files(model, lowered, Options())
    for name, text in files.items():
        text.encode()
        if name.endswith(".py"):
            try:
                compile(text, name, "exec")
            except (SyntaxError, ValueError) as error:
                raise Broken(f"{name} is no Python: {error}\n{text}") from error
        elif name.endswith(".json"):
            json.loads(text)
    one_in_four = len(files["README.md"]) % 4 == 0
    if one_in_four and pipeline.files(model, lowered, Options()) != files:
        raise Broken("a second emission gives other files")


def _lexed(case: Case, folder: Path, reached: list[Stage]) -> None:
    try:
        sources = {name: read_source(folder / name) for name in case.files}
    except SpecError:
        return
    if all(grammar_of(name).lexes(source.text) for name, source in sources.items()):
        reached[0] = Stage.LEXED


def check_diagnostics(error: SpecError) -> None:
    """Raises Broken for what a diagnostic may not be."""
    if not error.diagnostics:
        raise Broken("an error without diagnostics")
    for found in error.diagnostics:
        problem = _problem(found)
        if problem:
            raise Broken(f"{problem}: {found!r}")


def _problem(found: Diagnostic) -> str:
    if found.code not in CODES:
        return "unlisted code"
    if not found.message.strip():
        return "no message"
    if found.span is not None:
        lines = found.span.source.text.split("\n")
        if not 1 <= found.span.line <= len(lines):
            return "line outside the file"
        if not 1 <= found.span.column <= len(lines[found.span.line - 1].rstrip("\r")) + 1:
            return "column outside the line"
    text = found.render()
    odd = [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t"]
    return f"{odd[0]!r} in the printed message" if odd else ""
