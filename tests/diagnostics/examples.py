"""Malformed inputs and what is printed for each, read from the text files beside this one.

An example begins with `== title`. Then come, in this order,

    - a text of the small spec        edits: what stands there, and what stands there instead
    + the text in its place           (one block for each edit, parted by an empty line)
    --- name                          a file of this name, to the next of these marks; `\\xe9` is a byte
    +++ name                          the repaired file
    without library                   a library that is not installed
    $ specc build mini.spec           a command; none means: load the spec, or the op library
    $ + specc build mini.spec         the command that works
    >>> specc.load("mini.spec")       the same for a line of Python, with `>>> +`
    > mini.spec:1:1: error[E106]: …   what is printed

`python -m tests.diagnostics.examples` writes what is printed anew, to be read before it is kept.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import specc
from specc import pipeline
from specc.cli import run
from specc.diagnostics import SpecError, render_all
from specc.inputs import read_source
from specc.parse import parse_ops
from specc.typecheck.ops import check_library
from tests.typecheck.mini import MINI

FOLDER = Path(__file__).parent
FILES = ("syntax", "sizes", "nodes", "wires", "weights", "ops", "commands")
MARK = re.compile(r"(== |--- |\+\+\+ |without |\$ |>>> |> |>$)")


@dataclass
class Example:
    """One malformed input. `edits` change the small spec; `files` and `repaired` are texts by name."""

    title: str
    edits: list[tuple[str, str]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    repaired: dict[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    bad: str = ""
    good: str = ""
    printed: str = ""

    @property
    def codes(self) -> list[str]:
        return re.findall(r"(?:error|warning)\[(\w\d+)\]", self.printed)

    def bad_files(self) -> dict[str, str]:
        return {**({} if self.is_library else {"mini.spec": self.edited()}), **self.files}

    def good_files(self) -> dict[str, str]:
        return {**({} if self.is_library else {"mini.spec": MINI}), **self.files, **self.repaired}

    @property
    def is_library(self) -> bool:
        """Whether the example is an op library and no more."""
        return not self.edits and not self.bad and list(self.files) == ["my.ops"]

    def edited(self) -> str:
        """The small spec with the edits. Raises ValueError for an edit of what is not there."""
        text = MINI
        for old, new in self.edits:
            if old not in text:
                raise ValueError(f"{self.title}: {old!r} is not in the spec")
            text = text.replace(old, new, 1)
        return text


def examples(name: str) -> list[Example]:
    """The examples of one file."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    return [_example(part.split("\n")) for part in text.removesuffix("\n").split("\n\n== ")[1:]]


def all_examples() -> list[Example]:
    return [e for name in FILES for e in examples(name)]


def _example(lines: list[str]) -> Example:
    found = Example(lines[0])
    body, start = lines[1:], next((n for n, s in enumerate(lines[1:]) if MARK.match(s)), len(lines) - 1)
    found.edits = [_edit(block) for block in "\n".join(body[:start]).split("\n\n") if block]
    printed: list[str] = []
    place: tuple[dict[str, str], str] | None = None
    for line in body[start:]:
        mark = MARK.match(line)
        match mark and mark[1].strip():
            case "---" | "+++" as kind:
                place = (found.files if kind == "---" else found.repaired), line[4:]
                place[0][place[1]] = ""
                continue
            case "without":
                found.without = (*found.without, line.split()[1])
            case "$" | ">>>" as kind:
                words = line.removeprefix(kind).strip()
                if words.startswith("+ "):
                    found.good = f"{kind} {words[2:]}"
                else:
                    found.bad = f"{kind} {words}"
            case ">":
                printed.append(line[2:])
            case _:
                assert place is not None, line
                place[0][place[1]] += line + "\n"
                continue
        place = None
    found.printed = "\n".join(printed)
    return found


def _edit(block: str) -> tuple[str, str]:
    lines = block.split("\n")
    old, new = ([s[2:] for s in lines if s[:1] == sign] for sign in "-+")
    return "\n".join(old), "\n".join(new)


def printed_by(example: Example, good: bool = False) -> str:
    """What is printed for the example, or for its repaired form."""
    command = (example.good or example.bad) if good else example.bad
    with _folder(example.good_files() if good else example.bad_files()), contextlib.ExitStack() as stack:
        if not good:
            for library in example.without:
                stack.enter_context(mock.patch.dict(sys.modules, {library: None}))
        return _said(command, example.is_library)


@contextlib.contextmanager
def _folder(files: dict[str, str]) -> Iterator[None]:
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for file, text in files.items():
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_bytes(re.sub(rb"\\x(..)", lambda m: bytes.fromhex(m[1].decode()), text.encode()))
        yield


def _said(command: str, is_library: bool) -> str:
    if command.startswith("$"):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            run(shlex.split(command)[2:])
        return said.getvalue().rstrip("\n")
    try:
        if command:
            import numpy as np

            exec(command[4:], {"specc": specc, "np": np})
            return ""
        if is_library:
            return render_all(check_library([parse_ops(read_source(Path("my.ops")))]).warnings)
        return render_all(pipeline.load(Path("mini.spec")).library.warnings)
    except SpecError as error:
        return re.sub(r"transformers [\d.]+", "transformers X.Y", str(error))


def rewrite(name: str) -> None:
    """Writes what is printed into a file of examples."""
    path = FOLDER / f"{name}.txt"
    head, *parts = path.read_text(encoding="utf-8").removesuffix("\n").split("\n\n== ")
    for n, part in enumerate(parts):
        kept = [line for line in part.split("\n") if not re.match(r"> |>$", line)]
        printed = [f"> {line}".rstrip() for line in printed_by(_example(kept)).split("\n")]
        parts[n] = "\n".join([*kept, *printed])
    path.write_text("\n\n== ".join([head, *parts]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for file in sys.argv[1:] or FILES:
        rewrite(file)
