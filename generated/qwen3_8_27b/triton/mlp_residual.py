"""`residual` as node mlp_residual.

    y[t, i] = x[t, i] + 1 · h[t, i]

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].mlp_residual
Schedule  pointwise: no reduction: each element of `i` stands alone
Tensor    x [T, 5120], activation
Tensor    h [T, 5120], activation
Tensor    y [T, 5120], activation, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit
def mlp_residual_kernel(
    x_ptr,
    h_ptr,
    y_ptr,
    x_stride_t,
    h_stride_t,
    y_stride_t,
    BLOCK: tl.constexpr,
):
    """One program: BLOCK columns of one row."""
    t = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    i_in = i < 5120 if 5120 % BLOCK != 0 else tl.full((BLOCK,), True, tl.int1)
    x_row = x_ptr + t * x_stride_t
    h_row = h_ptr + t * h_stride_t
    y_row = y_ptr + t * y_stride_t
    x = tl.load(x_row + i, mask=i_in, other=0.0).to(tl.float32)
    h = tl.load(h_row + i, mask=i_in, other=0.0).to(tl.float32)
    y = x + h
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
    Operand("x", ("T", 5120)),
    Operand("h", ("T", 5120), like="x"),
    Operand("y", ("T", 5120), like="x", output=True),
)


def mlp_residual(x: torch.Tensor, h: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Launches `residual` on the current stream of `x`'s device.

        y[t, i] = x[t, i] + 1 · h[t, i]

    x: [T, 5120], activation.
    h: [T, 5120], activation.
    Returns y [T, 5120]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (y,) = bind(OPERANDS, (x, h), (out,))
    T = sizes["T"]
    if y.numel() == 0:
        return y
    config = pick(CONFIGS, x, T)
    grid = (T, triton.cdiv(5120, config.tiles["BLOCK"]))
    with on(x.device):
        mlp_residual_kernel[grid](x, h, y, x.stride(0), h.stride(0), y.stride(0), **config.options())
    return y
