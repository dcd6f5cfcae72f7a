"""Nodes of meta-models/Muse-Glimmer-30B@1.0: trunk."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..functions import softcap
from ..runtime import Precision


def embed(tokens: Tensor, w: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:embed: embed

    y[t, i] = 1 · w[tokens[t], i] / √(Σ_j w[tokens[t], j]² / 6656 + 1e-05)

    tokens [T], w [202048, 6656] -> y [T, 6656]
    """
    part = torch.sum(w[tokens].to(p.accumulator) ** 2, dim=-1, keepdim=True) / 6656 + 1e-05
    y = w[tokens].to(p.accumulator) / torch.sqrt(part)
    return y.to(p.activation)


def input_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].input_norm: rmsnormOffset

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 6656 + 1e-05) · (1 + w[i])

    x [T, 6656], w [6656] -> y [T, 6656]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 6656 + 1e-05)
    y = n * (1 + w)
    return y.to(p.activation)


def post_mix_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].post_mix_norm: rmsnormOffset

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 6656 + 1e-08) · (1 + w[i])

    x [T, 6656], w [6656] -> y [T, 6656]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 6656 + 1e-08)
    y = n * (1 + w)
    return y.to(p.activation)


def attn_residual(x: Tensor, h: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].attn_residual: residual

    y[t, i] = x[t, i] + 1 · h[t, i]

    x [T, 6656], h [T, 6656] -> y [T, 6656]
    """
    x, h = p.load(x, h)
    y = x + h
    return y.to(p.activation)


def post_attn_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].post_attn_norm: rmsnormOffset

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 6656 + 1e-05) · (1 + w[i])

    x [T, 6656], w [6656] -> y [T, 6656]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 6656 + 1e-05)
    y = n * (1 + w)
    return y.to(p.activation)


def post_ffn_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].post_ffn_norm: rmsnormOffset

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 6656 + 1e-08) · (1 + w[i])

    x [T, 6656], w [6656] -> y [T, 6656]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 6656 + 1e-08)
    y = n * (1 + w)
    return y.to(p.activation)


def mlp_residual(x: Tensor, h: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].mlp_residual: residual

    y[t, i] = x[t, i] + 1 · h[t, i]

    x [T, 6656], h [T, 6656] -> y [T, 6656]
    """
    x, h = p.load(x, h)
    y = x + h
    return y.to(p.activation)


def final_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:final_norm: rmsnorm

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 6656 + 1e-05) · w[i]

    x [T, 6656], w [6656] -> y [T, 6656]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 6656 + 1e-05)
    y = n * w
    return y.to(p.activation)


def lm_head(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:lm_head: lmHead

    logits[t, n] = softcap(20, 1 / √26 · Σ_k x[t, k] · w[n, k])

    x [T, 6656], w [202048, 6656] -> logits [T, 202048]
    """
    x, w = p.load(x, w)
    z = 1 / math.sqrt(26) * torch.einsum("tk,nk->tn", x, w)
    logits = softcap(20, z)
    return logits.to(p.activation)
