"""Nodes of ibm-granite/granite-3.3-8b-instruct@1.0: trunk."""

from __future__ import annotations

import torch
from torch import Tensor

from ..runtime import Precision


def embed(tokens: Tensor, w: Tensor, p: Precision) -> Tensor:
    """ibm-granite/granite-3.3-8b-instruct@1.0:embed: embed

    y[t, i] = 12 · w[tokens[t], i]

    tokens [T], w [49159, 4096] -> y [T, 4096]
    """
    y = 12 * w[tokens].to(p.accumulator)
    return y.to(p.activation)


def input_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """ibm-granite/granite-3.3-8b-instruct@1.0:layers[*].input_norm: rmsnorm

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 4096 + 1e-05) · w[i]

    x [T, 4096], w [4096] -> y [T, 4096]
    """
    x, w = p.load(x, w)
    n = (x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 4096 + 1e-05)).to(p.activation).to(p.accumulator)
    y = n * w
    return y.to(p.activation)


def attn_residual(x: Tensor, h: Tensor, p: Precision) -> Tensor:
    """ibm-granite/granite-3.3-8b-instruct@1.0:layers[*].attn_residual: residual

    y[t, i] = x[t, i] + 0.22 · h[t, i]

    x [T, 4096], h [T, 4096] -> y [T, 4096]
    """
    x, h = p.load(x, h)
    y = x + 0.22 * h
    return y.to(p.activation)


def post_attn_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """ibm-granite/granite-3.3-8b-instruct@1.0:layers[*].post_attn_norm: rmsnorm

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 4096 + 1e-05) · w[i]

    x [T, 4096], w [4096] -> y [T, 4096]
    """
    x, w = p.load(x, w)
    n = (x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 4096 + 1e-05)).to(p.activation).to(p.accumulator)
    y = n * w
    return y.to(p.activation)


def mlp_residual(x: Tensor, h: Tensor, p: Precision) -> Tensor:
    """ibm-granite/granite-3.3-8b-instruct@1.0:layers[*].mlp_residual: residual

    y[t, i] = x[t, i] + 0.22 · h[t, i]

    x [T, 4096], h [T, 4096] -> y [T, 4096]
    """
    x, h = p.load(x, h)
    y = x + 0.22 * h
    return y.to(p.activation)


def final_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """ibm-granite/granite-3.3-8b-instruct@1.0:final_norm: rmsnorm

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 4096 + 1e-05) · w[i]

    x [T, 4096], w [4096] -> y [T, 4096]
    """
    x, w = p.load(x, w)
    n = (x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 4096 + 1e-05)).to(p.activation).to(p.accumulator)
    y = n * w
    return y.to(p.activation)


def lm_head(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """ibm-granite/granite-3.3-8b-instruct@1.0:lm_head: lmHead

    logits[t, n] = 0.0625 · Σ_k x[t, k] · w[n, k]

    x [T, 4096], w [49159, 4096] -> logits [T, 49159]
    """
    x, w = p.load(x, w)
    z = 0.0625 * torch.einsum("tk,nk->tn", x, w)
    return z.to(p.activation)
