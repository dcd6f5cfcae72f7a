"""What the printed text says: it follows the formula, it is the text that runs, and it is well formed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from specc.library import load_library
from specc.ops import Library
from specc.parse import parse_ops
from specc.source import Source
from specc.targets.torch import target
from specc.typecheck.ops import check_library
from tests.oracle.formulas import beside_shipped, close, shipped_texts
from tests.targets.torch.agreement import agree
from tests.targets.torch.cases import CONSTANTS, formula_of, operands
from tests.targets.torch.formulas import FORMULAS
from tests.targets.torch.test_model import small_model, write

LINES = 400


def library_with(old: str, new: str) -> Library:
    """The shipped library after one edit of its text."""
    texts = shipped_texts()
    assert sum(text.count(old) for _, text in texts) == 1
    return check_library([parse_ops(Source(name, text.replace(old, new))) for name, text in texts])


NORM = "op rmsnormUnit(x[.., H]; H: nat, eps: real) -> y[.., H]\n  y[.., i] = "
DECODE = (
    "  prefill slidingGQA\n  require heads % kv_heads == 0\n"
    "  let g = h // (heads // kv_heads)\n  let z[l] = scale · Σ_e q[b, h, e] · k[b, l, g, e]\n"
)
FLIPS = {
    "geluTanh sign": ("geluMul", "computed as x · sigmoid(2 ·", "computed as x · sigmoid(-2 ·"),
    "geluTanh constant": ("geluMul", "sigmoid(2 · √(2/π) · (x + 0.044715", "sigmoid(2 · √(2/π) · (x + 0.044716"),
    "rmsnorm sign": ("rmsnormUnit", NORM, NORM + "-"),
    "rmsnorm constant": ("rmsnormUnit", NORM, NORM + "3 · "),
    "rmsnorm index": ("rmsnormUnit", NORM + "x[.., i]", NORM + "x[.., H - 1 - i]"),
    "rope sign": ("rope", "cos(a[i]) - x[t, h, i + rot // 2]", "cos(a[i]) + x[t, h, i + rot // 2]"),
    "rope index": ("rope", "x[t, h, i - rot // 2] · sin", "x[t, h, i] · sin"),
    "rope constant": ("rope", "pos[t] · invFreq", "(pos[t] + 1) · invFreq"),
    "window": ("slidingDecodeGQA", "seq_lens[b] - 1 - window < l", "seq_lens[b] - 1 - window <= l"),
    "scale": ("slidingDecodeGQA", DECODE, DECODE.replace("= scale", "= -scale")),
    "head": ("slidingDecodeGQA", DECODE, DECODE.replace("h // (heads // kv_heads)", "h % kv_heads")),
}


@pytest.mark.parametrize("name", FLIPS)
def test_an_edit_of_the_formula_changes_text_and_value_and_nothing_else_is_edited(name: str) -> None:
    op, old, new = FLIPS[name]
    library = library_with(old, new)
    before, after = formula_of(op), formula_of(op, library)
    tensors = operands(before, indices={"seq_lens": [2, 5, 9]})
    assert target.source_of(before, {})[1] != target.source_of(after, {})[1]
    if "geluTanh" not in name:
        agree(after, tensors)
    pair = [target.run_node(f, {}, tensors, "float64") for f in (before, after)]
    assert all(not torch.equal(pair[0][n], pair[1][n]) for n in pair[0])


def test_the_definition_is_printed_where_there_is_no_computed_form() -> None:
    library = library_with("def silu(x) = x · sigmoid(x)", "def silu(x) = x · sigmoid(x) + 1")
    formula = formula_of("siluMul", library)
    agree(formula, operands(formula))
    assert "return x * sigmoid(x) + 1" in target.source_of(formula, {})[1]


def test_one_function_has_the_formula_and_reads_like_it() -> None:
    text = target.source_of(formula_of("rmsnorm"), {})[1]
    assert "y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² / 7 + 1e-06) · w[i]" in text
    assert "n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 7 + 1e-06)" in text
    assert "y = n * w" in text
    assert 'torch.einsum("thk,nk->thn", x, w)' in target.source_of(formula_of("linear"), {})[1]
    assert "k = k.repeat_interleave(3, dim=1)" in target.source_of(formula_of("causalGQA"), {})[1]
    assert "x[..., :4] * cos - x[..., 4:8] * sin" in target.source_of(formula_of("rope"), {})[1]
    assert "w[tokens]" in target.source_of(formula_of("embed"), {})[1]


def test_what_run_node_runs_stands_in_the_generated_files() -> None:
    model = small_model()
    text = "".join(t for name, t in target.emit(model).items() if name.startswith("nodes/"))
    for node in model.nodes:
        for _, bounds in node.bound:
            for bound in bounds:
                printed, _ = target.source_of(bound.formula, dict(bound.roles), model.profile.rounds)
                own = [f"    {line}\n" for line in printed.body if "_inv_freq(" not in line]
                for line in own:
                    assert line in text


def test_printing_needs_no_torch_and_gives_the_same_twice() -> None:
    script = (
        "import sys; from tests.targets.torch.test_model import small_model; from specc.targets.torch import target\n"
        "for m in [m for m in sys.modules if m.split('.')[0] == 'torch']: del sys.modules[m]\n"
        "target.emit(small_model()); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[3])
    assert target.emit(small_model()) == target.emit(small_model())


def test_generated_files_are_short_and_formatted(tmp_path: Path) -> None:
    files = target.emit(small_model())
    assert all(text.count("\n") <= LINES for text in files.values())
    for n, text in enumerate(FORMULAS.values()):
        formula = close("f", lead=2 if ".." in text else 0, library=beside_shipped(text))
        files[f"formula{n}.py"] = target.source_of(formula, {})[1]
    for op in CONSTANTS:
        files[f"{op}.py"] = target.source_of(formula_of(op), {})[1]
    write(files, tmp_path)
    ruff = [sys.executable, "-m", "ruff"]
    style = ["--isolated", "--line-length", "110", "--no-cache", "."]
    found = subprocess.run([*ruff, "format", "--diff", *style], cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
    found = subprocess.run(
        [*ruff, "check", "--ignore", "F821,N999", *style], cwd=tmp_path, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout


def test_every_op_has_a_function_named_after_it() -> None:
    for op in load_library().ops:
        printed, text = target.source_of(formula_of(op.name), {})
        assert f"def {printed.name}(" in text and printed.name.replace("_", "") == op.name.lower()
