"""The property suite on CUDA kernels of small constants, a schedule or trap each; meaning apart from rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from specc.bounds.numerics import cuda
from specc.evidence.check import Status, check_kernel
from specc.evidence.draw import draw
from specc.evidence.execute import CudaExecutor
from specc.evidence.judge import judge
from specc.evidence.store import exact_values, stored
from specc.evidence.strategy import pinned
from specc.ir import Role
from specc.kernels import Kernel
from specc.oracle import evaluate
from specc.targets.cuda.emit import emit
from specc.targets.cuda.target import run
from specc.targets.cuda.tiles import CPU, GPU, shipped_tiles
from tests.evidence.planted import HEADS, Node, library, nat
from tests.evidence.planted import NODES as SHIPPED
from tests.evidence.test_meaning import REAL
from tests.lower.cases import kernel_of
from tests.lower.test_recurrence import OUT
from tests.targets.cuda.generated import custom

NODES = {
    "lmHead": SHIPPED["lmHead"],
    "linear, no side a multiple of a vector": Node("linear", {"K": nat(77), "N": nat(37)}),
    "gateUp, weights in two operands": Node("gateUp", {"K": nat(200), "I": nat(65)}),
    "slidingGQA": SHIPPED["slidingGQA"],
    "slidingDecodeGQA": SHIPPED["slidingDecodeGQA"],
    "decodeGQA, groups of 17": Node("decodeGQA", {**HEADS, "heads": nat(34), "D": nat(40)}, ()),
    "decodeGQA, 130 heads of one KV head": Node(
        "decodeGQA", {**HEADS, "heads": nat(130), "kv_heads": nat(1), "D": nat(16)}, ()
    ),
    "causalGQA, heads of 80": Node("causalGQA", {**HEADS, "D": nat(80)}, ()),
    "causalGQA, heads of two warps": Node("causalGQA", {**HEADS, "D": nat(288)}, ()),
}

SIZES = {"H": 2, "K": 20, "V": 24}
BEFORE, ADDED = "R[t - 1, h, a, i]", "v[t, h, a] · k[t, h, i]"
STEPS = {
    "the delta rule": (
        "q[T, H, K], k[T, H, K], v[T, H, V], b[T, H]",
        f"{BEFORE} + b[t, h] · (v[t, h, a] - (Σ_j R[t - 1, h, a, j] · k[t, h, j])) · k[t, h, i]",
    ),
    "recurrence that looks for another vector": (
        "q[T, H, K], k[T, H, K], p[T, H, K], v[T, H, V], c[T, H]",
        f"c[t, h] · ({BEFORE} + (Σ_j R[t - 1, h, a, j] · p[t, h, j]) · k[t, h, i] / 2) - {ADDED}",
    ),
    "recurrence that takes nothing away": (
        "q[T, H, K], k[T, H, K], v[T, H, V], c[T, H]",
        f"exp(-c[t, h]) · {BEFORE} + {ADDED}",
    ),
}


def recurrence(name: str) -> Kernel:
    operands, step = STEPS[name]
    states = f"  rec R[t < T, h < H, a < V, i < K] from 0 = {step}\n"
    return kernel_of(f"op f({operands}) -> o[T, H, V]\n{states}{OUT}", **SIZES)


PRODUCT = """op f(x[T, H, K], w[K, N], r[T, H, N], c[N]; H: nat, K: nat, N: nat) -> y[T, H, N]
  y[t, h, n] = max(r[t, h, n] + c[n] · (Σ_k tanh(x[t, h, k]) · w[k, N - 1 - n]), 0)
"""
ATTENTION = "op f(q[T, N, D], k[L, M, D], v[L, M, D]; N: nat, M: nat, D: nat) -> o[T, N, D]\n"
WEIGHTED = "  o[t, h, d] = Σ_l softmax_l(z[l]{}) · v[l, h // (N // M), d]{}\n"
SCORE = "  let z[l] = {}Σ_e q[t, h, e]·k[l, h // (N // M), e]\n"
SLOPES = """op f(q[B, N, D], k[B, S, M, D], v[B, S, M, D], n[B]: index; N: nat, M: nat, D: nat) -> o[B, N, D]
  let z[l] = (l - n[b]) / 8 + 1/4 · (Σ_e q[b, h, e]·k[b, l, h // (N // M), e])
  o[b, h, d] = Σ_l softmax_l(z[l] | l < n[b] and l % 3 != 1) · v[b, l, h // (N // M), d]
"""
TAKE = "op f(e[T, J]: index, w[V, H]; V: nat, J: nat, H: nat) -> y[T, J, H]\n  y[t, j, i] = w[e[t, j], i]\n"
PICK = """op f(e[T, H]: index, x[T, H], w[V]; V: nat, H: nat) -> y[T, H]
  y[t, i] = x[t, i] · w[e[t, i]] / (1 + Σ_j abs(x[t, j]))
"""
MIX = """op f(e[T, K]: index, x[V, K], w[N, K]; V: nat, K: nat, N: nat) -> y[T, N]
  y[t, n] = Σ_k x[e[t, k], k] · w[n, k]
"""
CALLED = """op f(a[T, K], b[N, K]; K: nat, N: nat) -> y[T, N]
  y[t, n] = Σ_k tanh(a[t, k]) · exp(b[n, k])
"""
HEAD_SIZES = {"N": 6, "M": 2, "D": 20}
OWN = {
    "contraction of what is computed, across rows": (PRODUCT, {"H": 3, "K": 72, "N": 40}),
    "attention up to the row": (ATTENTION + SCORE.format("") + WEIGHTED.format(" | l ≤ L - T + t", ""), HEAD_SIZES),
    "attention to everything": (ATTENTION + SCORE.format("1/2 · ") + WEIGHTED.format("", " / 2"), HEAD_SIZES),
    "decode with a slope, of two keys in three": (SLOPES, HEAD_SIZES),
    "contraction of operands called as its factors": (CALLED, {"K": 24, "N": 16}),
    "contraction whose terms choose": (MIX, {"V": 9, "K": 24, "N": 16}),
}
PLAIN = {
    "rows of a table that two axes choose": (TAKE, {"V": 9, "J": 3, "H": 12}),
    "row reduction whose elements choose": (PICK, {"V": 9, "H": 12}),
}
"""Without tiles."""
TILED = (*NODES, *OWN, *STEPS)
NAMES = (*TILED, *PLAIN)


def kernel(name: str) -> Kernel:
    if name in OWN | PLAIN:
        text, constants = (OWN | PLAIN)[name]
        return custom(text, **constants)
    return NODES[name].kernel(library()) if name in NODES else recurrence(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_is_verified(name: str) -> None:
    report = check_kernel(kernel(name), CudaExecutor(), examples=3, number=2)
    assert report.status is Status.VERIFIED, report.counterexample or report.reason


@pytest.mark.slow
@pytest.mark.parametrize("name", TILED)
def test_a_kernel_with_the_tiles_that_ship_is_verified(name: str) -> None:
    own = kernel(name)
    assert emit(own) != emit(own, arch=CPU)
    report = check_kernel(own, CudaExecutor(tiles=shipped_tiles().alone(GPU)), examples=3, number=2)
    assert report.status is Status.VERIFIED, report.counterexample or report.reason


def test_a_value_that_a_row_does_not_see_takes_no_part_in_it() -> None:
    own = kernel("causalGQA, heads of 80")
    generator = torch.Generator().manual_seed(3)
    tensors = {n: torch.randn(5, heads, 80, generator=generator) for n, heads in (("q", 4), ("k", 2), ("v", 2))}
    tensors |= {"pos": torch.arange(5)}
    tensors["v"][3, 0], tensors["v"][4, 1] = float("nan"), float("inf")
    outputs, _ = run(own, tensors)
    clean = torch.isfinite(outputs["o"])
    unseen = torch.tensor([[row < 3, row < 4] for row in range(5)]).repeat_interleave(2, 1)
    assert torch.equal(clean.all(-1), unseen) and torch.equal(clean.any(-1), unseen)
    exact = {n: t.numpy().astype(np.float64 if n != "pos" else np.int64) for n, t in tensors.items()}
    numerics = cuda({str(role): "float32" for role in Role})
    found = {n: t.to(torch.float64).numpy() for n, t in outputs.items()}
    written = {"o": np.argwhere(clean.numpy())}
    assert judge(own, exact, found, written, numerics, {"T": 5, "L": 5}, "float32").count == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_widened_kernel_equals_the_oracle(name: str) -> None:
    own = kernel(name)
    case = replace(next(c for c in pinned(own) if c.family == "normal"), dtype="float32", seed=7)
    drawn = draw(own, case)
    outputs, _ = run(own, stored(own, drawn, case, widen=True), widen=True)
    oracle = evaluate(own.formula, exact_values(drawn), dict(case.sizes))
    for result, tensor in outputs.items():
        assert tensor.dtype is torch.float64
        distance = np.max(np.abs(tensor.numpy() - oracle[result]))
        assert distance <= REAL * np.max(np.abs(oracle[result]))
