"""`slidingDecodeGQA` as node attn_core_sliding_decode.

    o[b, h, d] = Σ_l softmax_l(3.87 / √128 · Σ_e q[b, h, e] · k[b, l, h // 16, e] | seq_lens[b] - 1 - 2048 < l
        < seq_lens[b]) · v[b, l, h // 16, d]

Spec Key  meta-models/Muse-Glimmer-30B@1.0:layers[*].attn.core
Phase     decode
Schedule  attention_decode: softmax over `l` times values; each row has its own keys (decode); 16 query heads
          a KV head
Tensor    q [B, 32, 128], activation
Tensor    k [B, S, 2, 128], cache, 64-bit offsets
Tensor    v [B, S, 2, 128], cache, 64-bit offsets
Tensor    seq_lens [B], int32 or int64
Tensor    o [B, 32, 128], activation, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick, workspace_of


@triton.jit(do_not_specialize=["S"])
def attn_core_sliding_decode_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    seq_lens_ptr,
    sums_ptr,
    tops_ptr,
    totals_ptr,
    S,
    q_stride_b,
    q_stride_h: tl.constexpr,
    k_stride_b,
    k_stride_l: tl.constexpr,
    k_stride_kv_head: tl.constexpr,
    v_stride_b,
    v_stride_l: tl.constexpr,
    v_stride_kv_head: tl.constexpr,
    BLOCK_L: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_D: tl.constexpr,
    SPLITS: tl.constexpr,
):
    """One program: the query heads of one KV head, BLOCK_D columns, and one of SPLITS parts of the keys.

    Leaves the weighted sum of its values, its largest score, and the sum of its weights.
    """
    b = tl.program_id(0)
    kv_head = tl.program_id(1)
    blocks: tl.constexpr = (128 + BLOCK_D - 1) // BLOCK_D
    split = tl.program_id(2) // blocks
    member = tl.arange(0, 16)
    member_in = member < 16
    h = kv_head * 16 + member
    d = (tl.program_id(2) % blocks * BLOCK_D + tl.arange(0, BLOCK_D))[None, :]
    d_in = d < 128 if 128 % BLOCK_D != 0 else tl.full((1, BLOCK_D), True, tl.int1)
    lane = tl.arange(0, BLOCK_L)
    seq_lens = tl.load(seq_lens_ptr + b)
    seq_lens = tl.minimum(tl.maximum(seq_lens, -1610612736), 1610612736).to(tl.int32)
    low = tl.maximum(seq_lens - 2048, 0)
    high = tl.minimum(seq_lens, S)
    share = tl.cdiv(tl.cdiv(tl.maximum(high - low, 0), SPLITS), BLOCK_L) * BLOCK_L
    first = low + split * share
    last = tl.minimum(first + share, high)
    q_row = q_ptr + b * q_stride_b + h[:, None] * q_stride_h
    k_row = k_ptr + b.to(tl.int64) * k_stride_b + kv_head.to(tl.int64) * k_stride_kv_head
    v_row = v_ptr + b.to(tl.int64) * v_stride_b + kv_head.to(tl.int64) * v_stride_kv_head
    if BLOCK_E >= 128:
        e = tl.arange(0, BLOCK_E)
        e_in = e < 128 if 128 % BLOCK_E != 0 else tl.full((BLOCK_E,), True, tl.int1)
        q = tl.load(q_row + e[None, :], mask=member_in[:, None] & e_in[None, :], other=0.0)
    top = tl.full((16,), float("-inf"), tl.float32)
    total = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, BLOCK_D), tl.float32)
    for start in range(first, last, BLOCK_L):
        l = start + lane
        l_in = (l < last) & (seq_lens - 2049 < l) & (l < seq_lens)
        dot = tl.zeros((16, BLOCK_L), tl.float32)
        for first_e in tl.static_range(0, 128, BLOCK_E):
            e = first_e + tl.arange(0, BLOCK_E)
            e_in = e < 128 if 128 % BLOCK_E != 0 else tl.full((BLOCK_E,), True, tl.int1)
            if BLOCK_E < 128:
                q = tl.load(q_row + e[None, :], mask=member_in[:, None] & e_in[None, :], other=0.0)
            k = tl.load(
                k_row + start.to(tl.int64) * k_stride_l + lane[None, :] * k_stride_l + e[:, None],
                mask=l_in[None, :] & e_in[:, None],
                other=0.0,
            )
            dot = tl.dot(q, k, dot, input_precision="ieee")
        score = 0.34206290539899237 * dot
        seen = l_in[None, :]
        score = tl.where(score == float("-inf"), -3.4028234663852886e38, score)
        score = tl.where(seen, score, float("-inf"))
        largest = tl.maximum(top, tl.max(score, 1))
        base = tl.where(largest == float("-inf"), 0.0, largest)
        weight = tl.exp(score - base[:, None])
        fade = tl.exp(top - base)
        total = total * fade + tl.sum(weight, 1)
        top = largest
        v = tl.load(
            v_row + start.to(tl.int64) * v_stride_l + lane[:, None] * v_stride_l + d,
            mask=l_in[:, None] & d_in,
            other=0.0,
        )
        acc = tl.dot(weight.to(v.dtype), v, acc * fade[:, None], input_precision="ieee")
    part = (b.to(tl.int64) * 32 + h) * SPLITS + split
    tl.store(sums_ptr + part[:, None] * 128 + d, acc, mask=member_in[:, None] & d_in)
    if tl.program_id(2) % blocks == 0:
        tl.store(tops_ptr + part, top, mask=member_in)
        tl.store(totals_ptr + part, total, mask=member_in)


@triton.jit
def attn_core_sliding_decode_kernel_merge(
    o_ptr,
    sums_ptr,
    tops_ptr,
    totals_ptr,
    o_stride_b,
    o_stride_h: tl.constexpr,
    BLOCK_D: tl.constexpr,
    SPLITS: tl.constexpr,
):
    """One program: BLOCK_D columns of one query head. A part without keys has weight 0."""
    b = tl.program_id(0)
    h = tl.program_id(1)
    d = tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)
    d_in = d < 128 if 128 % BLOCK_D != 0 else tl.full((BLOCK_D,), True, tl.int1)
    part = (b.to(tl.int64) * 32 + h) * SPLITS + tl.arange(0, SPLITS)
    top = tl.load(tops_ptr + part)
    largest = tl.max(top, 0)
    weight = tl.exp(top - tl.where(largest == float("-inf"), 0.0, largest))
    total = tl.sum(weight * tl.load(totals_ptr + part), 0)
    sums = tl.load(sums_ptr + part[:, None] * 128 + d[None, :], mask=d_in[None, :], other=0.0)
    divisor = tl.where(largest == -3.4028234663852886e38, float("nan"), tl.where(total == 0.0, 1.0, total))
    acc = tl.sum(weight[:, None] * sums, 0) / divisor
    o_row = o_ptr + b * o_stride_b + h * o_stride_h
    tl.store(o_row + d, acc.to(o_ptr.dtype.element_ty), mask=d_in)


CONFIGS: Configs = {
    "sm_80": {
        2: (
            Config(4, 8, 2, {"BLOCK_L": 64, "BLOCK_E": 128, "BLOCK_D": 128, "SPLITS": 8}),
            Config(None, 8, 2, {"BLOCK_L": 64, "BLOCK_E": 128, "BLOCK_D": 128, "SPLITS": 2}),
        ),
        4: (
            Config(4, 4, 2, {"BLOCK_L": 16, "BLOCK_E": 32, "BLOCK_D": 128, "SPLITS": 32}),
            Config(None, 4, 2, {"BLOCK_L": 16, "BLOCK_E": 32, "BLOCK_D": 128, "SPLITS": 4}),
        ),
    },
    "sm_90": {
        2: (
            Config(4, 8, 2, {"BLOCK_L": 64, "BLOCK_E": 128, "BLOCK_D": 128, "SPLITS": 8}),
            Config(None, 8, 2, {"BLOCK_L": 64, "BLOCK_E": 128, "BLOCK_D": 128, "SPLITS": 2}),
        ),
        4: (
            Config(4, 4, 2, {"BLOCK_L": 16, "BLOCK_E": 32, "BLOCK_D": 128, "SPLITS": 32}),
            Config(None, 4, 2, {"BLOCK_L": 16, "BLOCK_E": 32, "BLOCK_D": 128, "SPLITS": 4}),
        ),
    },
    "sm_100": {
        2: (
            Config(4, 8, 2, {"BLOCK_L": 64, "BLOCK_E": 128, "BLOCK_D": 128, "SPLITS": 8}),
            Config(None, 8, 2, {"BLOCK_L": 64, "BLOCK_E": 128, "BLOCK_D": 128, "SPLITS": 2}),
        ),
        4: (
            Config(4, 4, 2, {"BLOCK_L": 16, "BLOCK_E": 32, "BLOCK_D": 128, "SPLITS": 32}),
            Config(None, 4, 2, {"BLOCK_L": 16, "BLOCK_E": 32, "BLOCK_D": 128, "SPLITS": 4}),
        ),
    },
}

OPERANDS = (
    Operand("q", ("B", 32, 128)),
    Operand("k", ("B", "S", 2, 128), like="q", wide=True),
    Operand("v", ("B", "S", 2, 128), like="q", wide=True),
    Operand("seq_lens", ("B",), index=True),
    Operand("o", ("B", 32, 128), like="q", output=True),
)


def attn_core_sliding_decode(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    seq_lens: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
    workspace: torch.Tensor | None = None,
) -> torch.Tensor:
    """Launches `slidingDecodeGQA` on the current stream of `q`'s device.

        o[b, h, d] = Σ_l softmax_l(3.87 / √128 · Σ_e q[b, h, e] · k[b, l, h // 16, e] | seq_lens[b] - 1 - 2048
            < l < seq_lens[b]) · v[b, l, h // 16, d]

    q: [B, 32, 128], activation.
    k: [B, S, 2, 128], cache.
    v: [B, S, 2, 128], cache.
    seq_lens: [B], int32 or int64.
    Returns o [B, 32, 128]: `out` if it is given, else new.
    `workspace`: float32 scratch memory of B · 32 · SPLITS · 130 elements, or more.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (o,) = bind(OPERANDS, (q, k, v, seq_lens), (out,))
    B = sizes["B"]
    S = sizes["S"]
    if o.numel() == 0:
        return o
    config = pick(CONFIGS, q, B, SPLITS=S // 64 + 1)
    splits = config.tiles["SPLITS"]
    parts = B * 32 * splits
    scratch = workspace_of(workspace, parts * 130, (q, k, v, seq_lens, o))
    sums, tops, totals = scratch[: parts * 130].split([parts * 128, parts, parts])
    with on(q.device):
        grid = (B, 2, triton.cdiv(128, config.tiles["BLOCK_D"]) * splits)
        attn_core_sliding_decode_kernel[grid](
            q,
            k,
            v,
            seq_lens,
            sums,
            tops,
            totals,
            S,
            q.stride(0),
            q.stride(1),
            k.stride(0),
            k.stride(1),
            k.stride(2),
            v.stride(0),
            v.stride(1),
            v.stride(2),
            **config.options(),
        )
        grid = (B, 32, triton.cdiv(128, config.tiles["BLOCK_D"]))
        attn_core_sliding_decode_kernel_merge[grid](
            o,
            sums,
            tops,
            totals,
            o.stride(0),
            o.stride(1),
            **config.options("BLOCK_D", "SPLITS"),
        )
    return o
