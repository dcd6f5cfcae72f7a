"""Nodes of meta-models/Muse-Glimmer-30B@1.0: attn."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor

from ..functions import inv_freq, sigmoid
from ..runtime import Precision, masked_softmax, weighted_sum


def attn_qkv_proj(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].attn.qkv_proj: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 6656], w [8704, 6656] -> y [T, 8704]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)


def attn_qk_norm(x: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].attn.qk_norm: rmsnormUnit

    y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² / 128 + 1e-05)

    x [T, 32, 128] -> y [T, 32, 128]
    x [T, 2, 128] -> y [T, 2, 128]
    """
    x = x.to(p.accumulator)
    y = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 128 + 1e-05)
    return y.to(p.activation)


@cache
def attn_rope_sliding_inv_freq(device: torch.device) -> Tensor:
    """invFreq(500000, 128, 64, i) for i < 64, in float64."""
    i = torch.arange(64, device=device)
    return inv_freq(500000, 128, 64, i)


def attn_rope_sliding(x: Tensor, pos: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].attn.rope, sliding layers: rope

    y[t, h, i] =
        if i < 64 then x[t, h, i] · cos(pos[t] · invFreq(500000, 128, 64, i)) - x[t, h, i + 64] ·
        sin(pos[t] · invFreq(500000, 128, 64, i))
        else if i < 128 then x[t, h, i] · cos(pos[t] · invFreq(500000, 128, 64, i - 64)) + x[t, h, i - 64]
        · sin(pos[t] · invFreq(500000, 128, 64, i - 64))
        else x[t, h, i]

    x [T, 32, 128], pos [T] -> y [T, 32, 128]
    x [T, 2, 128], pos [T] -> y [T, 2, 128]
    """
    x = x.to(p.accumulator)
    a = pos[:, None, None] * attn_rope_sliding_inv_freq(x.device)
    cos = torch.cos(a).to(p.accumulator)
    sin = torch.sin(a).to(p.accumulator)
    y0 = x[..., :64] * cos - x[..., 64:] * sin
    y1 = x[..., 64:] * cos + x[..., :64] * sin
    y = torch.cat((y0, y1), dim=-1)
    return y.to(p.activation)


def attn_core_sliding_prefill(q: Tensor, k: Tensor, v: Tensor, pos: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].attn.core, sliding layers: slidingGQA

    o[t, h, d] = Σ_l softmax_l(3.87 / √128 · Σ_e q[t, h, e] · k[l, h // 16, e] | pos[t] - 2048 < l ≤
        pos[t]) · v[l, h // 16, d]

    q [T, 32, 128], k [L, 2, 128], v [L, 2, 128], pos [T] -> o [T, 32, 128]
    """
    L = k.shape[0]
    q, k, v = p.load(q, k, v)
    k = k.repeat_interleave(16, dim=1)
    v = v.repeat_interleave(16, dim=1)
    l_ = torch.arange(L, device=q.device)
    visible = (pos[:, None, None] - 2048 < l_) & (l_ <= pos[:, None, None])
    z = 3.87 / math.sqrt(128) * torch.einsum("the,lhe->thl", q, k)
    weights = masked_softmax(z, visible).to(p.cache).to(p.accumulator)
    o = weighted_sum("thl,lhd->thd", weights, v, visible)
    return o.to(p.activation)


def attn_core_sliding_decode(q: Tensor, k: Tensor, v: Tensor, seq_lens: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].attn.core, sliding layers: slidingDecodeGQA

    o[b, h, d] = Σ_l softmax_l(3.87 / √128 · Σ_e q[b, h, e] · k[b, l, h // 16, e] | seq_lens[b] - 1 - 2048
        < l < seq_lens[b]) · v[b, l, h // 16, d]

    q [B, 32, 128], k [B, S, 2, 128], v [B, S, 2, 128], seq_lens [B] -> o [B, 32, 128]
    """
    S = k.shape[1]
    q, k, v = p.load(q, k, v)
    k = k.repeat_interleave(16, dim=2)
    v = v.repeat_interleave(16, dim=2)
    l_ = torch.arange(S, device=q.device)
    visible = (seq_lens[:, None, None] - 2049 < l_) & (l_ < seq_lens[:, None, None])
    z = 3.87 / math.sqrt(128) * torch.einsum("bhe,blhe->bhl", q, k)
    weights = masked_softmax(z, visible).to(p.cache).to(p.accumulator)
    o = weighted_sum("bhl,blhd->bhd", weights, v, visible)
    return o.to(p.activation)


def attn_core_global_prefill(q: Tensor, k: Tensor, v: Tensor, pos: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].attn.core, global layers: causalGQA

    o[t, h, d] = Σ_l softmax_l(3.87 / √128 · Σ_e q[t, h, e] · k[l, h // 16, e] | l ≤ pos[t]) · v[l, h //
        16, d]

    q [T, 32, 128], k [L, 2, 128], v [L, 2, 128], pos [T] -> o [T, 32, 128]
    """
    L = k.shape[0]
    q, k, v = p.load(q, k, v)
    k = k.repeat_interleave(16, dim=1)
    v = v.repeat_interleave(16, dim=1)
    l_ = torch.arange(L, device=q.device)
    visible = l_ <= pos[:, None, None]
    z = 3.87 / math.sqrt(128) * torch.einsum("the,lhe->thl", q, k)
    weights = masked_softmax(z, visible).to(p.cache).to(p.accumulator)
    o = weighted_sum("thl,lhd->thd", weights, v, visible)
    return o.to(p.activation)


def attn_core_global_decode(q: Tensor, k: Tensor, v: Tensor, seq_lens: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].attn.core, global layers: decodeGQA

    o[b, h, d] = Σ_l softmax_l(3.87 / √128 · Σ_e q[b, h, e] · k[b, l, h // 16, e] | l < seq_lens[b]) ·
        v[b, l, h // 16, d]

    q [B, 32, 128], k [B, S, 2, 128], v [B, S, 2, 128], seq_lens [B] -> o [B, 32, 128]
    """
    S = k.shape[1]
    q, k, v = p.load(q, k, v)
    k = k.repeat_interleave(16, dim=2)
    v = v.repeat_interleave(16, dim=2)
    l_ = torch.arange(S, device=q.device)
    visible = l_ < seq_lens[:, None, None]
    z = 3.87 / math.sqrt(128) * torch.einsum("bhe,blhe->bhl", q, k)
    weights = masked_softmax(z, visible).to(p.cache).to(p.accumulator)
    o = weighted_sum("bhl,blhd->bhd", weights, v, visible)
    return o.to(p.activation)


def attn_gate(o: Tensor, gate: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].attn.gate: sigmoidGate

    y[t, i] = o[t, i] · sigmoid(gate[t, i])

    o [T, 4096], gate [T, 4096] -> y [T, 4096]
    """
    o, gate = p.load(o, gate)
    y = o * sigmoid(gate)
    return y.to(p.activation)


def attn_o_proj(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """meta-models/Muse-Glimmer-30B@1.0:layers[*].attn.o_proj: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 4096], w [6656, 4096] -> y [T, 6656]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)
