"""`causalConvSiluStep` as node gdn_conv_delta_decode_c2.

    c2[b, j, i] = if j + 1 < 3 then c[b, j + 1, i] else x[b, i]

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.conv
Schedule  pointwise: no reduction: each element of `i` stands alone
Tensor    c [B, 3, 10240], cache
Tensor    x [B, 10240], activation
Tensor    c2 [B, 3, 10240], cache, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit
def gdn_conv_delta_decode_c2_kernel(
    c_ptr,
    x_ptr,
    c2_ptr,
    c_stride_b,
    c_stride_d1,
    x_stride_b,
    c2_stride_b,
    c2_stride_j,
    BLOCK: tl.constexpr,
):
    """One program: BLOCK columns of one row."""
    row = tl.program_id(0)
    j = row % 3
    b = row // 3
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    i_in = i < 10240 if 10240 % BLOCK != 0 else tl.full((BLOCK,), True, tl.int1)
    c_row = c_ptr + b * c_stride_b + (j + 1) * c_stride_d1
    x_row = x_ptr + b * x_stride_b
    c2_row = c2_ptr + b * c2_stride_b + j * c2_stride_j
    c = tl.load(c_row + i, mask=i_in & (j + 1 < 3), other=0.0).to(tl.float32)
    x = tl.load(x_row + i, mask=i_in & (j + 1 >= 3), other=0.0).to(tl.float32)
    c2 = tl.where(j + 1 < 3, c, x)
    tl.store(c2_row + i, c2.to(c2_ptr.dtype.element_ty), mask=i_in)


CONFIGS: Configs = {
    "sm_80": {
        2: (Config(None, 4, 1, {"BLOCK": 2048}),),
        4: (Config(None, 4, 1, {"BLOCK": 2048}),),
    },
    "sm_90": {
        2: (Config(None, 4, 1, {"BLOCK": 2048}),),
        4: (Config(None, 4, 1, {"BLOCK": 2048}),),
    },
    "sm_100": {
        2: (Config(None, 4, 1, {"BLOCK": 2048}),),
        4: (Config(None, 4, 1, {"BLOCK": 2048}),),
    },
}

OPERANDS = (
    Operand("c", ("B", 3, 10240)),
    Operand("x", ("B", 10240)),
    Operand("c2", ("B", 3, 10240), like="c", output=True),
)


def gdn_conv_delta_decode_c2(
    c: torch.Tensor,
    x: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Launches `causalConvSiluStep` on the current stream of `c`'s device.

        c2[b, j, i] = if j + 1 < 3 then c[b, j + 1, i] else x[b, i]

    c: [B, 3, 10240], cache.
    x: [B, 10240], activation.
    Returns c2 [B, 3, 10240]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (c2,) = bind(OPERANDS, (c, x), (out,))
    B = sizes["B"]
    if c2.numel() == 0:
        return c2
    config = pick(CONFIGS, c, B * 3)
    grid = (B * 3, triton.cdiv(10240, config.tiles["BLOCK"]))
    with on(c.device):
        gdn_conv_delta_decode_c2_kernel[grid](
            c,
            x,
            c2,
            c.stride(0),
            c.stride(1),
            x.stride(0),
            c2.stride(0),
            c2.stride(1),
            **config.options(),
        )
    return c2
