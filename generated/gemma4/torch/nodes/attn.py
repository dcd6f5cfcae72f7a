"""Nodes of google/gemma-4-31B@1.0: attn."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from ..functions import inv_freq
from ..runtime import Precision, masked_softmax, weighted_sum


def attn_qkv_proj_sliding(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn.qkv_proj, sliding layers: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 5376], w [16384, 5376] -> y [T, 16384]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)


def attn_qk_norm_sliding(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn.qk_norm, sliding layers: rmsnorm

    y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² / 256 + 1e-06) · w[i]

    x [T, 32, 256], w [256] -> y [T, 32, 256]
    x [T, 16, 256], w [256] -> y [T, 16, 256]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 256 + 1e-06)
    y = n * w
    return y.to(p.activation)


def attn_v_norm_sliding(x: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn.v_norm, sliding layers: rmsnormUnit

    y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² / 256 + 1e-06)

    x [T, 16, 256] -> y [T, 16, 256]
    """
    x = x.to(p.accumulator)
    y = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 256 + 1e-06)
    return y.to(p.activation)


@cache
def attn_rope_sliding_inv_freq(device: torch.device) -> Tensor:
    """invFreq(10000, 256, 128, i) for i < 128, in float64."""
    i = torch.arange(128, device=device)
    return inv_freq(10000, 256, 128, i)


def attn_rope_sliding(x: Tensor, pos: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn.rope, sliding layers: rope

    y[t, h, i] =
        if i < 128 then x[t, h, i] · cos(pos[t] · invFreq(10000, 256, 128, i)) - x[t, h, i + 128] ·
        sin(pos[t] · invFreq(10000, 256, 128, i))
        else if i < 256 then x[t, h, i] · cos(pos[t] · invFreq(10000, 256, 128, i - 128)) + x[t, h, i -
        128] · sin(pos[t] · invFreq(10000, 256, 128, i - 128))
        else x[t, h, i]

    x [T, 32, 256], pos [T] -> y [T, 32, 256]
    x [T, 16, 256], pos [T] -> y [T, 16, 256]
    """
    x = x.to(p.accumulator)
    a = pos[:, None, None] * attn_rope_sliding_inv_freq(x.device)
    cos = torch.cos(a).to(p.accumulator)
    sin = torch.sin(a).to(p.accumulator)
    y0 = x[..., :128] * cos - x[..., 128:] * sin
    y1 = x[..., 128:] * cos + x[..., :128] * sin
    y = torch.cat((y0, y1), dim=-1)
    return y.to(p.activation)


def attn_core_sliding_prefill(q: Tensor, k: Tensor, v: Tensor, pos: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn.core, sliding layers: slidingGQA

    o[t, h, d] = Σ_l softmax_l(1 · Σ_e q[t, h, e] · k[l, h // 2, e] | pos[t] - 1024 < l ≤ pos[t]) · v[l, h
        // 2, d]

    q [T, 32, 256], k [L, 16, 256], v [L, 16, 256], pos [T] -> o [T, 32, 256]
    """
    L = k.shape[0]
    q, k, v = p.load(q, k, v)
    k = k.repeat_interleave(2, dim=1)
    v = v.repeat_interleave(2, dim=1)
    l_ = torch.arange(L, device=q.device)
    visible = (pos[:, None, None] - 1024 < l_) & (l_ <= pos[:, None, None])
    z = torch.einsum("the,lhe->thl", q, k)
    weights = masked_softmax(z, visible).to(p.cache).to(p.accumulator)
    o = weighted_sum("thl,lhd->thd", weights, v, visible)
    return o.to(p.activation)


def attn_core_sliding_decode(q: Tensor, k: Tensor, v: Tensor, seq_lens: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn.core, sliding layers: slidingDecodeGQA

    o[b, h, d] = Σ_l softmax_l(1 · Σ_e q[b, h, e] · k[b, l, h // 2, e] | seq_lens[b] - 1 - 1024 < l <
        seq_lens[b]) · v[b, l, h // 2, d]

    q [B, 32, 256], k [B, S, 16, 256], v [B, S, 16, 256], seq_lens [B] -> o [B, 32, 256]
    """
    S = k.shape[1]
    q, k, v = p.load(q, k, v)
    k = k.repeat_interleave(2, dim=2)
    v = v.repeat_interleave(2, dim=2)
    l_ = torch.arange(S, device=q.device)
    visible = (seq_lens[:, None, None] - 1025 < l_) & (l_ < seq_lens[:, None, None])
    z = torch.einsum("bhe,blhe->bhl", q, k)
    weights = masked_softmax(z, visible).to(p.cache).to(p.accumulator)
    o = weighted_sum("bhl,blhd->bhd", weights, v, visible)
    return o.to(p.activation)


def attn_o_proj_sliding(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn.o_proj, sliding layers: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 8192], w [5376, 8192] -> y [T, 5376]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)


def attn_qkv_proj_global(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn.qkv_proj, global layers: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 5376], w [18432, 5376] -> y [T, 18432]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)


def attn_qk_norm_global(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn.qk_norm, global layers: rmsnorm

    y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² / 512 + 1e-06) · w[i]

    x [T, 32, 512], w [512] -> y [T, 32, 512]
    x [T, 4, 512], w [512] -> y [T, 4, 512]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 512 + 1e-06)
    y = n * w
    return y.to(p.activation)


def attn_v_norm_global(x: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn.v_norm, global layers: rmsnormUnit

    y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² / 512 + 1e-06)

    x [T, 4, 512] -> y [T, 4, 512]
    """
    x = x.to(p.accumulator)
    y = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 512 + 1e-06)
    return y.to(p.activation)


@cache
def attn_rope_global_inv_freq(device: torch.device) -> Tensor:
    """invFreq(1000000, 512, 64, i) for i < 256, in float64."""
    i = torch.arange(256, device=device)
    return inv_freq(1000000, 512, 64, i)


def attn_rope_global(x: Tensor, pos: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn.rope, global layers: rope

    y[t, h, i] =
        if i < 256 then x[t, h, i] · cos(pos[t] · invFreq(1000000, 512, 64, i)) - x[t, h, i + 256] ·
        sin(pos[t] · invFreq(1000000, 512, 64, i))
        else if i < 512 then x[t, h, i] · cos(pos[t] · invFreq(1000000, 512, 64, i - 256)) + x[t, h, i -
        256] · sin(pos[t] · invFreq(1000000, 512, 64, i - 256))
        else x[t, h, i]

    x [T, 32, 512], pos [T] -> y [T, 32, 512]
    x [T, 4, 512], pos [T] -> y [T, 4, 512]
    """
    x = x.to(p.accumulator)
    a = pos[:, None, None] * attn_rope_global_inv_freq(x.device)
    cos = torch.cos(a).to(p.accumulator)
    sin = torch.sin(a).to(p.accumulator)
    y0 = x[..., :256] * cos - x[..., 256:] * sin
    y1 = x[..., 256:] * cos + x[..., :256] * sin
    y = torch.cat((y0, y1), dim=-1)
    return y.to(p.activation)


def attn_core_global_prefill(q: Tensor, k: Tensor, v: Tensor, pos: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn.core, global layers: causalGQA

    o[t, h, d] = Σ_l softmax_l(1 · Σ_e q[t, h, e] · k[l, h // 8, e] | l ≤ pos[t]) · v[l, h // 8, d]

    q [T, 32, 512], k [L, 4, 512], v [L, 4, 512], pos [T] -> o [T, 32, 512]
    """
    L = k.shape[0]
    q, k, v = p.load(q, k, v)
    k = k.repeat_interleave(8, dim=1)
    v = v.repeat_interleave(8, dim=1)
    l_ = torch.arange(L, device=q.device)
    visible = l_ <= pos[:, None, None]
    z = torch.einsum("the,lhe->thl", q, k)
    weights = masked_softmax(z, visible).to(p.cache).to(p.accumulator)
    o = weighted_sum("thl,lhd->thd", weights, v, visible)
    return o.to(p.activation)


def attn_core_global_decode(q: Tensor, k: Tensor, v: Tensor, seq_lens: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn.core, global layers: decodeGQA

    o[b, h, d] = Σ_l softmax_l(1 · Σ_e q[b, h, e] · k[b, l, h // 8, e] | l < seq_lens[b]) · v[b, l, h //
        8, d]

    q [B, 32, 512], k [B, S, 4, 512], v [B, S, 4, 512], seq_lens [B] -> o [B, 32, 512]
    """
    S = k.shape[1]
    q, k, v = p.load(q, k, v)
    k = k.repeat_interleave(8, dim=2)
    v = v.repeat_interleave(8, dim=2)
    l_ = torch.arange(S, device=q.device)
    visible = l_ < seq_lens[:, None, None]
    z = torch.einsum("bhe,blhe->bhl", q, k)
    weights = masked_softmax(z, visible).to(p.cache).to(p.accumulator)
    o = weighted_sum("bhl,blhd->bhd", weights, v, visible)
    return o.to(p.activation)


def attn_o_proj_global(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-4-31B@1.0:layers[*].attn.o_proj, global layers: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 16384], w [5376, 16384] -> y [T, 5376]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)
