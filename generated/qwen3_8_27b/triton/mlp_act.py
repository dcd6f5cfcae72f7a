"""`siluMul` as node mlp_act.

    y[t, i] = silu(gu[t, i]) · gu[t, 17408 + i]

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].mlp.act
Schedule  pointwise: no reduction: each element of `i` stands alone
Tensor    gu [T, 34816], activation, 64-bit offsets
Tensor    y [T, 17408], activation, result, 64-bit offsets
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
def mlp_act_kernel(
    gu_ptr,
    y_ptr,
    gu_stride_t,
    y_stride_t,
    BLOCK: tl.constexpr,
):
    """One program: BLOCK columns of one row."""
    t = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    i_in = i < 17408 if 17408 % BLOCK != 0 else tl.full((BLOCK,), True, tl.int1)
    gu_row = gu_ptr + t.to(tl.int64) * gu_stride_t
    y_row = y_ptr + t.to(tl.int64) * y_stride_t
    gu = tl.load(gu_row + i, mask=i_in, other=0.0).to(tl.float32)
    gu_p17408 = tl.load(gu_row + (i + 17408), mask=i_in, other=0.0).to(tl.float32)
    y = silu(gu) * gu_p17408
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
    Operand("gu", ("T", 34816), wide=True),
    Operand("y", ("T", 17408), like="gu", output=True, wide=True),
)


def mlp_act(gu: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Launches `siluMul` on the current stream of `gu`'s device.

        y[t, i] = silu(gu[t, i]) · gu[t, 17408 + i]

    gu: [T, 34816], activation.
    Returns y [T, 17408]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (y,) = bind(OPERANDS, (gu,), (out,))
    T = sizes["T"]
    if y.numel() == 0:
        return y
    config = pick(CONFIGS, gu, T)
    grid = (T, triton.cdiv(17408, config.tiles["BLOCK"]))
    with on(gu.device):
        mlp_act_kernel[grid](gu, y, gu.stride(0), y.stride(0), **config.options())
    return y
