"""`gdnStep` as node gdn_core_delta_decode.

    S[s, h, a, b] = alpha[s, h] · (S0[s, h, a, b] - (beta[s, h] · Σ_e S0[s, h, a, e] · k[s, h // 3, e]) · k[s,
        h // 3, b]) + beta[s, h] · v[s, h, a] · k[s, h // 3, b]
    o[s, h, a] = Σ_b (alpha[s, h] · (S0[s, h, a, b] - (beta[s, h] · Σ_e S0[s, h, a, e] · k[s, h // 3, e]) ·
        k[s, h // 3, b]) + beta[s, h] · v[s, h, a] · k[s, h // 3, b]) · q[s, h // 3, b]

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.core
Schedule  row_reduction: every reduction runs over the whole row: Σ over `b`, then Σ over `b`
Tensor    S0 [B, 48, 128, 128], accumulator
Tensor    q [B, 16, 128], activation
Tensor    k [B, 16, 128], activation
Tensor    v [B, 48, 128], activation
Tensor    alpha [B, 48], accumulator
Tensor    beta [B, 48], accumulator
Tensor    S [B, 48, 128, 128], accumulator, result
Tensor    o [B, 48, 128], activation, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit
def gdn_core_delta_decode_kernel(
    S0_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    alpha_ptr,
    beta_ptr,
    S_ptr,
    o_ptr,
    S0_stride_s,
    S0_stride_h,
    S0_stride_a,
    q_stride_s,
    q_stride_d1,
    k_stride_s,
    k_stride_d1,
    v_stride_s,
    v_stride_h,
    alpha_stride_s,
    beta_stride_s,
    S_stride_s,
    S_stride_h,
    S_stride_a,
    o_stride_s,
    o_stride_h,
    ROWS: tl.constexpr,
):
    """One program: ROWS of the rows along `a`."""
    blocks = tl.cdiv(128, ROWS)
    row = tl.program_id(0) // blocks
    h = row % 48
    s = row // 48
    a = (tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS))[:, None]
    a_in = a < 128
    beta = tl.load(beta_ptr + s * beta_stride_s + h).to(tl.float32)
    alpha = tl.load(alpha_ptr + s * alpha_stride_s + h).to(tl.float32)
    v = tl.load(v_ptr + s * v_stride_s + h * v_stride_h + a, mask=a_in, other=0.0).to(tl.float32)
    S0_row = S0_ptr + s * S0_stride_s + h * S0_stride_h + a * S0_stride_a
    k_row = k_ptr + s * k_stride_s + (h // 3) * k_stride_d1
    q_row = q_ptr + s * q_stride_s + (h // 3) * q_stride_d1
    S_row = S_ptr + s * S_stride_s + h * S_stride_h + a * S_stride_a
    b = tl.arange(0, 128)[None, :]
    S0 = tl.load(S0_row + b, mask=a_in, other=0.0).to(tl.float32)
    k = tl.load(k_row + b).to(tl.float32)
    q = tl.load(q_row + b).to(tl.float32)
    r1_values = S0 * k
    r1_raw = tl.sum(r1_values, 1)[:, None]
    r1 = beta * r1_raw
    r2_values = (alpha * (S0 - r1 * k) + beta * v * k) * q
    r2_raw = tl.sum(r2_values, 1)[:, None]
    r2 = r2_raw
    S = alpha * (S0 - r1 * k) + beta * v * k
    tl.store(S_row + b, S.to(S_ptr.dtype.element_ty), mask=a_in)
    tl.store(o_ptr + s * o_stride_s + h * o_stride_h + a, r2.to(o_ptr.dtype.element_ty), mask=a_in)


CONFIGS: Configs = {
    "sm_80": {
        2: (Config(None, 1, 1, {"ROWS": 4}),),
        4: (Config(None, 1, 1, {"ROWS": 4}),),
    },
    "sm_90": {
        2: (Config(None, 1, 1, {"ROWS": 4}),),
        4: (Config(None, 1, 1, {"ROWS": 4}),),
    },
    "sm_100": {
        2: (Config(None, 1, 1, {"ROWS": 4}),),
        4: (Config(None, 1, 1, {"ROWS": 4}),),
    },
}

OPERANDS = (
    Operand("S0", ("B", 48, 128, 128), accumulator=True),
    Operand("q", ("B", 16, 128)),
    Operand("k", ("B", 16, 128), like="q"),
    Operand("v", ("B", 48, 128), like="q"),
    Operand("alpha", ("B", 48), accumulator=True),
    Operand("beta", ("B", 48), accumulator=True),
    Operand("S", ("B", 48, 128, 128), output=True, accumulator=True),
    Operand("o", ("B", 48, 128), like="q", output=True),
)


def gdn_core_delta_decode(
    S0: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    alpha: torch.Tensor,
    beta: torch.Tensor,
    *,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Launches `gdnStep` on the current stream of `q`'s device.

        S[s, h, a, b] = alpha[s, h] · (S0[s, h, a, b] - (beta[s, h] · Σ_e S0[s, h, a, e] · k[s, h // 3, e]) ·
            k[s, h // 3, b]) + beta[s, h] · v[s, h, a] · k[s, h // 3, b]
        o[s, h, a] = Σ_b (alpha[s, h] · (S0[s, h, a, b] - (beta[s, h] · Σ_e S0[s, h, a, e] · k[s, h // 3, e])
            · k[s, h // 3, b]) + beta[s, h] · v[s, h, a] · k[s, h // 3, b]) · q[s, h // 3, b]

    S0: [B, 48, 128, 128], accumulator.
    q: [B, 16, 128], activation.
    k: [B, 16, 128], activation.
    v: [B, 48, 128], activation.
    alpha: [B, 48], accumulator.
    beta: [B, 48], accumulator.
    Returns S [B, 48, 128, 128], o [B, 48, 128]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (S, o) = bind(OPERANDS, (S0, q, k, v, alpha, beta), (None, None) if out is None else out)
    B = sizes["B"]
    if S.numel() == 0:
        return S, o
    config = pick(CONFIGS, q, B * 48 * 128)
    grid = (B * 48 * triton.cdiv(128, config.tiles["ROWS"]),)
    with on(q.device):
        gdn_core_delta_decode_kernel[grid](
            S0,
            q,
            k,
            v,
            alpha,
            beta,
            S,
            o,
            S0.stride(0),
            S0.stride(1),
            S0.stride(2),
            q.stride(0),
            q.stride(1),
            k.stride(0),
            k.stride(1),
            v.stride(0),
            v.stride(1),
            alpha.stride(0),
            beta.stride(0),
            S.stride(0),
            S.stride(1),
            S.stride(2),
            o.stride(0),
            o.stride(1),
            **config.options(),
        )
    return S, o
