"""Nodes of google/gemma-3-270m@1.0: attn."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from ..functions import inv_freq
from ..runtime import Precision, masked_softmax, weighted_sum


def attn_qkv_proj(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-3-270m@1.0:layers[*].attn.qkv_proj: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 640], w [1536, 640] -> y [T, 1536]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)


def attn_qk_norm(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-3-270m@1.0:layers[*].attn.qk_norm: rmsnormOffset

    y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² / 256 + 1e-06) · (1 + w[i])

    x [T, 4, 256], w [256] -> y [T, 4, 256]
    x [T, 1, 256], w [256] -> y [T, 1, 256]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 256 + 1e-06)
    y = n * (1 + w)
    return y.to(p.activation)


@cache
def attn_rope_sliding_inv_freq(device: torch.device) -> Tensor:
    """invFreq(10000, 256, 128, i) for i < 128, in float64."""
    i = torch.arange(128, device=device)
    return inv_freq(10000, 256, 128, i)


def attn_rope_sliding(x: Tensor, pos: Tensor, p: Precision) -> Tensor:
    """google/gemma-3-270m@1.0:layers[*].attn.rope, sliding layers: rope

    y[t, h, i] =
        if i < 128 then x[t, h, i] · cos(pos[t] · invFreq(10000, 256, 128, i)) - x[t, h, i + 128] ·
        sin(pos[t] · invFreq(10000, 256, 128, i))
        else if i < 256 then x[t, h, i] · cos(pos[t] · invFreq(10000, 256, 128, i - 128)) + x[t, h, i -
        128] · sin(pos[t] · invFreq(10000, 256, 128, i - 128))
        else x[t, h, i]

    x [T, 4, 256], pos [T] -> y [T, 4, 256]
    x [T, 1, 256], pos [T] -> y [T, 1, 256]
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
    """google/gemma-3-270m@1.0:layers[*].attn.core, sliding layers: slidingGQA

    o[t, h, d] = Σ_l softmax_l(0.0625 · Σ_e q[t, h, e] · k[l, h // 4, e] | pos[t] - 512 < l ≤ pos[t]) ·
        v[l, h // 4, d]

    q [T, 4, 256], k [L, 1, 256], v [L, 1, 256], pos [T] -> o [T, 4, 256]
    """
    L = k.shape[0]
    q, k, v = p.load(q, k, v)
    k = k.repeat_interleave(4, dim=1)
    v = v.repeat_interleave(4, dim=1)
    l_ = torch.arange(L, device=q.device)
    visible = (pos[:, None, None] - 512 < l_) & (l_ <= pos[:, None, None])
    z = 0.0625 * torch.einsum("the,lhe->thl", q, k)
    weights = masked_softmax(z, visible).to(p.cache).to(p.accumulator)
    o = weighted_sum("thl,lhd->thd", weights, v, visible)
    return o.to(p.activation)


def attn_core_sliding_decode(q: Tensor, k: Tensor, v: Tensor, seq_lens: Tensor, p: Precision) -> Tensor:
    """google/gemma-3-270m@1.0:layers[*].attn.core, sliding layers: slidingDecodeGQA

    o[b, h, d] = Σ_l softmax_l(0.0625 · Σ_e q[b, h, e] · k[b, l, h // 4, e] | seq_lens[b] - 1 - 512 < l <
        seq_lens[b]) · v[b, l, h // 4, d]

    q [B, 4, 256], k [B, S, 1, 256], v [B, S, 1, 256], seq_lens [B] -> o [B, 4, 256]
    """
    S = k.shape[1]
    q, k, v = p.load(q, k, v)
    k = k.repeat_interleave(4, dim=2)
    v = v.repeat_interleave(4, dim=2)
    l_ = torch.arange(S, device=q.device)
    visible = (seq_lens[:, None, None] - 513 < l_) & (l_ < seq_lens[:, None, None])
    z = 0.0625 * torch.einsum("bhe,blhe->bhl", q, k)
    weights = masked_softmax(z, visible).to(p.cache).to(p.accumulator)
    o = weighted_sum("bhl,blhd->bhd", weights, v, visible)
    return o.to(p.activation)


@cache
def attn_rope_global_inv_freq(device: torch.device) -> Tensor:
    """invFreq(1000000, 256, 128, i) for i < 128, in float64."""
    i = torch.arange(128, device=device)
    return inv_freq(1000000, 256, 128, i)


def attn_rope_global(x: Tensor, pos: Tensor, p: Precision) -> Tensor:
    """google/gemma-3-270m@1.0:layers[*].attn.rope, global layers: rope

    y[t, h, i] =
        if i < 128 then x[t, h, i] · cos(pos[t] · invFreq(1000000, 256, 128, i)) - x[t, h, i + 128] ·
        sin(pos[t] · invFreq(1000000, 256, 128, i))
        else if i < 256 then x[t, h, i] · cos(pos[t] · invFreq(1000000, 256, 128, i - 128)) + x[t, h, i -
        128] · sin(pos[t] · invFreq(1000000, 256, 128, i - 128))
        else x[t, h, i]

    x [T, 4, 256], pos [T] -> y [T, 4, 256]
    x [T, 1, 256], pos [T] -> y [T, 1, 256]
    """
    x = x.to(p.accumulator)
    a = pos[:, None, None] * attn_rope_global_inv_freq(x.device)
    cos = torch.cos(a).to(p.accumulator)
    sin = torch.sin(a).to(p.accumulator)
    y0 = x[..., :128] * cos - x[..., 128:] * sin
    y1 = x[..., 128:] * cos + x[..., :128] * sin
    y = torch.cat((y0, y1), dim=-1)
    return y.to(p.activation)


def attn_core_global_prefill(q: Tensor, k: Tensor, v: Tensor, pos: Tensor, p: Precision) -> Tensor:
    """google/gemma-3-270m@1.0:layers[*].attn.core, global layers: causalGQA

    o[t, h, d] = Σ_l softmax_l(0.0625 · Σ_e q[t, h, e] · k[l, h // 4, e] | l ≤ pos[t]) · v[l, h // 4, d]

    q [T, 4, 256], k [L, 1, 256], v [L, 1, 256], pos [T] -> o [T, 4, 256]
    """
    L = k.shape[0]
    q, k, v = p.load(q, k, v)
    k = k.repeat_interleave(4, dim=1)
    v = v.repeat_interleave(4, dim=1)
    l_ = torch.arange(L, device=q.device)
    visible = l_ <= pos[:, None, None]
    z = 0.0625 * torch.einsum("the,lhe->thl", q, k)
    weights = masked_softmax(z, visible).to(p.cache).to(p.accumulator)
    o = weighted_sum("thl,lhd->thd", weights, v, visible)
    return o.to(p.activation)


def attn_core_global_decode(q: Tensor, k: Tensor, v: Tensor, seq_lens: Tensor, p: Precision) -> Tensor:
    """google/gemma-3-270m@1.0:layers[*].attn.core, global layers: decodeGQA

    o[b, h, d] = Σ_l softmax_l(0.0625 · Σ_e q[b, h, e] · k[b, l, h // 4, e] | l < seq_lens[b]) · v[b, l, h
        // 4, d]

    q [B, 4, 256], k [B, S, 1, 256], v [B, S, 1, 256], seq_lens [B] -> o [B, 4, 256]
    """
    S = k.shape[1]
    q, k, v = p.load(q, k, v)
    k = k.repeat_interleave(4, dim=2)
    v = v.repeat_interleave(4, dim=2)
    l_ = torch.arange(S, device=q.device)
    visible = l_ < seq_lens[:, None, None]
    z = 0.0625 * torch.einsum("bhe,blhe->bhl", q, k)
    weights = masked_softmax(z, visible).to(p.cache).to(p.accumulator)
    o = weighted_sum("bhl,blhd->bhd", weights, v, visible)
    return o.to(p.activation)


def attn_o_proj(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """google/gemma-3-270m@1.0:layers[*].attn.o_proj: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 1024], w [640, 1024] -> y [T, 640]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)
