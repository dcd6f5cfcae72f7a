"""`causalConvSiluFrom` as node gdn_conv_delta_prefill_y.

    y[t, i] = silu(Σ_j w[i, j] · (if t + j < 3 then c[t + j, i] else x[t + j - 3, i]))

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.conv
Schedule  pointwise: no reduction: each element of `i` stands alone
Tensor    c [3, 10240], cache
Tensor    x [T, 10240], activation, 64-bit offsets
Tensor    w [10240, 4], weight
Tensor    y [T, 10240], activation, result, 64-bit offsets
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit
def sigmoid(x):
    """sigmoid(x) = 1 / (1 + exp(-x))

    computed as (if x ≥ 0 then 1 else exp(-abs(x))) / (1 + exp(-abs(x)))
    """
    t1 = tl.exp(-tl.abs(x))
    return tl.where(x >= 0, 1.0, t1) / (1.0 + t1)


@triton.jit
def silu(x):
    """silu(x) = x · sigmoid(x)"""
    return x * sigmoid(x)


@triton.jit
def gdn_conv_delta_prefill_y_kernel(
    c_ptr,
    x_ptr,
    w_ptr,
    y_ptr,
    c_stride_d0,
    x_stride_d0,
    w_stride_i,
    y_stride_t,
    BLOCK: tl.constexpr,
):
    """One program: BLOCK columns of one row."""
    t = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    i_in = i < 10240 if 10240 % BLOCK != 0 else tl.full((BLOCK,), True, tl.int1)
    c_row = c_ptr + t * c_stride_d0
    x_row = x_ptr + (t - 3).to(tl.int64) * x_stride_d0
    c_row_2 = c_ptr + (t + 1) * c_stride_d0
    x_row_2 = x_ptr + (t - 2).to(tl.int64) * x_stride_d0
    c_row_3 = c_ptr + (t + 2) * c_stride_d0
    x_row_3 = x_ptr + (t - 1).to(tl.int64) * x_stride_d0
    x_row_4 = x_ptr + t.to(tl.int64) * x_stride_d0
    y_row = y_ptr + t.to(tl.int64) * y_stride_t
    w = tl.load(w_ptr + i * w_stride_i, mask=i_in, other=0.0).to(tl.float32)
    c = tl.load(c_row + i, mask=i_in & (t < 3), other=0.0).to(tl.float32)
    x = tl.load(x_row + i, mask=i_in & (t >= 3), other=0.0).to(tl.float32)
    w_2 = tl.load(w_ptr + i * w_stride_i + 1, mask=i_in, other=0.0).to(tl.float32)
    c_2 = tl.load(c_row_2 + i, mask=i_in & (t + 1 < 3), other=0.0).to(tl.float32)
    x_2 = tl.load(x_row_2 + i, mask=i_in & (t + 1 >= 3), other=0.0).to(tl.float32)
    w_3 = tl.load(w_ptr + i * w_stride_i + 2, mask=i_in, other=0.0).to(tl.float32)
    c_3 = tl.load(c_row_3 + i, mask=i_in & (t + 2 < 3), other=0.0).to(tl.float32)
    x_3 = tl.load(x_row_3 + i, mask=i_in & (t + 2 >= 3), other=0.0).to(tl.float32)
    w_4 = tl.load(w_ptr + i * w_stride_i + 3, mask=i_in, other=0.0).to(tl.float32)
    x_4 = tl.load(x_row_4 + i, mask=i_in, other=0.0).to(tl.float32)
    y_part = w_2 * tl.where(t + 1 < 3, c_2, x_2)
    y = silu(w * tl.where(t < 3, c, x) + y_part + w_3 * tl.where(t + 2 < 3, c_3, x_3) + w_4 * x_4)
    tl.store(y_row + i, y.to(y_ptr.dtype.element_ty), mask=i_in)


CONFIGS: Configs = {
    "sm_80": {
        2: (Config(None, 4, 1, {"BLOCK": 1024}),),
        4: (Config(None, 8, 1, {"BLOCK": 1024}),),
    },
    "sm_90": {
        2: (Config(None, 4, 1, {"BLOCK": 1024}),),
        4: (Config(None, 8, 1, {"BLOCK": 1024}),),
    },
    "sm_100": {
        2: (Config(None, 4, 1, {"BLOCK": 1024}),),
        4: (Config(None, 8, 1, {"BLOCK": 1024}),),
    },
}

OPERANDS = (
    Operand("c", (3, 10240)),
    Operand("x", ("T", 10240), wide=True),
    Operand("w", (10240, 4)),
    Operand("y", ("T", 10240), like="x", output=True, wide=True),
)


def gdn_conv_delta_prefill_y(
    c: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Launches `causalConvSiluFrom` on the current stream of `c`'s device.

        y[t, i] = silu(Σ_j w[i, j] · (if t + j < 3 then c[t + j, i] else x[t + j - 3, i]))

    c: [3, 10240], cache.
    x: [T, 10240], activation.
    w: [10240, 4], weight.
    Returns y [T, 10240]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (y,) = bind(OPERANDS, (c, x, w), (out,))
    T = sizes["T"]
    if y.numel() == 0:
        return y
    config = pick(CONFIGS, c, T)
    grid = (T, triton.cdiv(10240, config.tiles["BLOCK"]))
    with on(c.device):
        gdn_conv_delta_prefill_y_kernel[grid](
            c,
            x,
            w,
            y,
            c.stride(0),
            x.stride(0),
            w.stride(0),
            y.stride(0),
            **config.options(),
        )
    return y
