"""Nodes of google/gemma-4-31B@1.0: mlp."""

from __future__ import annotations

import torch
from torch import Tensor

from ..functions import gelu_tanh
from ..runtime import Precision


def mlp_gate_up(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].mlp.gate_up: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 5376], w [43008, 5376] -> y [T, 43008]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)


def mlp_act(gu: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].mlp.act: geluMul

    y[t, i] = geluTanh(gu[t, i]) · gu[t, 21504 + i]

    gu [T, 43008] -> y [T, 21504]
    """
    gu = gu.to(p.accumulator)
    y = gelu_tanh(gu[:, :21504]) * gu[:, 21504:]
    return y.to(p.activation)


def mlp_down(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].mlp.down: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 21504], w [5376, 21504] -> y [T, 5376]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)
