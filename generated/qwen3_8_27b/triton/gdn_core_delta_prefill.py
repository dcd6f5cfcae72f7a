"""`gatedDeltaRule` as node gdn_core_delta_prefill.

    R[t < T, h < 48, a < 128, b < 128] from S0[h, a, b] = alpha[t, h] · (R[t - 1, h, a, b] - (beta[t, h] · Σ_c
        R[t - 1, h, a, c] · k[t, h // 3, c]) · k[t, h // 3, b]) + beta[t, h] · v[t, h, a] · k[t, h // 3, b]
    S[h, a, b] = R[T - 1, h, a, b]
    o[t, h, a] = Σ_b R[t, h, a, b] · q[t, h // 3, b]

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.core
Schedule  recurrence: a state that is linear in the one before, with a transition of rank one: sums over `b`,
          chunks of steps
Tensor    S0 [48, 128, 128], accumulator
Tensor    q [T, 16, 128], activation
Tensor    k [T, 16, 128], activation
Tensor    v [T, 48, 128], activation, 64-bit offsets
Tensor    alpha [T, 48], accumulator
Tensor    beta [T, 48], accumulator
Tensor    S [48, 128, 128], accumulator, result
Tensor    o [T, 48, 128], activation, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit
def exact_dot(a, b, total, CUT_K: tl.constexpr):
    """total + a·b to the accuracy of float32.

    A factor in float32 is cut into three of 8 bits each, which hold its 24, for tensor cores; products below 2**-23 are
    left out. Two of them are cut for sums of CUT_K or more, and multiplied as they are for shorter ones.
    """
    if a.dtype == b.dtype and (a.dtype != tl.float32 or a.shape[1] < CUT_K):
        return tl.dot(a, b, total, input_precision="ieee")
    a1 = a.to(tl.bfloat16)
    b1 = b.to(tl.bfloat16)
    total = tl.dot(a1, b1, total)
    small = tl.zeros(total.shape, tl.float32)
    if a.dtype != tl.bfloat16:
        a_rest = a.to(tl.float32) - a1.to(tl.float32)
        a2 = a_rest.to(tl.bfloat16)
        small = tl.dot(a2, b1, small)
        small = tl.dot((a_rest - a2.to(tl.float32)).to(tl.bfloat16), b1, small)
    if b.dtype != tl.bfloat16:
        b_rest = b.to(tl.float32) - b1.to(tl.float32)
        b2 = b_rest.to(tl.bfloat16)
        small = tl.dot(a1, b2, small)
        small = tl.dot(a1, (b_rest - b2.to(tl.float32)).to(tl.bfloat16), small)
        if a.dtype != tl.bfloat16:
            small = tl.dot(a2, b2, small)
    return total + small


@triton.jit
def sum_of_steps(a, b, total, CUT_K: tl.constexpr):
    """total + a·b, where b[s, t] is 0 for t < s. A column of `a` that is NaN or infinite reaches those from it on."""
    lost = tl.cumsum(0.0 * a, 1)
    return exact_dot(tl.where(lost == 0.0, a, 0.0), b, total + lost, CUT_K)


@triton.jit(do_not_specialize=["T"])
def gdn_core_delta_prefill_kernel(
    S0_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    alpha_ptr,
    beta_ptr,
    S_ptr,
    o_ptr,
    T,
    S0_stride_h,
    S0_stride_a,
    q_stride_t,
    q_stride_d1,
    k_stride_t,
    k_stride_d1,
    v_stride_t,
    v_stride_h,
    alpha_stride_t,
    beta_stride_t,
    S_stride_h,
    S_stride_a,
    o_stride_t,
    o_stride_h,
    CHUNK: tl.constexpr,
    BLOCK_V: tl.constexpr,
    CUT_K: tl.constexpr,
):
    """One program: BLOCK_V values of one head's state, through all steps, CHUNK of them at a time.

    Decays are multiplied up step by step and never divided, so one that is 0 forgets and nothing else.
    """
    h = tl.program_id(0)
    a = (tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V))[:, None]
    a_in = a < 128 if 128 % BLOCK_V != 0 else tl.full((BLOCK_V, 1), True, tl.int1)
    alpha_row = alpha_ptr + h
    k_row = k_ptr + (h // 3) * k_stride_d1
    beta_row = beta_ptr + h
    v_row = v_ptr + h.to(tl.int64) * v_stride_h
    q_row = q_ptr + (h // 3) * q_stride_d1
    S0_row = S0_ptr + h * S0_stride_h
    o_row = o_ptr + h * o_stride_h
    S_row = S_ptr + h * S_stride_h
    b = tl.arange(0, 32)
    S0 = tl.load(S0_row + a * S0_stride_a + b[None, :], mask=a_in, other=0.0).to(tl.float32)
    state = S0
    state_0 = state + tl.zeros((BLOCK_V, 32), tl.float32)
    b = 32 + tl.arange(0, 32)
    S0 = tl.load(S0_row + a * S0_stride_a + b[None, :], mask=a_in, other=0.0).to(tl.float32)
    state = S0
    state_1 = state + tl.zeros((BLOCK_V, 32), tl.float32)
    b = 64 + tl.arange(0, 32)
    S0 = tl.load(S0_row + a * S0_stride_a + b[None, :], mask=a_in, other=0.0).to(tl.float32)
    state = S0
    state_2 = state + tl.zeros((BLOCK_V, 32), tl.float32)
    b = 96 + tl.arange(0, 32)
    S0 = tl.load(S0_row + a * S0_stride_a + b[None, :], mask=a_in, other=0.0).to(tl.float32)
    state = S0
    state_3 = state + tl.zeros((BLOCK_V, 32), tl.float32)
    step = tl.arange(0, CHUNK)
    for start in range(0, T, CHUNK):
        t = start + step
        t_in = t < T
        alpha = tl.load(alpha_row + t * alpha_stride_t, mask=t_in, other=0.0).to(tl.float32)
        beta = tl.load(beta_row + t * beta_stride_t, mask=t_in, other=0.0).to(tl.float32)
        v = tl.load(
            v_row + t[None, :].to(tl.int64) * v_stride_t + a,
            mask=t_in[None, :] & a_in,
            other=0.0,
        ).to(tl.float32)
        decay = tl.where(t_in, alpha, 1.0)
        rate = tl.where(t_in, beta, 0.0)
        added = beta[None, :] * v
        added = tl.where(t_in[None, :] & a_in, added, 0.0)
        # since[t]: all decays up to t; fade[s, t]: those after s.
        since = tl.cumprod(decay, 0)[None, :]
        later = step[None, :] > step[:, None]
        fade = tl.cumprod(tl.where(later, decay[None, :], 1.0), 1)
        reached = step[None, :] >= step[:, None]
        finds = tl.zeros((BLOCK_V, CHUNK), tl.float32)
        meets = tl.zeros((CHUNK, CHUNK), tl.float32)
        acc = tl.zeros((BLOCK_V, CHUNK), tl.float32)
        meets_query = tl.zeros((CHUNK, CHUNK), tl.float32)
        b = tl.arange(0, 32)
        k = tl.load(k_row + t[:, None] * k_stride_t + b[None, :], mask=t_in[:, None], other=0.0)
        finds = exact_dot(state_0, tl.trans(k), finds, CUT_K)
        meets = exact_dot(k, tl.trans(k), meets, CUT_K)
        q = tl.load(q_row + t[:, None] * q_stride_t + b[None, :], mask=t_in[:, None], other=0.0)
        acc = exact_dot(state_0, tl.trans(q), acc, CUT_K)
        meets_query = exact_dot(k, tl.trans(q), meets_query, CUT_K)
        b = 32 + tl.arange(0, 32)
        k = tl.load(k_row + t[:, None] * k_stride_t + b[None, :], mask=t_in[:, None], other=0.0)
        finds = exact_dot(state_1, tl.trans(k), finds, CUT_K)
        meets = exact_dot(k, tl.trans(k), meets, CUT_K)
        q = tl.load(q_row + t[:, None] * q_stride_t + b[None, :], mask=t_in[:, None], other=0.0)
        acc = exact_dot(state_1, tl.trans(q), acc, CUT_K)
        meets_query = exact_dot(k, tl.trans(q), meets_query, CUT_K)
        b = 64 + tl.arange(0, 32)
        k = tl.load(k_row + t[:, None] * k_stride_t + b[None, :], mask=t_in[:, None], other=0.0)
        finds = exact_dot(state_2, tl.trans(k), finds, CUT_K)
        meets = exact_dot(k, tl.trans(k), meets, CUT_K)
        q = tl.load(q_row + t[:, None] * q_stride_t + b[None, :], mask=t_in[:, None], other=0.0)
        acc = exact_dot(state_2, tl.trans(q), acc, CUT_K)
        meets_query = exact_dot(k, tl.trans(q), meets_query, CUT_K)
        b = 96 + tl.arange(0, 32)
        k = tl.load(k_row + t[:, None] * k_stride_t + b[None, :], mask=t_in[:, None], other=0.0)
        finds = exact_dot(state_3, tl.trans(k), finds, CUT_K)
        meets = exact_dot(k, tl.trans(k), meets, CUT_K)
        q = tl.load(q_row + t[:, None] * q_stride_t + b[None, :], mask=t_in[:, None], other=0.0)
        acc = exact_dot(state_3, tl.trans(q), acc, CUT_K)
        meets_query = exact_dot(k, tl.trans(q), meets_query, CUT_K)
        # What each step finds in the state before it, decayed: a triangular system, solved from the first step on.
        meets = tl.where(later, fade * meets, 0.0)
        finds = sum_of_steps(added, meets, since * finds, CUT_K)
        pull = meets * rate[:, None]
        for pivot in range(CHUNK - 1):
            solved = tl.sum(tl.where((step == pivot)[None, :], finds, 0.0), 1)
            pulled = solved[:, None] * tl.sum(tl.where((step == pivot)[:, None], pull, 0.0), 0)[None, :]
            finds -= tl.where((step > pivot)[None, :], pulled, 0.0)
        gone = rate[None, :] * finds
        added -= gone
        meets_query = tl.where(reached, fade * meets_query, 0.0)
        acc = sum_of_steps(added, meets_query, since * acc, CUT_K)
        o = acc
        tl.store(o_row + t[None, :] * o_stride_t + a, o.to(o_ptr.dtype.element_ty), mask=t_in[None, :] & a_in)
        left = tl.sum(tl.where((step == CHUNK - 1)[None, :], fade, 0.0), 1)[None, :]
        faded = tl.sum(tl.where((step == CHUNK - 1)[None, :], since, 0.0), 1)[:, None]
        added *= left
        b = tl.arange(0, 32)
        k = tl.load(k_row + t[:, None] * k_stride_t + b[None, :], mask=t_in[:, None], other=0.0)
        state_0 = exact_dot(added, k, state_0 * faded, CUT_K)
        b = 32 + tl.arange(0, 32)
        k = tl.load(k_row + t[:, None] * k_stride_t + b[None, :], mask=t_in[:, None], other=0.0)
        state_1 = exact_dot(added, k, state_1 * faded, CUT_K)
        b = 64 + tl.arange(0, 32)
        k = tl.load(k_row + t[:, None] * k_stride_t + b[None, :], mask=t_in[:, None], other=0.0)
        state_2 = exact_dot(added, k, state_2 * faded, CUT_K)
        b = 96 + tl.arange(0, 32)
        k = tl.load(k_row + t[:, None] * k_stride_t + b[None, :], mask=t_in[:, None], other=0.0)
        state_3 = exact_dot(added, k, state_3 * faded, CUT_K)
    b = tl.arange(0, 32)
    tl.store(S_row + a * S_stride_a + b[None, :], state_0.to(S_ptr.dtype.element_ty), mask=a_in)
    b = 32 + tl.arange(0, 32)
    tl.store(S_row + a * S_stride_a + b[None, :], state_1.to(S_ptr.dtype.element_ty), mask=a_in)
    b = 64 + tl.arange(0, 32)
    tl.store(S_row + a * S_stride_a + b[None, :], state_2.to(S_ptr.dtype.element_ty), mask=a_in)
    b = 96 + tl.arange(0, 32)
    tl.store(S_row + a * S_stride_a + b[None, :], state_3.to(S_ptr.dtype.element_ty), mask=a_in)


CONFIGS: Configs = {
    "sm_80": {
        2: (Config(None, 4, 1, {"CHUNK": 16, "BLOCK_V": 16, "CUT_K": 32}),),
        4: (Config(None, 8, 1, {"CHUNK": 16, "BLOCK_V": 16, "CUT_K": 16}),),
    },
    "sm_90": {
        2: (Config(None, 4, 1, {"CHUNK": 16, "BLOCK_V": 16, "CUT_K": 32}),),
        4: (Config(None, 8, 1, {"CHUNK": 16, "BLOCK_V": 16, "CUT_K": 64}),),
    },
    "sm_100": {
        2: (Config(None, 4, 1, {"CHUNK": 16, "BLOCK_V": 16, "CUT_K": 32}),),
        4: (Config(None, 8, 1, {"CHUNK": 16, "BLOCK_V": 16, "CUT_K": 64}),),
    },
}

OPERANDS = (
    Operand("S0", (48, 128, 128), accumulator=True),
    Operand("q", ("T", 16, 128)),
    Operand("k", ("T", 16, 128), like="q"),
    Operand("v", ("T", 48, 128), like="q", wide=True),
    Operand("alpha", ("T", 48), accumulator=True),
    Operand("beta", ("T", 48), accumulator=True),
    Operand("S", (48, 128, 128), output=True, accumulator=True),
    Operand("o", ("T", 48, 128), like="q", output=True),
)


def gdn_core_delta_prefill(
    S0: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    alpha: torch.Tensor,
    beta: torch.Tensor,
    *,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Launches `gatedDeltaRule` on the current stream of `q`'s device.

        R[t < T, h < 48, a < 128, b < 128] from S0[h, a, b] = alpha[t, h] · (R[t - 1, h, a, b] - (beta[t, h] ·
            Σ_c R[t - 1, h, a, c] · k[t, h // 3, c]) · k[t, h // 3, b]) + beta[t, h] · v[t, h, a] · k[t, h //
            3, b]
        S[h, a, b] = R[T - 1, h, a, b]
        o[t, h, a] = Σ_b R[t, h, a, b] · q[t, h // 3, b]

    S0: [48, 128, 128], accumulator.
    q: [T, 16, 128], activation.
    k: [T, 16, 128], activation.
    v: [T, 48, 128], activation.
    alpha: [T, 48], accumulator.
    beta: [T, 48], accumulator.
    Returns S [48, 128, 128], o [T, 48, 128]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (S, o) = bind(OPERANDS, (S0, q, k, v, alpha, beta), (None, None) if out is None else out)
    T = sizes["T"]
    if S.numel() == 0:
        return S, o
    config = pick(CONFIGS, q, T)
    grid = (48, triton.cdiv(128, config.tiles["BLOCK_V"]))
    with on(q.device):
        gdn_core_delta_prefill_kernel[grid](
            S0,
            q,
            k,
            v,
            alpha,
            beta,
            S,
            o,
            T,
            S0.stride(0),
            S0.stride(1),
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
            o.stride(0),
            o.stride(1),
            **config.options(),
        )
    return S, o
