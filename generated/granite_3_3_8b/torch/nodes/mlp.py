"""Nodes of ibm-granite/granite-3.3-8b-instruct@1.0: mlp."""

from __future__ import annotations

import torch
from torch import Tensor

from ..functions import silu
from ..runtime import Precision


def mlp_gate_up(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """ibm-granite/granite-3.3-8b-instruct@1.0:layers[*].mlp.gate_up: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 4096], w [25600, 4096] -> y [T, 25600]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)


def mlp_act(gu: Tensor, p: Precision) -> Tensor:
    """ibm-granite/granite-3.3-8b-instruct@1.0:layers[*].mlp.act: siluMul

    y[t, i] = silu(gu[t, i]) · gu[t, 12800 + i]

    gu [T, 25600] -> y [T, 12800]
    """
    gu = gu.to(p.accumulator)
    y = silu(gu[:, :12800]) * gu[:, 12800:]
    return y.to(p.activation)


def mlp_down(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """ibm-granite/granite-3.3-8b-instruct@1.0:layers[*].mlp.down: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 12800], w [4096, 12800] -> y [T, 4096]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)
