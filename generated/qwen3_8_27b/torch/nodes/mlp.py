"""Nodes of Qwen/Qwen3.8-27B@1.0: mlp."""

from __future__ import annotations

import torch
from torch import Tensor

from ..functions import silu
from ..runtime import Precision


def mlp_gate_up(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].mlp.gate_up: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 5120], w [34816, 5120] -> y [T, 34816]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)


def mlp_act(gu: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].mlp.act: siluMul

    y[t, i] = silu(gu[t, i]) · gu[t, 17408 + i]

    gu [T, 34816] -> y [T, 17408]
    """
    gu = gu.to(p.accumulator)
    y = silu(gu[:, :17408]) * gu[:, 17408:]
    return y.to(p.activation)


def mlp_down(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].mlp.down: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 17408], w [5120, 17408] -> y [T, 5120]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)
