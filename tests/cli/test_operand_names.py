"""Operands and results that have the names of what the functions on their way take by keyword."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path

import numpy as np
import pytest

import specc
from specc.api import Node
from specc.archive import write_arrays
from specc.cli import run
from specc.diagnostics import SpecError
from specc.evidence import suite
from specc.evidence.check import Executor
from specc.evidence.execute import TritonExecutor
from specc.ir import Model
from specc.lowered import all_kernels, lower_each
from specc.targets.triton.emit import emit

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
FUNCTIONS = (Node.run, Node.oracle, np.savez, np.savez_compressed, write_arrays)
NAMES = tuple(dict.fromkeys([*(p for f in FUNCTIONS for p in inspect.signature(f).parameters), "case"]))
TERMS = " + ".join(f"{k} · {name}[t, i]" for k, name in enumerate(NAMES, 1))
OPS = f"""
op taking({", ".join(f"{name}[T, H]" for name in NAMES)}; H: nat) -> y[T, H]
  y[t, i] = {TERMS}

op giving(x[T, H]; H: nat) -> {", ".join(f"{name}[T, H]" for name in NAMES)}
{chr(10).join(f"  {name}[t, i] = {k} · x[t, i]" for k, name in enumerate(NAMES, 1))}
"""
ARRAYS = {name: np.full((2, 96), float(k)) for k, name in enumerate(NAMES)}
WANTED = sum(k * (k + 1) for k in range(len(NAMES)))


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """The small example with nodes `taking` and `giving` before its last norm."""
    (tmp_path / "own.ops").write_text((EXAMPLES / "own.ops").read_text() + OPS)
    text = (EXAMPLES / "tiny.spec").read_text()
    last = "  | final_norm | layernorm | -      | H=hidden, eps=1e-5                   | h -> hn "
    assert last in text
    parts = ", ".join(f"p{k}" for k in range(len(NAMES)))
    rows = f"  | give | giving | - | H=hidden | h -> {parts} | |\n  | take | taking | - | H=hidden | {parts} -> z | |\n"
    path = tmp_path / "tiny.spec"
    path.write_text(text.replace(last, rows + last.replace("h -> hn", "z -> hn")))
    return path


@pytest.mark.parametrize("target", ["oracle", "torch", "triton", "cuda"])
def test_they_are_evaluated(target: str, spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.npz"
    for node, arrays in (("take", ARRAYS), ("give", {"x": np.ones((2, 96))})):
        with (tmp_path / "in.npz").open("wb") as file:
            write_arrays(file, arrays)
        words = ["eval", f"{spec}:{node}", "--inputs", tmp_path / "in.npz", "--target", target, "--output", out]
        status = run([str(w) for w in words])
        assert (status, capsys.readouterr().err) == (0, "")
        with np.load(out) as found:
            results = {name: found[name] for name in found.files}
        if node == "take":
            assert np.all(results["y"] == WANTED)
        else:
            assert {name: array.max() for name, array in results.items()} == {n: k for k, n in enumerate(NAMES, 1)}


def test_they_go_into_a_mapping_in_python(spec: Path) -> None:
    node = specc.load(spec).node("take")
    assert np.all(node.oracle(ARRAYS)["y"] == WANTED)
    options = ("dtype", "phase", "tiles", "gpu")
    few = {name: ARRAYS[name] for name in options}
    named = {name: array for name, array in ARRAYS.items() if name not in options}
    assert np.all(node.run("torch", few, **named)["y"] == WANTED)
    for name in options:
        with pytest.raises(SpecError, match=f"(?s)`{name}` is a (name|path).*go into a mapping"):
            node.run("torch", named, **{name: ARRAYS[name]})  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="`target` is given twice"):
        node.run("torch", ARRAYS, target=ARRAYS["target"])
    with pytest.raises(SpecError, match="a value of type `ndarray` has none"):
        node.run("torch", ARRAYS["target"])  # type: ignore[arg-type]


def test_their_counterexamples_are_replayed(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def planted(model: Model, *options: object) -> tuple[Executor, ...]:
        (kernel,) = (k for k in all_kernels(lower_each(model)) if k.name == "take")
        text = emit(kernel)
        assert "2.0 * " in text
        return (TritonExecutor({kernel.name: text.replace("2.0 * ", "2.5 * ")}),)

    monkeypatch.setattr(suite, "executors", planted)
    words = ["check", str(spec), "--node", "take", "--target", "triton", "--examples", "0", "--out", str(tmp_path)]
    assert run(words) == 1
    (replay,) = (s for s in capsys.readouterr().out.splitlines() if "replay: specc " in s)
    with np.load(tmp_path / "take.triton.npz") as found:
        assert set(found.files) == {*NAMES} and found["case"].dtype.kind == "U"
    assert run(shlex.split(replay.partition("specc ")[2])) == 0
