"""Nodes of Qwen/Qwen3.8-27B@1.0: trunk."""

from __future__ import annotations

import torch
from torch import Tensor

from ..runtime import Precision


def embed(tokens: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:embed: embed

    y[t, i] = 1 · w[tokens[t], i]

    tokens [T], w [248320, 5120] -> y [T, 5120]
    """
    y = w[tokens].to(p.accumulator)
    return y.to(p.activation)


def input_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].input_norm: rmsnormOffset

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 5120 + 1e-06) · (1 + w[i])

    x [T, 5120], w [5120] -> y [T, 5120]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 5120 + 1e-06)
    y = n * (1 + w)
    return y.to(p.activation)


def attn_residual(x: Tensor, h: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].attn_residual: residual

    y[t, i] = x[t, i] + 1 · h[t, i]

    x [T, 5120], h [T, 5120] -> y [T, 5120]
    """
    x, h = p.load(x, h)
    y = x + h
    return y.to(p.activation)


def post_attn_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].post_attn_norm: rmsnormOffset

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 5120 + 1e-06) · (1 + w[i])

    x [T, 5120], w [5120] -> y [T, 5120]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 5120 + 1e-06)
    y = n * (1 + w)
    return y.to(p.activation)


def mlp_residual(x: Tensor, h: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].mlp_residual: residual

    y[t, i] = x[t, i] + 1 · h[t, i]

    x [T, 5120], h [T, 5120] -> y [T, 5120]
    """
    x, h = p.load(x, h)
    y = x + h
    return y.to(p.activation)


def final_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:final_norm: rmsnormOffset

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 5120 + 1e-06) · (1 + w[i])

    x [T, 5120], w [5120] -> y [T, 5120]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 5120 + 1e-06)
    y = n * (1 + w)
    return y.to(p.activation)


def lm_head(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:lm_head: lmHead

    logits[t, n] = 1 · Σ_k x[t, k] · w[n, k]

    x [T, 5120], w [248320, 5120] -> logits [T, 248320]
    """
    x, w = p.load(x, w)
    z = torch.einsum("tk,nk->tn", x, w)
    return z.to(p.activation)
