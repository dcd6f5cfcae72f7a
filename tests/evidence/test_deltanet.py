"""The nodes of gated DeltaNet: right kernels are verified on every target, wrong ones refuted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from specc.evidence.check import Executor, Report, Status, check_kernel
from specc.evidence.execute import CudaExecutor, TorchExecutor, TritonExecutor
from specc.instantiate import instantiate
from specc.ir import Role
from specc.kernels import Kernel
from specc.lower.lower import Setting, lower_parts
from specc.ops import Library
from specc.targets.triton.emit import emit
from tests.evidence.planted import library, nat, real, swap

EXECUTORS: dict[str, Executor] = {"triton": TritonExecutor(), "torch": TorchExecutor(), "cuda": CudaExecutor()}
HEADS = {"Hv": nat(6), "Hk": nat(2), "Dk": nat(20), "Dv": nat(24)}
CONV = {"C": nat(70), "K": nat(4), "W": nat(3)}
KEPT = ("S0", "S", "alpha", "beta")
NODES = {
    "gatedDeltaRule": (HEADS, ("S0",)),
    "gatedDeltaRule from 0": (HEADS, ()),
    "gdnStep": (HEADS, ()),
    "gdnStep of many rows": ({"Hv": nat(4), "Hk": nat(2), "Dk": nat(128), "Dv": nat(64)}, ()),
    "causalConvSiluFrom": (CONV, ()),
    "causalConvSiluStep": (CONV, ()),
    "gdnGates": ({"H": nat(6)}, ()),
    "scaled": ({"H": nat(20), "mul": real("0.3")}, ()),
}


def kernels(node: str, ops: Library) -> tuple[Kernel, ...]:
    values, given = NODES[node]
    name = node.split()[0]
    lead = [("r0", nat(5))] if name in ("gdnGates", "scaled") else []
    formula = instantiate(ops.op(name), values, lead, given)
    tensors = (*formula.inputs, *formula.outputs)
    roles = {t.name: Role.ACCUMULATOR if t.name in KEPT else Role.ACTIVATION for t in tensors}
    roles |= {t.name: Role.WEIGHT for t in tensors if t.name in ("w", "A_log", "dt_bias")}
    return lower_parts(formula, Setting(name.lower(), "prefill", (), roles))


@cache
def right(node: str) -> tuple[Kernel, ...]:
    return kernels(node, library())


@pytest.mark.parametrize("target", EXECUTORS)
@pytest.mark.parametrize("node", NODES)
def test_a_right_node_is_verified(node: str, target: str) -> None:
    for kernel in right(node):
        report = check_kernel(kernel, EXECUTORS[target], examples=2, number=1)
        assert report.status is Status.VERIFIED, report.counterexample or report.reason


STEP = "alpha[t, h] · (R[t - 1, h, a, b] - (beta[t, h] · Σ_c R[t - 1, h, a, c] · k[t, g, c]) · k[t, g, b])"
ADDED = "+ beta[t, h] · v[t, h, a] · k[t, g, b]"
FAULTS: dict[str, tuple[str, str, str]] = {
    "decay after the update": (
        "gatedDeltaRule",
        f"{STEP}\n    {ADDED}\n  S[",
        f"alpha[t, h] · (R[t - 1, h, a, b] - (beta[t, h] · Σ_c R[t - 1, h, a, c] · k[t, g, c]) · k[t, g, b] "
        f"{ADDED})\n  S[",
    ),
    "no step size where something is taken": ("gatedDeltaRule", "(beta[t, h] · Σ_c R", "(Σ_c R"),
    "no step size where something is added": ("gatedDeltaRule", ADDED, "+ v[t, h, a] · k[t, g, b]"),
    "added, not taken": ("gatedDeltaRule", "R[t - 1, h, a, b] - (beta", "R[t - 1, h, a, b] + (beta"),
    "head by remainder": ("gatedDeltaRule", "let g = h // (Hv // Hk)", "let g = h % Hk"),
    "values twice": (
        "gatedDeltaRule",
        "beta[t, h] · v[t, h, a] · k[t, g, b]\n  S[h",
        "2 · beta[t, h] · v[t, h, a] · k[t, g, b]\n  S[h",
    ),
    "step: decay after the update": (
        "gdnStep",
        "· k[s, g, c])\n    + beta[s, h] · v[s, h, a] · k[s, g, c]",
        "· k[s, g, c] + beta[s, h] · v[s, h, a] · k[s, g, c])",
    ),
    "step: head by remainder": ("gdnStep", "let g = h // (Hv // Hk)", "let g = h % Hk"),
    "step: output of the state before": ("gdnStep", "o[s, h, a] = Σ_b R[a, b]", "o[s, h, a] = Σ_b S0[s, h, a, b]"),
    "taps in the wrong order": ("causalConvSiluFrom", "Σ_{j < K} w[i, j] · (if t", "Σ_{j < K} w[i, K - 1 - j] · (if t"),
    "window off by one": ("causalConvSiluFrom", "if T + j < W then c[T + j, i] else x[T + j - W, i]",
                          "if T + j ≤ W then c[max(T + j - 1, 0), i] else x[T + j - W - 1, i]"),
    "a window that is not moved": (
        "causalConvSiluStep", "if j + 1 < W then c[b, j + 1, i]", "if j + 1 < W then c[b, j, i]"
    ),
    "no softplus": ("gdnGates", "softplus(a[.., i] + dt_bias[i])", "(a[.., i] + dt_bias[i])"),
    "decay without its sign": ("gdnGates", "exp(-exp(A_log[i])", "exp(exp(A_log[i])"),
}  # fmt: skip


def planted(node: str, edit: Callable[[str], str]) -> list[Kernel]:
    pairs = zip(right(node), kernels(node, library(edit)), strict=True)
    return [replace(wrong, formula=r.formula, lowered=r.lowered) for r, wrong in pairs]


def refuted(reports: list[Report]) -> bool:
    return any(r.status is Status.REFUTED for r in reports)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_kernel_of_a_wrong_formula_is_refuted(fault: str) -> None:
    node, old, new = FAULTS[fault]
    found = [k for k in planted(node, swap(old, new)) if k not in right(node)]
    assert found, "the edit reaches no kernel"
    assert refuted([check_kernel(k, EXECUTORS["triton"], examples=0) for k in found])


TEXT_FAULTS = {
    "a chunk reads the step after it": ("t = start + step\n", "t = start + step + 1\n"),
    "a step finds itself": ("later = step[None, :] > step[:, None]", "later = step[None, :] >= step[:, None]"),
    "the last step of a chunk is not solved": ("range(CHUNK - 1)", "range(CHUNK - 2)"),
    "a chunk forgets the state before it": ("state_0 * faded", "state_0 * 0.0"),
    "decays up to the chunk are left out of the output": ("since * acc", "acc"),
    "what a step added is not decayed": ("added *= left", "added *= 1.0"),
    "steps past the end decay": ("decay = tl.where(t_in, alpha, 1.0)", "decay = tl.where(t_in, alpha, 0.0)"),
    "the first state is ignored": ("state = S0\n", "state = S0 * 0.0\n"),
    "differences of logarithms": (
        "fade = tl.cumprod(tl.where(later, decay[None, :], 1.0), 1)",
        "last = tl.sum(tl.where(step[None, :] == step[:, None], since, 0.0), 1)[:, None]\n"
        "        fade = tl.exp(tl.log(since) - tl.log(last))",
    ),
    "the state in bfloat16": ("return total + small", "return total"),
    "the first state is transposed": (
        "S0_row + a * S0_stride_a + b[None, :],",
        "S0_row + tl.minimum(b, 23)[None, :] * S0_stride_a + tl.minimum(a, 19),",
    ),
    "no decay where a step looks back": ("since * finds", "finds"),
}  # fmt: skip


@pytest.mark.parametrize("fault", TEXT_FAULTS)
def test_a_chunked_kernel_with_a_fault_is_refuted(fault: str) -> None:
    (kernel,) = right("gatedDeltaRule")
    old, new = TEXT_FAULTS[fault]
    text = emit(kernel)
    assert old in text
    report = check_kernel(kernel, TritonExecutor({kernel.name: text.replace(old, new)}), examples=0)
    assert report.status is Status.REFUTED
