"""Integers that 32 bits do not hold, in kernels of a user's formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from specc.evidence.case import Case
from specc.evidence.check import Executor
from specc.evidence.execute import CudaExecutor, TritonExecutor
from specc.evidence.judge import VACUOUS, judge
from specc.kernels import Kernel
from specc.targets.cuda.target import run as run_cuda
from specc.targets.index_width import FARTHEST, cut_positions
from specc.targets.triton.target import run as run_triton
from tests.targets.triton.generated import custom

RUNS: Mapping[str, tuple[Executor, Callable[..., Any]]] = {
    "cuda": (CudaExecutor(), run_cuda),
    "triton": (TritonExecutor(), run_triton),
}
FAR = 1_000_003
ROWS = 2500
"""Times FAR more than 2**31."""
N = 1009

INDICES = {
    "a row's number times a constant": f"t · {FAR} + i",
    "a difference of what is large": f"i - t · {FAR}",
    "a negated product": f"-(t · {FAR})",
    "a square": "(t · 30)² + i",
    "a size": f"T · {FAR} + i",
    "an index out of data": f"e[t] · {FAR} + i",
    "an index out of data beside a row's number": f"t · {FAR} + e[t]",
    "the larger of two": f"max(t · {FAR}, i)",
    "a magnitude": f"abs(i - t · {FAR})",
    "a quotient": f"t · {FAR} // 7 + i",
    "a choice": f"if i < 2 then t · {FAR} else i",
    "a number past 32 bits": "t + 5000000000",
}
TERMS = {
    "a comparison": f"if t · {FAR} > 2400000000 then x[t, i] else 0",
    "a comparison with a number past 32 bits": "if t < 5000000000 and e[t] < 5000000000 then x[t, i] else 0",
    "an integer as a factor": f"x[t, i] · (t · {FAR} - 2147000000)",
}
ELEMENTS = [*(f"x[t, i] · w[({e}) % N]" for e in INDICES.values()), *TERMS.values()]
"""Each a result of one op, so that it is compiled once."""
HEAD = "op f(x[T, 4], e[T]: index, w[N]; N: nat) -> "
OPS = {
    "elements": HEAD
    + ", ".join(f"y{n}[T, 4]" for n in range(len(ELEMENTS)))
    + "\n"
    + "".join(f"  y{n}[t, i] = {e}\n" for n, e in enumerate(ELEMENTS)),
    "a row of a reduction": f"{HEAD}y[T, 4]\n  y[t, i] = x[t, i] / (1 + Σ_j abs(x[t, j] · w[(t · {FAR} + j) % N]))\n",
    "a row of a product": f"{HEAD}y[T, 4]\n  y[t, i] = Σ_k x[t, k] · w[(i · {2**30} + k · {FAR}) % N]\n",
}


def agree(kernel: Kernel, target: str, inputs: Mapping[str, torch.Tensor], **sizes: int) -> None:
    """The results lie within the bound that is derived for the target, and that bound says something."""
    executor, run = RUNS[target]
    needed = {o.name for o in kernel.operands if not o.output}
    found = {n: t.double().numpy() for n, t in run(kernel, {n: t for n, t in inputs.items() if n in needed})[0].items()}
    arrays = {t.name: inputs[t.name].numpy() for t in kernel.formula.inputs}
    numerics = executor.numerics(kernel, Case("float32", tuple(sizes.items())))
    verdict = judge(kernel, arrays, found, dict.fromkeys(found), numerics, sizes, "float32")
    assert not verdict.count, "; ".join(m.describe() for m in verdict.mismatches)
    assert verdict.vacuity is not None and verdict.vacuity < VACUOUS


@pytest.mark.parametrize("target", RUNS)
@pytest.mark.parametrize("name", OPS)
def test_integers_past_32_bits_are_what_the_formula_says(name: str, target: str) -> None:
    random = torch.Generator().manual_seed(1)
    inputs = {"x": torch.randn(ROWS, 4, generator=random), "w": torch.randn(N, generator=random)}
    for integer in (torch.int32, torch.int64):
        agree(custom(OPS[name], N=N), target, {**inputs, "e": (torch.arange(ROWS) * 7 + 2000).to(integer)}, T=ROWS)


HEADS = {"H": 2, "D": 16}
PREFILL = "op f(q[T, H, D], k[L, H, D], v[L, H, D], p[T]: index; H: nat, D: nat) -> o[T, H, D]\n"
DECODE = "op f(q[T, H, D], k[T, L, H, D], v[T, L, H, D], p[T]: index; H: nat, D: nat) -> o[T, H, D]\n"
BODY = """  let z[l] = {score} + Σ_e q[t, h, e] · k[{row}l, h, e]
  o[t, h, d] = Σ_l softmax_l(z[l] | {seen}) · v[{row}l, h, d]
"""
SEEN = {
    "l ≤ 3·p[t] + 7": (0, 7, 2**29 + 5, 800_000_000, 2**31 - 1),
    "l ≥ 3·p[t] - 7": (0, -7, 4, -(2**29) - 5, -800_000_000, -(2**31)),
    "l ≤ p[t] and l > p[t] - 9": (0, 5, 2**30, 2**31 - 1, -(2**31), 12),
    "l % 2 == p[t] % 2": (0, 1, 2**31 - 1, 2**31 - 2, -(2**31)),
    "l ≤ p[t] - 2147483000": (2147483000, 2147483005, 2**31 - 1, 0),
    "l ≤ p[t] + 2147483000": (-2147483000, -2147482995, 2**31 - 1, 0),
    "l + t ≤ p[t] // 100": (0, 800, 2**31 - 1, -800),
    "l < 20 and p[t] · 3000000 > 5": (2**31 - 1, 2, 0, -(2**31)),
}


def attend(body: str, score: str, seen: str, target: str, places: tuple[int, ...], integer: torch.dtype) -> None:
    """Attention of rows at `places` to 20 keys."""
    row = "t, " if body is DECODE else ""
    kernel = custom(body + BODY.format(score=score, seen=seen, row=row), **HEADS)
    random = torch.Generator().manual_seed(2)
    lead = (len(places), 20) if body is DECODE else (20,)
    inputs = {"q": torch.randn(len(places), 2, 16, generator=random), "p": torch.tensor(places, dtype=integer)}
    inputs |= {n: torch.randn(*lead, 2, 16, generator=random) for n in ("k", "v")}
    agree(kernel, target, inputs, T=len(places), L=20)


BODIES = dict.fromkeys(SEEN, PREFILL) | {"l % 2 == p[t] % 2": DECODE, "l ≤ p[t] - 2147483000": DECODE}


@pytest.mark.parametrize("target", RUNS)
@pytest.mark.parametrize(("seen", "body"), [*BODIES.items(), (next(iter(SEEN)), DECODE)])
def test_a_row_sees_the_keys_that_the_formula_says_at_any_position(seen: str, body: str, target: str) -> None:
    attend(body, "0", seen, target, SEEN[seen], torch.int32)
    beyond = tuple(2 * p + 2 * (p > 0) for p in SEEN[seen])
    attend(body, "0", seen, target, beyond, torch.int64)


@pytest.mark.parametrize("target", RUNS)
def test_a_position_in_a_score_is_not_cut(target: str) -> None:
    places = (2**31 - 1, 2**31 - 2**20, 0, -(2**31))
    attend(PREFILL, "(p[t] - 2147480000 - l) / 1000000", "l ≤ p[t]", target, places, torch.int32)


@pytest.mark.parametrize(("seen", "cut"), [
    ("l ≤ p[t] and l > p[t] - 1024", True), ("p[t] ≥ l", True), ("l < p[t] - 7 + t", True), ("l ≤ 3·p[t]", False),
    ("l % 2 == p[t] % 2", False), ("l ≤ p[t] - 1610612736", False), ("l ≤ p[t] // 2", False),
    ("l < p[t] · p[t]", False),
])  # fmt: skip
def test_a_position_is_cut_where_that_changes_no_comparison(seen: str, cut: bool) -> None:
    kernel = custom(PREFILL + BODY.format(score="0", seen=seen, row=""), **HEADS)
    assert cut_positions(kernel) == ({"p"} if cut else set()) and FARTHEST < 2**31
