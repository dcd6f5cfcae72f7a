"""Nodes of meta-models/Muse-Glimmer-30B@1.0: mlp."""

from __future__ import annotations

import torch
from torch import Tensor

from ..functions import silu
from ..runtime import Precision


def mlp_gate_up(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].mlp.gate_up: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 6656], w [39936, 6656] -> y [T, 39936]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)


def mlp_act(gu: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].mlp.act: siluMul

    y[t, i] = silu(gu[t, i]) · gu[t, 19968 + i]

    gu [T, 39936] -> y [T, 19968]
    """
    gu = gu.to(p.accumulator)
    y = silu(gu[:, :19968]) * gu[:, 19968:]
    return y.to(p.activation)


def mlp_down(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].mlp.down: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 19968], w [6656, 19968] -> y [T, 6656]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)
