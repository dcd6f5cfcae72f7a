"""`causalConvSiluStep` as node gdn_conv_delta_decode_y.

    y[b, i] = silu(Σ_j w[i, j] · (if j < 3 then c[b, j, i] else x[b, i]))

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.conv
Schedule  pointwise: short sums written out; no reduction: each element of `i` stands alone
Tensor    c [B, 3, 10240], cache
Tensor    x [B, 10240], activation
Tensor    w [10240, 4], weight
Tensor    y [B, 10240], activation, result
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
def gdn_conv_delta_decode_y_kernel(
    c_ptr,
    x_ptr,
    w_ptr,
    y_ptr,
    c_stride_b,
    c_stride_d1,
    x_stride_b,
    w_stride_i,
    y_stride_b,
    BLOCK: tl.constexpr,
):
    """One program: BLOCK columns of one row."""
    b = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    i_in = i < 10240 if 10240 % BLOCK != 0 else tl.full((BLOCK,), True, tl.int1)
    c_row = c_ptr + b * c_stride_b
    c_row_2 = c_ptr + b * c_stride_b + 1 * c_stride_d1
    c_row_3 = c_ptr + b * c_stride_b + 2 * c_stride_d1
    x_row = x_ptr + b * x_stride_b
    y_row = y_ptr + b * y_stride_b
    w = tl.load(w_ptr + i * w_stride_i, mask=i_in, other=0.0).to(tl.float32)
    c = tl.load(c_row + i, mask=i_in, other=0.0).to(tl.float32)
    w_2 = tl.load(w_ptr + i * w_stride_i + 1, mask=i_in, other=0.0).to(tl.float32)
    c_2 = tl.load(c_row_2 + i, mask=i_in, other=0.0).to(tl.float32)
    w_3 = tl.load(w_ptr + i * w_stride_i + 2, mask=i_in, other=0.0).to(tl.float32)
    c_3 = tl.load(c_row_3 + i, mask=i_in, other=0.0).to(tl.float32)
    w_4 = tl.load(w_ptr + i * w_stride_i + 3, mask=i_in, other=0.0).to(tl.float32)
    x = tl.load(x_row + i, mask=i_in, other=0.0).to(tl.float32)
    y = silu(w * c + w_2 * c_2 + w_3 * c_3 + w_4 * x)
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
    Operand("c", ("B", 3, 10240)),
    Operand("x", ("B", 10240)),
    Operand("w", (10240, 4)),
    Operand("y", ("B", 10240), like="x", output=True),
)


def gdn_conv_delta_decode_y(
    c: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Launches `causalConvSiluStep` on the current stream of `c`'s device.

        y[b, i] = silu(Σ_j w[i, j] · (if j < 3 then c[b, j, i] else x[b, i]))

    c: [B, 3, 10240], cache.
    x: [B, 10240], activation.
    w: [10240, 4], weight.
    Returns y [B, 10240]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (y,) = bind(OPERANDS, (c, x, w), (out,))
    B = sizes["B"]
    if y.numel() == 0:
        return y
    config = pick(CONFIGS, c, B)
    grid = (B, triton.cdiv(10240, config.tiles["BLOCK"]))
    with on(c.device):
        gdn_conv_delta_decode_y_kernel[grid](
            c,
            x,
            w,
            y,
            c.stride(0),
            c.stride(1),
            x.stride(0),
            w.stride(0),
            y.stride(0),
            **config.options(),
        )
    return y
