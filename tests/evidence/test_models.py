"""The property suite on kernels of the other shipped models, at their true constants, in every target."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from specc import pipeline
from specc.evidence.check import Status
from specc.evidence.suite import check_kernels
from specc.ir import Model
from specc.kernels import Kernel
from specc.lowered import all_kernels, lower_each
from specc.resources import shipped

NEW = {
    "gemma3_270m": ("input_norm", "attn_qk_norm", "attn_core_sliding_prefill", "attn_core_sliding_decode"),
    "granite_3_3_8b": ("embed", "attn_residual", "attn_core_prefill", "attn_core_decode", "mlp_act", "lm_head"),
    "muse_glimmer_30b": ("embed", "attn_qk_norm", "attn_core_global_prefill", "attn_core_global_decode", "attn_gate"),
    "qwen3_0_6b": ("input_norm", "attn_qk_norm"),
    "qwen3_8_27b": ("attn_rope_full", "gdn_gates_delta", "gdn_norm_delta", "gdn_qk_norm_delta", "gdn_q_scale_delta"),
}
"""Kernels that no earlier model has like this: norms of weight 1 + w or with a rounded vector, a normed embedding, new
multipliers and caps, gates, an odd vocabulary, heads of 128, groups of 4 and 16, a partial rotary embedding."""
TARGETS = ("torch", "triton", "cuda")


@cache
def model(name: str) -> Model:
    return pipeline.load(shipped("specs") / f"{name}.spec")


@cache
def kernels(name: str) -> tuple[Kernel, ...]:
    return all_kernels(lower_each(model(name)))


def refused(name: str, chosen: Sequence[Kernel], examples: int, targets: Sequence[str] = TARGETS) -> list[object]:
    reports = list(check_kernels(model(name), chosen, targets, examples, 0))
    assert len(reports) == len(targets) * len(chosen) > 0
    return [r.counterexample or r.reason for r in reports if r.status is not Status.VERIFIED]


@pytest.mark.parametrize(("name", "kernel"), [(name, kernel) for name, listed in NEW.items() for kernel in listed])
def test_a_kernel_that_is_new_with_its_model_is_verified(name: str, kernel: str) -> None:
    targets = TARGETS if kernel.startswith("gdn_") else ("torch", "triton")
    assert refused(name, [k for k in kernels(name) if k.name == kernel], 0, targets) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NEW)
def test_every_kernel_of_a_model_is_verified_on_drawn_cases_too(name: str) -> None:
    assert refused(name, kernels(name), 3) == []
