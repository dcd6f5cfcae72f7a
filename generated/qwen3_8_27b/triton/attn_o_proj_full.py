"""`linear` as node attn_o_proj_full.

    y[t, n] = Σ_k x[t, k] · w[n, k]

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].attn.o_proj
Schedule  contraction: one Σ over `k` of a product that parts into rows and columns `n`
Tensor    x [T, 6144], activation
Tensor    w [5120, 6144], weight
Tensor    y [T, 5120], activation, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit(do_not_specialize=["T"])
def attn_o_proj_full_kernel(
    x_ptr,
    w_ptr,
    y_ptr,
    T,
    x_stride_t,
    w_stride_n,
    y_stride_t,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """One program: BLOCK_M rows and BLOCK_N columns; GROUP_M blocks of rows share cached columns."""
    blocks_m = tl.cdiv(T, BLOCK_M)
    blocks_n: tl.constexpr = (5120 + BLOCK_N - 1) // BLOCK_N
    pid = tl.program_id(0)
    first_m = pid // (GROUP_M * blocks_n) * GROUP_M
    group_m = tl.minimum(blocks_m - first_m, GROUP_M)
    pid_m = first_m + pid % (GROUP_M * blocks_n) % group_m
    pid_n = pid % (GROUP_M * blocks_n) // group_m
    t = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    m_in = t < T
    n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    n_in = n < 5120 if 5120 % BLOCK_N != 0 else tl.full((1, BLOCK_N), True, tl.int1)
    x_row = x_ptr + t * x_stride_t
    w_row = w_ptr + n * w_stride_n
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first_k in range(0, 6144, BLOCK_K):
        k = first_k + tl.arange(0, BLOCK_K)
        k_in = k < 6144 if 6144 % BLOCK_K != 0 else tl.full((BLOCK_K,), True, tl.int1)
        x = tl.load(x_row + k[None, :], mask=m_in & k_in[None, :], other=0.0)
        w = tl.load(w_row + k[:, None], mask=n_in & k_in[:, None], other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    y_row = y_ptr + t * y_stride_t
    tl.store(y_row + n, acc.to(y_ptr.dtype.element_ty), mask=m_in & n_in)


CONFIGS: Configs = {
    "sm_80": {
        2: (
            Config(16, 4, 4, {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 256, "GROUP_M": 1}),
            Config(None, 8, 3, {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}),
        ),
        4: (
            Config(16, 4, 3, {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 64, "GROUP_M": 1}),
            Config(None, 8, 3, {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 16, "GROUP_M": 8}),
        ),
    },
    "sm_90": {
        2: (
            Config(16, 4, 4, {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 256, "GROUP_M": 1}),
            Config(None, 8, 3, {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}),
        ),
        4: (
            Config(16, 4, 3, {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 64, "GROUP_M": 1}),
            Config(None, 8, 3, {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 16, "GROUP_M": 8}),
        ),
    },
    "sm_100": {
        2: (
            Config(16, 4, 4, {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 256, "GROUP_M": 1}),
            Config(None, 8, 3, {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}),
        ),
        4: (
            Config(16, 4, 3, {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 64, "GROUP_M": 1}),
            Config(None, 8, 3, {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 16, "GROUP_M": 8}),
        ),
    },
}

OPERANDS = (
    Operand("x", ("T", 6144)),
    Operand("w", (5120, 6144), like="x"),
    Operand("y", ("T", 5120), like="x", output=True),
)


def attn_o_proj_full(x: torch.Tensor, w: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Launches `linear` on the current stream of `x`'s device.

        y[t, n] = Σ_k x[t, k] · w[n, k]

    x: [T, 6144], activation.
    w: [5120, 6144], weight.
    Returns y [T, 5120]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (y,) = bind(OPERANDS, (x, w), (out,))
    T = sizes["T"]
    if y.numel() == 0:
        return y
    config = pick(CONFIGS, x, T)
    grid = (triton.cdiv(T, config.tiles["BLOCK_M"]) * triton.cdiv(5120, config.tiles["BLOCK_N"]),)
    with on(x.device):
        attn_o_proj_full_kernel[grid](x, w, y, T, x.stride(0), w.stride(0), y.stride(0), **config.options())
    return y
