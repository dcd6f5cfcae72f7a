"""Nodes of google/gemma-3-270m@1.0: mlp."""

from __future__ import annotations

import torch
from torch import Tensor

from ..functions import gelu_tanh
from ..runtime import Precision


def mlp_gate_up(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-3-270m@1.0:layers[*].mlp.gate_up: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 640], w [4096, 640] -> y [T, 4096]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)


def mlp_act(gu: Tensor, p: Precision) -> Tensor:
    """google/gemma-3-270m@1.0:layers[*].mlp.act: geluMul

    y[t, i] = geluTanh(gu[t, i]) · gu[t, 2048 + i]

    gu [T, 4096] -> y [T, 2048]
    """
    gu = gu.to(p.accumulator)
    y = gelu_tanh(gu[:, :2048]) * gu[:, 2048:]
    return y.to(p.activation)


def mlp_down(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-3-270m@1.0:layers[*].mlp.down: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 2048], w [640, 2048] -> y [T, 640]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)
