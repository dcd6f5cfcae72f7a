"""`scaled` as node gdn_q_scale_delta.

    y[t, h, i] = 1 / √128 · x[t, h, i]

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.q_scale
Schedule  pointwise: no reduction: each element of `i` stands alone
Tensor    x [T, 16, 128], activation
Tensor    y [T, 16, 128], activation, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit
def gdn_q_scale_delta_kernel(
    x_ptr,
    y_ptr,
    x_stride_t,
    x_stride_h,
    y_stride_t,
    y_stride_h,
    ROWS: tl.constexpr,
):
    """One program: all columns of ROWS of the rows along `h`."""
    blocks = tl.cdiv(16, ROWS)
    t = tl.program_id(0) // blocks
    h = (tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS))[:, None]
    h_in = h < 16
    i = tl.arange(0, 128)[None, :]
    x_row = x_ptr + t * x_stride_t + h * x_stride_h
    y_row = y_ptr + t * y_stride_t + h * y_stride_h
    x = tl.load(x_row + i, mask=h_in, other=0.0).to(tl.float32)
    y = 0.08838834764831843 * x
    tl.store(y_row + i, y.to(y_ptr.dtype.element_ty), mask=h_in)


CONFIGS: Configs = {
    "sm_80": {
        2: (Config(None, 4, 1, {"ROWS": 16}),),
        4: (Config(None, 4, 1, {"ROWS": 16}),),
    },
    "sm_90": {
        2: (Config(None, 4, 1, {"ROWS": 16}),),
        4: (Config(None, 4, 1, {"ROWS": 16}),),
    },
    "sm_100": {
        2: (Config(None, 4, 1, {"ROWS": 16}),),
        4: (Config(None, 4, 1, {"ROWS": 16}),),
    },
}

OPERANDS = (
    Operand("x", ("T", 16, 128)),
    Operand("y", ("T", 16, 128), like="x", output=True),
)


def gdn_q_scale_delta(x: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Launches `scaled` on the current stream of `x`'s device.

        y[t, h, i] = 1 / √128 · x[t, h, i]

    x: [T, 16, 128], activation.
    Returns y [T, 16, 128]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (y,) = bind(OPERANDS, (x,), (out,))
    T = sizes["T"]
    if y.numel() == 0:
        return y
    config = pick(CONFIGS, x, T * 16)
    grid = (T * triton.cdiv(16, config.tiles["ROWS"]),)
    with on(x.device):
        gdn_q_scale_delta_kernel[grid](
            x,
            y,
            x.stride(0),
            x.stride(1),
            y.stride(0),
            y.stride(1),
            **config.options(),
        )
    return y
