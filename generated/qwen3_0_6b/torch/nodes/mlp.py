"""Nodes of Qwen/Qwen3-0.6B@1.0: mlp."""

from __future__ import annotations

import torch
from torch import Tensor

from ..functions import silu
from ..runtime import Precision


def mlp_gate_up(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3-0.6B@1.0:layers[*].mlp.gate_up: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 1024], w [6144, 1024] -> y [T, 6144]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)


def mlp_act(gu: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3-0.6B@1.0:layers[*].mlp.act: siluMul

    y[t, i] = silu(gu[t, i]) · gu[t, 3072 + i]

    gu [T, 6144] -> y [T, 3072]
    """
    gu = gu.to(p.accumulator)
    y = silu(gu[:, :3072]) * gu[:, 3072:]
    return y.to(p.activation)


def mlp_down(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3-0.6B@1.0:layers[*].mlp.down: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 3072], w [1024, 3072] -> y [T, 1024]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)
