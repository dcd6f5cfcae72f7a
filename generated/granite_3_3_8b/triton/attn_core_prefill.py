"""`causalGQA` as node attn_core_prefill.

    o[t, h, d] = Σ_l softmax_l(0.0078125 · Σ_e q[t, h, e] · k[l, h // 4, e] | l ≤ pos[t]) · v[l, h // 4, d]

Spec Key  ibm-granite/granite-3.3-8b-instruct@1.0:layers[*].attn.core
Phase     prefill
Schedule  attention_prefill: softmax over `l` times values; rows share the keys (prefill); 4 query heads a KV
          head
Tensor    q [T, 32, 128], activation
Tensor    k [L, 8, 128], cache
Tensor    v [L, 8, 128], cache
Tensor    pos [T], int32 or int64
Tensor    o [T, 32, 128], activation, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit
def attn_core_prefill_kernel_by_key(
    first_row,
    q_ptr,
    k_ptr,
    v_ptr,
    pos_ptr,
    o_ptr,
    T,
    L,
    q_stride_t: tl.constexpr,
    q_stride_h: tl.constexpr,
    k_stride_l: tl.constexpr,
    k_stride_kv_head: tl.constexpr,
    v_stride_l: tl.constexpr,
    v_stride_kv_head: tl.constexpr,
    o_stride_t: tl.constexpr,
    o_stride_h: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """16 rows, one key after the other: what a row does not see takes no part, be it NaN or infinite."""
    t = (first_row + tl.arange(0, 16))[:, None]
    t_in = t < T
    kv_head = tl.program_id(1) // 4
    h = kv_head * 4 + tl.program_id(1) % 4
    d = (tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D))[None, :]
    d_in = d < 128 if 128 % BLOCK_D != 0 else tl.full((1, BLOCK_D), True, tl.int1)
    pos = tl.load(pos_ptr + t, mask=t_in, other=0)
    pos = tl.minimum(tl.maximum(pos, -1610612736), 1610612736).to(tl.int32)
    first = 0
    last = tl.max(tl.where(t_in, tl.minimum(pos + 1, L), 0))
    q_row = q_ptr + t * q_stride_t + h * q_stride_h
    k_row = k_ptr + kv_head * k_stride_kv_head
    v_row = v_ptr + kv_head * v_stride_kv_head
    top = tl.full((16,), float("-inf"), tl.float32)
    total = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, BLOCK_D), tl.float32)
    for start in range(first, last):
        dot = tl.zeros((16,), tl.float32)
        for first_e in range(0, 128, 16):
            e = first_e + tl.arange(0, 16)
            e_in = e < 128
            q = tl.load(q_row + e[None, :], mask=t_in & e_in[None, :], other=0.0).to(tl.float32)
            k = tl.load(k_row + start * k_stride_l + e[None, :], mask=e_in[None, :], other=0.0).to(tl.float32)
            dot += tl.sum(q * k, 1)
        dot = dot[:, None]
        score = 0.0078125 * dot
        seen = (start < last) & (start <= pos)
        score = tl.where(score == float("-inf"), -3.4028234663852886e38, score)
        score = tl.where(seen, score, float("-inf"))
        score = tl.sum(score, 1)
        largest = tl.maximum(top, score)
        base = tl.where(largest == float("-inf"), 0.0, largest)
        weight = tl.exp(score - base)
        fade = tl.exp(top - base)
        total = total * fade + weight
        top = largest
        v = tl.load(v_row + start * v_stride_l + d, mask=d_in, other=0.0).to(tl.float32)
        share = weight.to(v_ptr.dtype.element_ty).to(tl.float32)[:, None] * v
        acc = acc * fade[:, None] + tl.where(seen, share, 0.0)
    divisor = tl.where(top == -3.4028234663852886e38, float("nan"), tl.where(total == 0.0, 1.0, total))
    acc = acc / divisor[:, None]
    o_row = o_ptr + t * o_stride_t + h * o_stride_h
    tl.store(o_row + d, acc.to(o_ptr.dtype.element_ty), mask=t_in & d_in)


@triton.jit(do_not_specialize=["T", "L"])
def attn_core_prefill_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    pos_ptr,
    o_ptr,
    T,
    L,
    q_stride_t: tl.constexpr,
    q_stride_h: tl.constexpr,
    k_stride_l: tl.constexpr,
    k_stride_kv_head: tl.constexpr,
    v_stride_l: tl.constexpr,
    v_stride_kv_head: tl.constexpr,
    o_stride_t: tl.constexpr,
    o_stride_h: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_L: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One program: BLOCK_T rows of one query head and BLOCK_D columns of its values.

    Keys come BLOCK_L at a time, from the first that one of the rows sees to the last.
    """
    t = (tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T))[:, None]
    t_in = t < T
    kv_head = tl.program_id(1) // 4
    h = kv_head * 4 + tl.program_id(1) % 4
    d = (tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D))[None, :]
    d_in = d < 128 if 128 % BLOCK_D != 0 else tl.full((1, BLOCK_D), True, tl.int1)
    lane = tl.arange(0, BLOCK_L)
    pos = tl.load(pos_ptr + t, mask=t_in, other=0)
    pos = tl.minimum(tl.maximum(pos, -1610612736), 1610612736).to(tl.int32)
    first = 0
    last = tl.max(tl.where(t_in, tl.minimum(pos + 1, L), 0))
    q_row = q_ptr + t * q_stride_t + h * q_stride_h
    k_row = k_ptr + kv_head * k_stride_kv_head
    v_row = v_ptr + kv_head * v_stride_kv_head
    if BLOCK_E >= 128:
        e = tl.arange(0, BLOCK_E)
        e_in = e < 128 if 128 % BLOCK_E != 0 else tl.full((BLOCK_E,), True, tl.int1)
        q = tl.load(q_row + e[None, :], mask=t_in & e_in[None, :], other=0.0)
    top = tl.full((BLOCK_T,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_T,), tl.float32)
    acc = tl.zeros((BLOCK_T, BLOCK_D), tl.float32)
    for start in range(first, last, BLOCK_L):
        l = start + lane
        l_in = l < last
        dot = tl.zeros((BLOCK_T, BLOCK_L), tl.float32)
        for first_e in tl.static_range(0, 128, BLOCK_E):
            e = first_e + tl.arange(0, BLOCK_E)
            e_in = e < 128 if 128 % BLOCK_E != 0 else tl.full((BLOCK_E,), True, tl.int1)
            if BLOCK_E < 128:
                q = tl.load(q_row + e[None, :], mask=t_in & e_in[None, :], other=0.0)
            k = tl.load(
                k_row + start * k_stride_l + lane[None, :] * k_stride_l + e[:, None],
                mask=l_in[None, :] & e_in[:, None],
                other=0.0,
            )
            dot = tl.dot(q, k, dot, input_precision="ieee")
        score = 0.0078125 * dot
        seen = l_in[None, :] & (l[None, :] <= pos)
        score = tl.where(score == float("-inf"), -3.4028234663852886e38, score)
        score = tl.where(seen, score, float("-inf"))
        largest = tl.maximum(top, tl.max(score, 1))
        base = tl.where(largest == float("-inf"), 0.0, largest)
        weight = tl.exp(score - base[:, None])
        fade = tl.exp(top - base)
        total = total * fade + tl.sum(weight, 1)
        top = largest
        v = tl.load(
            v_row + start * v_stride_l + lane[:, None] * v_stride_l + d,
            mask=l_in[:, None] & d_in,
            other=0.0,
        )
        acc = tl.dot(weight.to(v.dtype), v, acc * fade[:, None], input_precision="ieee")
    if tl.abs(tl.sum(acc)) < float("inf"):
        divisor = tl.where(top == -3.4028234663852886e38, float("nan"), tl.where(total == 0.0, 1.0, total))
        acc = acc / divisor[:, None]
        o_row = o_ptr + t * o_stride_t + h * o_stride_h
        tl.store(o_row + d, acc.to(o_ptr.dtype.element_ty), mask=t_in & d_in)
    else:
        # A value that only some of the rows see is NaN or infinite, and so is 0 times that in the others.
        for first_row in range(tl.program_id(0) * BLOCK_T, tl.program_id(0) * BLOCK_T + BLOCK_T, 16):
            attn_core_prefill_kernel_by_key(
                first_row,
                q_ptr,
                k_ptr,
                v_ptr,
                pos_ptr,
                o_ptr,
                T,
                L,
                q_stride_t,
                q_stride_h,
                k_stride_l,
                k_stride_kv_head,
                v_stride_l,
                v_stride_kv_head,
                o_stride_t,
                o_stride_h,
                BLOCK_D,
            )


CONFIGS: Configs = {
    "sm_80": {
        2: (Config(None, 8, 2, {"BLOCK_T": 64, "BLOCK_L": 64, "BLOCK_E": 128, "BLOCK_D": 128}),),
        4: (Config(None, 4, 2, {"BLOCK_T": 32, "BLOCK_L": 32, "BLOCK_E": 32, "BLOCK_D": 128}),),
    },
    "sm_90": {
        2: (Config(None, 8, 2, {"BLOCK_T": 128, "BLOCK_L": 64, "BLOCK_E": 128, "BLOCK_D": 128}),),
        4: (Config(None, 4, 2, {"BLOCK_T": 32, "BLOCK_L": 32, "BLOCK_E": 32, "BLOCK_D": 128}),),
    },
    "sm_100": {
        2: (Config(None, 8, 2, {"BLOCK_T": 128, "BLOCK_L": 64, "BLOCK_E": 128, "BLOCK_D": 128}),),
        4: (Config(None, 4, 2, {"BLOCK_T": 32, "BLOCK_L": 32, "BLOCK_E": 32, "BLOCK_D": 128}),),
    },
}

OPERANDS = (
    Operand("q", ("T", 32, 128)),
    Operand("k", ("L", 8, 128), like="q"),
    Operand("v", ("L", 8, 128), like="q"),
    Operand("pos", ("T",), index=True),
    Operand("o", ("T", 32, 128), like="q", output=True),
)


def attn_core_prefill(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    pos: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Launches `causalGQA` on the current stream of `q`'s device.

        o[t, h, d] = Σ_l softmax_l(0.0078125 · Σ_e q[t, h, e] · k[l, h // 4, e] | l ≤ pos[t]) · v[l, h // 4,
            d]

    q: [T, 32, 128], activation.
    k: [L, 8, 128], cache.
    v: [L, 8, 128], cache.
    pos: [T], int32 or int64.
    Returns o [T, 32, 128]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (o,) = bind(OPERANDS, (q, k, v, pos), (out,))
    T = sizes["T"]
    L = sizes["L"]
    if o.numel() == 0:
        return o
    config = pick(CONFIGS, q, T)
    grid = (triton.cdiv(T, config.tiles["BLOCK_T"]), 32, triton.cdiv(128, config.tiles["BLOCK_D"]))
    with on(q.device):
        attn_core_prefill_kernel[grid](
            q,
            k,
            v,
            pos,
            o,
            T,
            L,
            q.stride(0),
            q.stride(1),
            k.stride(0),
            k.stride(1),
            v.stride(0),
            v.stride(1),
            o.stride(0),
            o.stride(1),
            **config.options(),
        )
    return o
