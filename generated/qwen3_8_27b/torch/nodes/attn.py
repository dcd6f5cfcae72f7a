"""Nodes of Qwen/Qwen3.8-27B@1.0: attn."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from ..functions import inv_freq, sigmoid
from ..runtime import Precision, masked_softmax, weighted_sum


def attn_qkv_proj_full(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].attn.qkv_proj, full layers: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 5120], w [14336, 5120] -> y [T, 14336]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)


def attn_qk_norm_full(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].attn.qk_norm, full layers: rmsnormOffset

    y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² / 256 + 1e-06) · (1 + w[i])

    x [T, 24, 256], w [256] -> y [T, 24, 256]
    x [T, 4, 256], w [256] -> y [T, 4, 256]
    """
    x, w = p.load(x, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 256 + 1e-06)
    y = n * (1 + w)
    return y.to(p.activation)


@cache
def attn_rope_full_inv_freq(device: torch.device) -> Tensor:
    """invFreq(10000000, 64, 32, i) for i < 32, in float64."""
    i = torch.arange(32, device=device)
    return inv_freq(10000000, 64, 32, i)


def attn_rope_full(x: Tensor, pos: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].attn.rope, full layers: rope

    y[t, h, i] =
        if i < 32 then x[t, h, i] · cos(pos[t] · invFreq(10000000, 64, 32, i)) - x[t, h, i + 32] ·
        sin(pos[t] · invFreq(10000000, 64, 32, i))
        else if i < 64 then x[t, h, i] · cos(pos[t] · invFreq(10000000, 64, 32, i - 32)) + x[t, h, i - 32]
        · sin(pos[t] · invFreq(10000000, 64, 32, i - 32))
        else x[t, h, i]

    x [T, 24, 256], pos [T] -> y [T, 24, 256]
    x [T, 4, 256], pos [T] -> y [T, 4, 256]
    """
    x = x.to(p.accumulator)
    a = pos[:, None, None] * attn_rope_full_inv_freq(x.device)
    cos = torch.cos(a).to(p.accumulator)
    sin = torch.sin(a).to(p.accumulator)
    y0 = x[..., :32] * cos - x[..., 32:64] * sin
    y1 = x[..., 32:64] * cos + x[..., :32] * sin
    y2 = x[..., 64:]
    y = torch.cat((y0, y1, y2), dim=-1)
    return y.to(p.activation)


def attn_core_full_prefill(q: Tensor, k: Tensor, v: Tensor, pos: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].attn.core, full layers: causalGQA

    o[t, h, d] = Σ_l softmax_l(0.0625 · Σ_e q[t, h, e] · k[l, h // 6, e] | l ≤ pos[t]) · v[l, h // 6, d]

    q [T, 24, 256], k [L, 4, 256], v [L, 4, 256], pos [T] -> o [T, 24, 256]
    """
    L = k.shape[0]
    q, k, v = p.load(q, k, v)
    k = k.repeat_interleave(6, dim=1)
    v = v.repeat_interleave(6, dim=1)
    l_ = torch.arange(L, device=q.device)
    visible = l_ <= pos[:, None, None]
    z = 0.0625 * torch.einsum("the,lhe->thl", q, k)
    weights = masked_softmax(z, visible).to(p.cache).to(p.accumulator)
    o = weighted_sum("thl,lhd->thd", weights, v, visible)
    return o.to(p.activation)


def attn_core_full_decode(q: Tensor, k: Tensor, v: Tensor, seq_lens: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].attn.core, full layers: decodeGQA

    o[b, h, d] = Σ_l softmax_l(0.0625 · Σ_e q[b, h, e] · k[b, l, h // 6, e] | l < seq_lens[b]) · v[b, l, h
        // 6, d]

    q [B, 24, 256], k [B, S, 4, 256], v [B, S, 4, 256], seq_lens [B] -> o [B, 24, 256]
    """
    S = k.shape[1]
    q, k, v = p.load(q, k, v)
    k = k.repeat_interleave(6, dim=2)
    v = v.repeat_interleave(6, dim=2)
    l_ = torch.arange(S, device=q.device)
    visible = l_ < seq_lens[:, None, None]
    z = 0.0625 * torch.einsum("bhe,blhe->bhl", q, k)
    weights = masked_softmax(z, visible).to(p.cache).to(p.accumulator)
    o = weighted_sum("bhl,blhd->bhd", weights, v, visible)
    return o.to(p.activation)


def attn_gate_full(o: Tensor, gate: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].attn.gate, full layers: sigmoidGate

    y[t, i] = o[t, i] · sigmoid(gate[t, i])

    o [T, 6144], gate [T, 6144] -> y [T, 6144]
    """
    o, gate = p.load(o, gate)
    y = o * sigmoid(gate)
    return y.to(p.activation)


def attn_o_proj_full(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].attn.o_proj, full layers: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 6144], w [5120, 6144] -> y [T, 5120]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)
