"""`l2norm` as node gdn_qk_norm_delta.

    y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² + 1e-06)

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.qk_norm
Schedule  row_reduction: every reduction runs over the whole row: Σ over `i`
Tensor    x [T, 16, 128], activation, 64-bit offsets
Tensor    y [T, 16, 128], activation, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit
def gdn_qk_norm_delta_kernel(
    x_ptr,
    y_ptr,
    x_stride_t,
    x_stride_h,
    y_stride_t,
    y_stride_h,
    ROWS: tl.constexpr,
):
    """One program: ROWS of the rows along `h`."""
    blocks = tl.cdiv(16, ROWS)
    t = tl.program_id(0) // blocks
    h = (tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS))[:, None]
    h_in = h < 16
    x_row = x_ptr + t.to(tl.int64) * x_stride_t + h.to(tl.int64) * x_stride_h
    y_row = y_ptr + t * y_stride_t + h * y_stride_h
    i = tl.arange(0, 128)[None, :]
    x = tl.load(x_row + i, mask=h_in, other=0.0).to(tl.float32)
    r1_values = x * x
    r1_raw = tl.sum(r1_values, 1)[:, None]
    r1 = 1.0 / tl.sqrt_rn(r1_raw + 1e-06)
    y = x * r1
    tl.store(y_row + i, y.to(y_ptr.dtype.element_ty), mask=h_in)


CONFIGS: Configs = {
    "sm_80": {
        2: (Config(None, 1, 1, {"ROWS": 4}),),
        4: (Config(None, 1, 1, {"ROWS": 4}),),
    },
    "sm_90": {
        2: (Config(None, 1, 1, {"ROWS": 4}),),
        4: (Config(None, 1, 1, {"ROWS": 4}),),
    },
    "sm_100": {
        2: (Config(None, 1, 1, {"ROWS": 4}),),
        4: (Config(None, 1, 1, {"ROWS": 4}),),
    },
}

OPERANDS = (
    Operand("x", ("T", 16, 128), wide=True),
    Operand("y", ("T", 16, 128), like="x", output=True),
)


def gdn_qk_norm_delta(x: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Launches `l2norm` on the current stream of `x`'s device.

        y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² + 1e-06)

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
        gdn_qk_norm_delta_kernel[grid](
            x,
            y,
            x.stride(0),
            x.stride(1),
            y.stride(0),
            y.stride(1),
            **config.options(),
        )
    return y
