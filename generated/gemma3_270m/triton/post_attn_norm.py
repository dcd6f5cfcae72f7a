"""`rmsnormOffset` as node post_attn_norm.

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 640 + 1e-06) · (1 + w[i])

Spec Key  google/gemma-3-270m@1.0:layers[*].post_attn_norm
Schedule  row_reduction: every reduction runs over the whole row: Σ over `i`
Tensor    x [T, 640], activation
Tensor    w [640], weight
Tensor    y [T, 640], activation, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit
def post_attn_norm_kernel(
    x_ptr,
    w_ptr,
    y_ptr,
    x_stride_t,
    y_stride_t,
):
    """One program: one row."""
    t = tl.program_id(0)
    x_row = x_ptr + t * x_stride_t
    y_row = y_ptr + t * y_stride_t
    i = tl.arange(0, 1024)
    i_in = i < 640
    x = tl.load(x_row + i, mask=i_in, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + i, mask=i_in, other=0.0).to(tl.float32)
    r1_values = tl.where(i_in, x * x, 0.0)
    r1_raw = tl.sum(r1_values, 0)
    r1 = 1.0 / tl.sqrt_rn(r1_raw / 640.0 + 1e-06)
    y = x * r1 * (1.0 + w)
    tl.store(y_row + i, y.to(y_ptr.dtype.element_ty), mask=i_in)


CONFIGS: Configs = {
    "sm_80": {
        2: (Config(None, 4, 1, {}),),
        4: (Config(None, 8, 1, {}),),
    },
    "sm_90": {
        2: (Config(None, 4, 1, {}),),
        4: (Config(None, 8, 1, {}),),
    },
    "sm_100": {
        2: (Config(None, 4, 1, {}),),
        4: (Config(None, 8, 1, {}),),
    },
}

OPERANDS = (
    Operand("x", ("T", 640)),
    Operand("w", (640,)),
    Operand("y", ("T", 640), like="x", output=True),
)


def post_attn_norm(x: torch.Tensor, w: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Launches `rmsnormOffset` on the current stream of `x`'s device.

        y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 640 + 1e-06) · (1 + w[i])

    x: [T, 640], activation.
    w: [640], weight.
    Returns y [T, 640]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (y,) = bind(OPERANDS, (x, w), (out,))
    T = sizes["T"]
    if y.numel() == 0:
        return y
    config = pick(CONFIGS, x, T)
    grid = (T,)
    with on(x.device):
        post_attn_norm_kernel[grid](x, w, y, x.stride(0), y.stride(0), **config.options())
    return y
