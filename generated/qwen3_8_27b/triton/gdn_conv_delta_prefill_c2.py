"""`causalConvSiluFrom` as node gdn_conv_delta_prefill_c2.

    c2[j, i] = if T + j < 3 then c[T + j, i] else x[T + j - 3, i]

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.conv
Schedule  pointwise: no reduction: each element of `i` stands alone
Tensor    c [3, 10240], cache
Tensor    x [T, 10240], activation, 64-bit offsets
Tensor    c2 [3, 10240], cache, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit(do_not_specialize=["T"])
def gdn_conv_delta_prefill_c2_kernel(
    c_ptr,
    x_ptr,
    c2_ptr,
    T,
    c_stride_d0,
    x_stride_d0,
    c2_stride_j,
    BLOCK: tl.constexpr,
):
    """One program: BLOCK columns of one row."""
    j = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    i_in = i < 10240 if 10240 % BLOCK != 0 else tl.full((BLOCK,), True, tl.int1)
    c_row = c_ptr + (T + j) * c_stride_d0
    x_row = x_ptr + (T + j - 3).to(tl.int64) * x_stride_d0
    c2_row = c2_ptr + j * c2_stride_j
    c = tl.load(c_row + i, mask=i_in & (T + j < 3), other=0.0).to(tl.float32)
    x = tl.load(x_row + i, mask=i_in & (T + j >= 3), other=0.0).to(tl.float32)
    c2 = tl.where(T + j < 3, c, x)
    tl.store(c2_row + i, c2.to(c2_ptr.dtype.element_ty), mask=i_in)


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
    Operand("c2", (3, 10240), like="c", output=True),
)


def gdn_conv_delta_prefill_c2(
    c: torch.Tensor,
    x: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Launches `causalConvSiluFrom` on the current stream of `c`'s device.

        c2[j, i] = if T + j < 3 then c[T + j, i] else x[T + j - 3, i]

    c: [3, 10240], cache.
    x: [T, 10240], activation.
    Returns c2 [3, 10240]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (c2,) = bind(OPERANDS, (c, x), (out,))
    T = sizes["T"]
    if c2.numel() == 0:
        return c2
    config = pick(CONFIGS, c, 3)
    grid = (3, triton.cdiv(10240, config.tiles["BLOCK"]))
    with on(c.device):
        gdn_conv_delta_prefill_c2_kernel[grid](
            c,
            x,
            c2,
            T,
            c.stride(0),
            x.stride(0),
            c2.stride(0),
            **config.options(),
        )
    return c2
