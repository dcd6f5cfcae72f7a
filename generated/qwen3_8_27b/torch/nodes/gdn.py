"""Nodes of Qwen/Qwen3.8-27B@1.0: gdn."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..functions import sigmoid, silu, softplus
from ..runtime import Precision


def gdn_in_proj_delta(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].gdn.in_proj, delta layers: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 5120], w [16480, 5120] -> y [T, 16480]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)


def gdn_conv_delta_prefill(c: Tensor, x: Tensor, w: Tensor, p: Precision) -> tuple[Tensor, Tensor]:
    """Qwen/Qwen3.8-27B@1.0:layers[*].gdn.conv, delta layers: causalConvSiluFrom

    c2[j, i] = if T + j < 3 then c[T + j, i] else x[T + j - 3, i]
    y[t, i] = silu(Σ_j w[i, j] · (if t + j < 3 then c[t + j, i] else x[t + j - 3, i]))

    c [3, 10240], x [T, 10240], w [10240, 4] -> c2 [3, 10240], y [T, 10240]
    """
    T = x.shape[0]
    c, x, w = p.load(c, x, w)
    x = x if len(x) else x.new_zeros(1, *x.shape[1:])
    j = torch.arange(3, device=c.device)
    c2 = torch.where(T + j[:, None] < 3, c[(T + j).clamp(0, 2)], x[(T + j - 3).clamp(0, T - 1)])
    t = torch.arange(T, device=c.device)
    j_2 = torch.arange(4, device=c.device)
    part = x[(t[:, None] + j_2 - 3).clamp(0, T - 1)].permute(0, 2, 1)
    part_2 = torch.where(t[:, None, None] + j_2 < 3, c[(t[:, None] + j_2).clamp(0, 2)].permute(0, 2, 1), part)
    y = silu(torch.einsum("ij,tij->ti", w, part_2))
    return c2.to(p.cache), y.to(p.activation)


def gdn_conv_delta_decode(c: Tensor, x: Tensor, w: Tensor, p: Precision) -> tuple[Tensor, Tensor]:
    """Qwen/Qwen3.8-27B@1.0:layers[*].gdn.conv, delta layers: causalConvSiluStep

    c2[b, j, i] = if j + 1 < 3 then c[b, j + 1, i] else x[b, i]
    y[b, i] = silu(Σ_j w[i, j] · (if j < 3 then c[b, j, i] else x[b, i]))

    c [B, 3, 10240], x [B, 10240], w [10240, 4] -> c2 [B, 3, 10240], y [B, 10240]
    """
    B = c.shape[0]
    c, x, w = p.load(c, x, w)
    c20 = c[:, 1:]
    c21 = x[:, None].expand(B, 1, 10240)
    c2 = torch.cat((c20, c21), dim=1)
    j = torch.arange(4, device=c.device)
    part = torch.where(j < 3, c[:, j.clamp(0, 2)].permute(0, 2, 1), x[..., None])
    y = silu(torch.einsum("ij,bij->bi", w, part))
    return c2.to(p.cache), y.to(p.activation)


def gdn_qk_norm_delta(x: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].gdn.qk_norm, delta layers: l2norm

    y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² + 1e-06)

    x [T, 16, 128] -> y [T, 16, 128]
    """
    x = x.to(p.accumulator)
    y = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) + 1e-06)
    return y.to(p.activation)


def gdn_q_scale_delta(x: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].gdn.q_scale, delta layers: scaled

    y[t, h, i] = 1 / √128 · x[t, h, i]

    x [T, 16, 128] -> y [T, 16, 128]
    """
    x = x.to(p.accumulator)
    y = 1 / math.sqrt(128) * x
    return y.to(p.activation)


def gdn_gates_delta(
    a: Tensor, b: Tensor, A_log: Tensor, dt_bias: Tensor, p: Precision
) -> tuple[Tensor, Tensor]:
    """Qwen/Qwen3.8-27B@1.0:layers[*].gdn.gates, delta layers: gdnGates

    alpha[t, i] = exp(-exp(A_log[i]) · softplus(a[t, i] + dt_bias[i]))
    beta[t, i] = sigmoid(b[t, i])

    a [T, 48], b [T, 48], A_log [48], dt_bias [48] -> alpha [T, 48], beta [T, 48]
    """
    a, b, A_log, dt_bias = p.load(a, b, A_log, dt_bias)
    alpha = torch.exp(-torch.exp(A_log) * softplus(a + dt_bias))
    beta = sigmoid(b)
    return alpha.to(p.accumulator), beta.to(p.accumulator)


def gdn_core_delta_prefill(
    S0: Tensor, q: Tensor, k: Tensor, v: Tensor, alpha: Tensor, beta: Tensor, p: Precision
) -> tuple[Tensor, Tensor]:
    """Qwen/Qwen3.8-27B@1.0:layers[*].gdn.core, delta layers: gatedDeltaRule

    R[t < T, h < 48, a < 128, b < 128] from S0[h, a, b] = alpha[t, h] · (R[t - 1, h, a, b] - (beta[t, h] ·
        Σ_c R[t - 1, h, a, c] · k[t, h // 3, c]) · k[t, h // 3, b]) + beta[t, h] · v[t, h, a] · k[t, h //
        3, b]
    S[h, a, b] = R[T - 1, h, a, b]
    o[t, h, a] = Σ_b R[t, h, a, b] · q[t, h // 3, b]

    S0 [48, 128, 128], q [T, 16, 128], k [T, 16, 128], v [T, 48, 128], alpha [T, 48], beta [T, 48] -> S
        [48, 128, 128], o [T, 48, 128]
    """
    T = q.shape[0]
    S0, q, k, v, alpha, beta = p.load(S0, q, k, v, alpha, beta)
    q = q.repeat_interleave(3, dim=1)
    k = k.repeat_interleave(3, dim=1)
    o = torch.empty(T, 48, 128, dtype=p.accumulator, device=S0.device)
    R = S0
    for t in range(T):
        part = beta[t, :, None, None] * torch.einsum("hac,hc->ha", R, k[t])[..., None] * k[t, :, None]
        part_2 = beta[t, :, None, None] * v[t, :, :, None] * k[t, :, None]
        R = alpha[t, :, None, None] * (R - part) + part_2
        o[t] = torch.einsum("hab,hb->ha", R, q[t])
    return R.to(p.accumulator), o.to(p.activation)


def gdn_core_delta_decode(
    S0: Tensor, q: Tensor, k: Tensor, v: Tensor, alpha: Tensor, beta: Tensor, p: Precision
) -> tuple[Tensor, Tensor]:
    """Qwen/Qwen3.8-27B@1.0:layers[*].gdn.core, delta layers: gdnStep

    S[s, h, a, b] = alpha[s, h] · (S0[s, h, a, b] - (beta[s, h] · Σ_e S0[s, h, a, e] · k[s, h // 3, e]) ·
        k[s, h // 3, b]) + beta[s, h] · v[s, h, a] · k[s, h // 3, b]
    o[s, h, a] = Σ_b (alpha[s, h] · (S0[s, h, a, b] - (beta[s, h] · Σ_e S0[s, h, a, e] · k[s, h // 3, e])
        · k[s, h // 3, b]) + beta[s, h] · v[s, h, a] · k[s, h // 3, b]) · q[s, h // 3, b]

    S0 [B, 48, 128, 128], q [B, 16, 128], k [B, 16, 128], v [B, 48, 128], alpha [B, 48], beta [B, 48] -> S
        [B, 48, 128, 128], o [B, 48, 128]
    """
    S0, q, k, v, alpha, beta = p.load(S0, q, k, v, alpha, beta)
    q = q.repeat_interleave(3, dim=1)
    k = k.repeat_interleave(3, dim=1)
    part = beta[..., None, None] * torch.einsum("shae,she->sha", S0, k)[..., None] * k[:, :, None]
    part_2 = beta[..., None, None] * v[..., None] * k[:, :, None]
    R = alpha[..., None, None] * (S0 - part) + part_2
    o = torch.einsum("shab,shb->sha", R, q)
    return R.to(p.accumulator), o.to(p.activation)


def gdn_norm_delta(x: Tensor, z: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].gdn.norm, delta layers: rmsnormGated

    y[t, h, i] = w[i] · (x[t, h, i] / √(Σ_j x[t, h, j]² / 128 + 1e-06)) · silu(z[t, h, i])

    x [T, 48, 128], z [T, 48, 128], w [128] -> y [T, 48, 128]
    """
    x, z, w = p.load(x, z, w)
    n = x / torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) / 128 + 1e-06)
    y = w * n * silu(z)
    return y.to(p.activation)


def gdn_out_proj_delta(x: Tensor, w: Tensor, p: Precision) -> Tensor:
    """Qwen/Qwen3.8-27B@1.0:layers[*].gdn.out_proj, delta layers: linear

    y[t, n] = Σ_k x[t, k] · w[n, k]

    x [T, 6144], w [5120, 6144] -> y [T, 5120]
    """
    x, w = p.load(x, w)
    y = torch.einsum("tk,nk->tn", x, w)
    return y.to(p.activation)
