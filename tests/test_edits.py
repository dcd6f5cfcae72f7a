"""One edit of one formula moves oracle, all targets and the page together; only the hand-written twin stays behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from specc.evidence.check import Executor, Status, check_kernel
from specc.evidence.draw import draw
from specc.evidence.execute import TorchExecutor, TritonExecutor
from specc.evidence.strategy import pinned
from specc.formula_text import formula_text
from specc.kernels import Kernel
from specc.oracle import evaluate
from specc.page.tables import function_text, functions
from specc.targets.cuda.emit import emit as emit_cuda
from specc.targets.torch.target import source_of
from specc.targets.triton.emit import emit
from tests import twins
from tests.evidence.planted import NODES, library, swap

Array = npt.NDArray[np.float64]

EDITS: dict[str, tuple[str, str, str]] = {
    "geluTanh, a sign": ("geluMul", "(1 + tanh", "(1 - tanh"),
    "geluTanh, a constant": ("geluMul", "(1 + tanh(√(2/π) · (x + 0.044715", "(1 + tanh(√(2/π) · (x + 0.05"),
    "rmsnorm, a sign": ("rmsnorm", "  y[.., i] = n[i] · w[i]", "  y[.., i] = -n[i] · w[i]"),
    "rmsnorm, an index": ("rmsnorm", "  y[.., i] = n[i] · w[i]", "  y[.., i] = n[i] · w[H - 1 - i]"),
    "rmsnorm, a constant": ("rmsnorm", "/ H + eps)", "/ H + 2 · eps)"),
    "rope, a sign": ("rope", "cos(a[i]) - x[t, h, i + rot", "cos(a[i]) + x[t, h, i + rot"),
    "rope, an index": ("rope", "x[t, h, i - rot // 2] · sin", "x[t, h, i] · sin"),
    "rope, a constant": ("rope", "theta ^ -(2·i / denom)", "theta ^ -(3·i / denom)"),
    "slidingDecodeGQA, a sign": ("slidingDecodeGQA", "z[l] = scale", "z[l] = -scale"),
    "slidingDecodeGQA, an index": ("slidingDecodeGQA", "k[b, l, g, e]", "k[b, l, g, D - 1 - e]"),
    "slidingDecodeGQA, a constant": ("slidingDecodeGQA", "seq_lens[b] - 1 - window", "seq_lens[b] - 2 - window"),
}
EXECUTORS: tuple[Executor, ...] = (TritonExecutor(), TorchExecutor())


def twin_of(node: str, values: dict[str, Array]) -> Array:
    """What the hand-written twin says of the drawn operands, at the constants of `NODES`."""
    v = values
    if node == "geluMul":
        return twins.geluMul(v["gu"])
    if node == "rmsnorm":
        return twins.rmsnorm(v["x"], v["w"], 1e-6)
    if node == "rope":
        return twins.rope(v["x"], v["pos"], rot=64, denom=64, active=8, theta=1e6)
    return twins.slidingDecodeGQA(v["q"], v["k"], v["v"], v["seq_lens"], scale=1.0, window=96)


def page_text(kernel: Kernel) -> tuple[str, ...]:
    """What the page says of the kernel's formula."""
    called = [line for fn in functions(iter([kernel.formula])) for line in function_text(fn)]
    return (*formula_text(kernel.formula), *called)


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_a_formula_moves_everything_but_the_twin(name: str) -> None:
    # eps shows only on small operands.
    magnitude = 1e-3 if "eps" in EDITS[name][2] else 1.0
    node, old, new = EDITS[name]
    edit: Callable[[str], str] = swap(old, new)
    before, after = NODES[node].kernel(library()), NODES[node].kernel(library(edit))
    assert page_text(before) != page_text(after)
    assert emit(before) != emit(after) and emit_cuda(before) != emit_cuda(after)
    roles = {o.name: o.role for o in before.operands}
    assert source_of(before.formula, roles)[1] != source_of(after.formula, roles)[1]
    case = replace(next(c for c in pinned(after) if c.family == "normal"), magnitude=magnitude)
    values = {n: d.exact for n, d in draw(after, case).items()}
    (result,) = (t.name for t in before.formula.outputs)
    twin = twin_of(node, values)
    scale = np.max(np.abs(twin))
    assert np.max(np.abs(evaluate(before.formula, values)[result] - twin)) <= 1e-11 * scale
    assert np.max(np.abs(evaluate(after.formula, values)[result] - twin)) > 1e-5 * scale
    for executor in EXECUTORS:
        report = check_kernel(after, executor, examples=2, number=3)
        assert report.status is Status.VERIFIED, (executor.name, report.counterexample or report.reason)
