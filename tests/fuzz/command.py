"""Command lines drawn from the commands and options that specc has."""

from __future__ import annotations

import contextlib
import inspect
import io
from enum import Enum
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, get_args, get_origin, get_type_hints

from specc.cli.main import app, run
from tests.fuzz.mutate import mutate_bytes

LEFT_OUT = {"check", "verify"}
"""Commands that run kernels for minutes."""

FOREVER = {"watch"}
"""Options under which a command does not end."""

PATHS = (
    "case.spec", "case.spec", "case.spec", "own.ops", "bad.spec", "binary.spec", "empty.spec", "notes.txt", "in.npz",
    "dir", "dir.spec", "missing.spec", "missing/case.spec", "dir/out", "out.npz", "", ".", "-", "/dev/full",
    "a b.spec", "out", "{{ 7*7 }}.spec", "x" * 300, "x" * 300 + ".spec", "\udcff.spec", "\u202e.spec", "case.spec/x",
    "tiles.toml", "~",
)  # fmt: skip
TEXTS = (
    "case.spec", "case.spec:embed", "case.spec:layers[0].norm1", "case.spec:layers[*].add1",
    "case.spec:layers[3].add1", "case.spec:layers[all].attn.core", "example/tiny", "example/tiny@1.0",
    "example/tiny@1.0:lm_head", "example/tiny@2:x", "google/gemma-4-31B@1.0:layers[5].attn.rope",
    "case.spec:layers[" + "9" * 5000 + "].add1", "case.spec:", ":", "@", "", "torch", "triton", "oracle", "prefill",
    "decode", "float32", "bfloat16", "float64", "syntax", "model", "kernels", "files", "sm_9", "sm_75", "é", "\udcff",
    "\u202e", "\x1b[31m",
)  # fmt: skip

GOOD = ("case.spec", "case.spec", "case.spec:embed", "case.spec:layers[0].norm1", "example/tiny", "torch", "model")

TINY = Path(__file__).parents[2] / "docs" / "examples"


@cache
def commands() -> dict[str, tuple[tuple[str, Any, bool], ...]]:
    """The parameters of each command: option (or "" for an argument), type, and whether it repeats."""
    found = {}
    for info in app.registered_commands:
        if info.name in LEFT_OUT or info.callback is None or info.name is None:
            continue
        hints = get_type_hints(info.callback, include_extras=True)
        named = [(name, *get_args(hints[name])) for name in inspect.signature(info.callback).parameters]
        found[info.name] = tuple(_parameter(name, kind, info) for name, kind, info in named if name not in FOREVER)
    return found


def _parameter(name: str, kind: Any, info: Any) -> tuple[str, Any, bool]:
    many = get_origin(kind) is list
    kind = next((a for a in get_args(kind) if a is not type(None)), kind)
    option = "" if type(info).__name__ == "ArgumentInfo" else next(iter(info.param_decls or ()), f"--{name}")
    return option.replace("_", "-"), kind, many


def draw_arguments(rng: Random) -> tuple[str, ...]:
    """A command line that is right in most of its words."""
    name = rng.choice(list(commands()))
    words: list[str] = []
    for option, kind, many in commands()[name]:
        wanted = 0.95 if not option or option == "--inputs" else 0.25
        for _ in range(rng.choice((1, 1, 2)) if many else 1):
            if rng.random() < wanted:
                words += ([option] if option else []) + ([] if kind is bool else [_value(kind, rng)])
    if rng.random() < 0.1:
        words.insert(
            rng.randrange(len(words) + 1), rng.choice(("--help", "--nonsense", "--", "-x", "--json=1", "--out="))
        )
    return (name, *words) if rng.random() < 0.97 else (rng.choice(("", "bild", "--version", "--", *words[:1])), *words)


def _value(kind: Any, rng: Random) -> str:
    if isinstance(kind, type) and issubclass(kind, Enum) and rng.random() < 0.8:
        return str(rng.choice(list(kind)).value)
    if kind is int:
        return rng.choice(("0", "1", "-1", "99999999999999999999", "1e3", "x", "٣"))
    if rng.random() < 0.5:
        return "case.spec" if kind is Path else rng.choice(GOOD)
    word = rng.choice(PATHS if kind is Path or rng.random() < 0.2 else TEXTS)
    if rng.random() < 0.1:
        data = mutate_bytes(word.encode("utf-8", "surrogateescape"), b"layers[0].x", rng)
        word = data.replace(b"\0", b"").decode("utf-8", "surrogateescape")
    return word


def furnish(folder: Path) -> None:
    """What the paths in PATHS name."""
    import numpy as np

    for name in ("tiny.spec", "own.ops"):
        (folder / name.replace("tiny", "case")).write_bytes((TINY / name).read_bytes())
    texts = {
        "bad.spec": "modle x",
        "empty.spec": "",
        "notes.txt": "x",
        "tiles.toml": "pointwise = 3",
        "a b.spec": "{{ }}",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "binary.spec").write_bytes(b"model \xff\xfe\0")
    (folder / "dir").mkdir()
    (folder / "dir.spec").mkdir()
    ones = np.ones(96)
    np.savez(folder / "in.npz", tokens=np.array([3]), x=np.ones((2, 96)), w=ones, h=np.ones((2, 96)))


def run_command(arguments: tuple[str, ...], folder: Path) -> int:
    """The exit status of a command in `folder`. Raises AssertionError for an answer that is none."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for _ in range(2))
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(arguments)
        out.flush()
        err.flush()
    said, errors = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    assert status in (0, 1, 2), f"exit status {status}"
    assert "Traceback" not in said + errors, errors
    assert status == 0 or said or errors, "failed without a word"
    return status
