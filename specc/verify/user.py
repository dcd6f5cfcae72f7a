"""A user's own model file as an implementation: run in a process of its own, within bounds.

    def build(config: dict, tensors: Mapping[str, Tensor]) -> Callable

`config` is the published configuration at reduced sizes, `tensors` are float64 under the checkpoint's names. What is
returned takes token ids, int64 [T], and gives logits, float64 [T, vocab], or `(logits, hidden)`: the residual stream
[T, hidden] before layer 0 and after each layer. Where it has `step(tokens, cache) -> (logits, cache)`, with None for an
empty cache, decode is judged too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from specc import pipeline
from specc.archive import write_arrays
from specc.diagnostics import Diagnostic, SpecError, nearest
from specc.ir import Model
from specc.ops import Num
from specc.oracle.arrays import Array
from specc.source import Source, Span
from specc.verify.draw import vocabulary
from specc.verify.implementation import Trace
from specc.verify.judge import Text

MAX_PRINTED = 1 << 20
"""Bytes that a model file may print."""
KEEPER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("keeper.py")))
CONTRACT = "it defines build(config, tensors), which gives a function from token ids to logits"


@dataclass(frozen=True)
class Bounds:
    """Wall time for everything in seconds, and memory beyond that of torch itself in bytes."""

    seconds: int = 300
    memory: int = 4 << 30


@dataclass(frozen=True)
class Answer:
    """What a model gave for one text: an Implementation that knows this text only."""

    trace: Trace
    decoded: Array | None

    def prefill(self, tokens: Array) -> Trace:
        """What was given; `tokens` are those of the text."""
        return self.trace

    def decode(self, tokens: Array, start: int) -> Array | None:
        """What was given; None for a model without `step`."""
        return self.decoded


@dataclass(frozen=True)
class Run:
    """The answers by draw and text, and the places that asked for float32; None where they were not lifted."""

    answers: tuple[tuple[Answer, ...], ...]
    lifted: dict[str, int] | None
    printed: str


def run_file(
    path: Path,
    model: Model,
    weights: Sequence[Mapping[str, Array]],
    texts: Sequence[Sequence[Text]],
    bounds: Bounds = Bounds(),
    lift: bool = True,
) -> Run:
    """Runs the model file on each draw of `weights` and its texts. Raises SpecError: E501 for no file, E530 to E532 for
    one that gives no answer."""
    source = _source(path)
    with tempfile.TemporaryDirectory(prefix="specc-") as name:
        folder = Path(name)
        _request(folder, model, weights, texts, bounds, lift)
        printed = _execute(folder, path, bounds)
        found = _answer(folder)
        if "refusal" in found:
            raise SpecError([_diagnostic(source, found["refusal"], list(weights[0]))])
        answers = [[_read(folder, d, n, model) for n in range(len(row))] for d, row in enumerate(texts)]
        return Run(tuple(map(tuple, answers)), found["lifted"], printed)


def _source(path: Path) -> Source:
    try:
        return (
            Source("", "") if path.stat().st_size > 1 << 24 else Source(str(path), path.read_text("utf-8", "replace"))
        )
    except OSError as error:
        raise SpecError([Diagnostic("E501", f"cannot read `{path}`: {error.strerror}")]) from error


def _request(
    folder: Path,
    model: Model,
    weights: Sequence[Mapping[str, Array]],
    texts: Sequence[Sequence[Text]],
    bounds: Bounds,
    lift: bool,
) -> None:
    for draw, (tensors, row) in enumerate(zip(weights, texts, strict=True)):
        with (folder / f"tensors{draw}.npz").open("wb") as file:
            write_arrays(file, tensors)
        np.savez(folder / f"tokens{draw}.npz", **{f"text{n}": t.tokens for n, t in enumerate(row)})  # type: ignore[arg-type]
    request = {
        "config": json.loads(pipeline.config_text(model)),
        "starts": [[t.start for t in row] for row in texts],
        "sizes": {"vocabulary": vocabulary(model), "layers": model.layer_count, "width": _width(model)},
        "memory": bounds.memory,
        "seconds": bounds.seconds,
        "lift": lift,
    }
    (folder / "request.json").write_text(json.dumps(request))


def _width(model: Model) -> int:
    width = model.stream.dims[-1]
    assert isinstance(width, Num)
    return int(width.value)


def _execute(folder: Path, path: Path, bounds: Bounds) -> str:
    """What the process printed. Raises SpecError (E532) where it goes past a bound or does not end by itself."""
    one_thread = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    process = subprocess.Popen(
        [*KEEPER, sys.executable, "-m", "specc.verify.runner", str(folder), str(path.resolve())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **one_thread},
        start_new_session=True,
    )
    assert process.stdout is not None
    reader = _Reader(process.stdout, process)
    reader.start()
    try:
        process.wait(bounds.seconds)
    except subprocess.TimeoutExpired:
        help_ = "the option --timeout gives it more"
        raise SpecError([Diagnostic("E532", f"it has not ended after {bounds.seconds} s", None, help_)]) from None
    finally:
        _end(process)
        reader.join(5)
    if reader.count > MAX_PRINTED:
        raise SpecError([Diagnostic("E532", f"it prints more than {MAX_PRINTED:,} bytes", None, "print less")])
    if not (folder / "answer.json").exists():
        raise SpecError([_gone(process.returncode, reader.text)])
    return reader.text


class _Reader(threading.Thread):
    """Takes what a process prints, and ends it when that is too much."""

    def __init__(self, stream: IO[bytes], process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self.stream, self.process, self.count, self.kept = stream, process, 0, b""

    @property
    def text(self) -> str:
        return self.kept.decode("utf-8", "replace")

    def run(self) -> None:
        while part := self.stream.read1(1 << 16):  # type: ignore[attr-defined]
            self.count += len(part)
            self.kept = (self.kept + part)[-(1 << 14) :]
            if self.count > MAX_PRINTED:
                self.process.terminate()
                return


def _end(process: subprocess.Popen[bytes]) -> None:
    """Tells the keeper to end all; one that was stopped, by what it keeps, is killed."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _gone(status: int, printed: str) -> Diagnostic:
    lines = printed.strip().splitlines()
    help_ = f"the last it printed: {lines[-1]}" if lines else "a model file is left to end by itself"
    if status < 0:
        return Diagnostic("E532", f"its process was ended by {signal.Signals(-status).name}", None, help_)
    return Diagnostic("E532", f"it ends the process itself, with status {status}", None, help_)


def _answer(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "answer.json").read_text())
    return found


def _diagnostic(source: Source, refusal: Mapping[str, Any], names: Sequence[str]) -> Diagnostic:
    text, line = source.line(refusal["line"]), refusal["line"]
    start = len(text) - len(text.lstrip())
    span = Span(source, line, start + 1, max(1, len(text.strip()))) if line else None
    help_ = nearest(refusal["key"], names) if refusal["key"] else CONTRACT if refusal["code"] == "E530" else ""
    message = refusal["message"] if span else f"`{source.name}`: {refusal['message']}"
    return Diagnostic(refusal["code"], message, span, help_)


def _read(folder: Path, draw: int, number: int, model: Model) -> Answer:
    """Raises SpecError (E532) for what is no file of arrays: the user's code can write there too."""
    try:
        with np.load(folder / f"answer{draw}.{number}.npz", allow_pickle=False) as found:
            arrays = {name: np.asarray(found[name], np.float64) for name in found.files}
        hidden = tuple(arrays[f"hidden{i}"] for i in range(model.layer_count + 1)) if "hidden0" in arrays else None
        return Answer(Trace(arrays["logits"], hidden), arrays.get("decoded"))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise SpecError([Diagnostic("E532", "its answers cannot be read: something else wrote them")]) from error
