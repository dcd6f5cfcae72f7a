"""Nodes of google/gemma-4-31B@1.0: trunk."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..functions import softcap
from ..runtime import Precision, rounded


def embed(tokens: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:embed: embed

    y[t, i] = √5376 · w[tokens[t], i]

    tokens [T], w [262144, 5376] -> y [T, 5376]
    """
    y = rounded(math.sqrt(5376), p.weight) * w[tokens].to(p.accumulator)
    return y.to(p.activation)


def input_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].input_norm: rmsnorm

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 5376 + 1e-06) · w[i]

    x [T, 5376], w [5376] -> y [T, 5376]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 5376 + 1e-06)
    y = n * w
    return y.to(p.activation)


def post_mix_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].post_mix_norm: rmsnorm

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 5376 + 1e-06) · w[i]

    x [T, 5376], w [5376] -> y [T, 5376]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 5376 + 1e-06)
    y = n * w
    return y.to(p.activation)


def attn_residual(x: Tensor, h: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn_residual: residual

    y[t, i] = x[t, i] + 1 · h[t, i]

    x [T, 5376], h [T, 5376] -> y [T, 5376]
    """
    x, h = p.load(x, h)
    y = x + h
    return y.to(p.activation)


def post_attn_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].post_attn_norm: rmsnorm

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 5376 + 1e-06) · w[i]

    x [T, 5376], w [5376] -> y [T, 5376]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 5376 + 1e-06)
    y = n * w
    return y.to(p.activation)


def post_ffn_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].post_ffn_norm: rmsnorm

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 5376 + 1e-06) · w[i]

    x [T, 5376], w [5376] -> y [T, 5376]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 5376 + 1e-06)
    y = n * w
    return y.to(p.activation)


def mlp_residual(x: Tensor, h: Tensor, s: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].mlp_residual: residual

    y[t, i] = s[0] · (x[t, i] + 1 · h[t, i])

    x [T, 5376], h [T, 5376], s [1] -> y [T, 5376]
    """
    x, h, s = p.load(x, h, s)
    y = s[0] * (x + h)
    return y.to(p.activation)


def final_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:final_norm: rmsnorm

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 5376 + 1e-06) · w[i]

    x [T, 5376], w [5376] -> y [T, 5376]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 5376 + 1e-06)
    y = n * w
    return y.to(p.activation)


def lm_head(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:lm_head: lmHead

    logits[t, n] = softcap(30, 1 · Σ_k x[t, k] · w[n, k])

    x [T, 5376], w [262144, 5376] -> logits [T, 262144]
    """
    x, w = p.load(x, w)
    z = torch.einsum("tk,nk->tn", x, w)
    logits = softcap(30, z)
    return logits.to(p.activation)
