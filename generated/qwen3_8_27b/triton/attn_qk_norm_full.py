"""`rmsnormOffset` as node attn_qk_norm_full.

    y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² / 256 + 1e-06) · (1 + w[i])

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].attn.qk_norm
Schedule  row_reduction: every reduction runs over the whole row: Σ over `i`
Tensor    x [T, rows_1, 256], activation, 64-bit offsets
Tensor    w [256], weight
Tensor    y [T, rows_1, 256], activation, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit(do_not_specialize=["rows_1"])
def attn_qk_norm_full_kernel(
    x_ptr,
    w_ptr,
    y_ptr,
    rows_1,
    x_stride_t,
    x_stride_h,
    y_stride_t,
    y_stride_h,
    ROWS: tl.constexpr,
):
    """One program: ROWS of the rows along `h`."""
    blocks = tl.cdiv(rows_1, ROWS)
    t = tl.program_id(0) // blocks
    h = (tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS))[:, None]
    h_in = h < rows_1
    x_row = x_ptr + t.to(tl.int64) * x_stride_t + h.to(tl.int64) * x_stride_h
    y_row = y_ptr + t * y_stride_t + h * y_stride_h
    i = tl.arange(0, 256)[None, :]
    x = tl.load(x_row + i, mask=h_in, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + i).to(tl.float32)
    r1_values = x * x
    r1_raw = tl.sum(r1_values, 1)[:, None]
    r1 = 1.0 / tl.sqrt_rn(r1_raw / 256.0 + 1e-06)
    y = x * r1 * (1.0 + w)
    tl.store(y_row + i, y.to(y_ptr.dtype.element_ty), mask=h_in)


CONFIGS: Configs = {
    "sm_80": {
        2: (Config(None, 1, 1, {"ROWS": 2}),),
        4: (Config(None, 1, 1, {"ROWS": 2}),),
    },
    "sm_90": {
        2: (Config(None, 1, 1, {"ROWS": 2}),),
        4: (Config(None, 1, 1, {"ROWS": 2}),),
    },
    "sm_100": {
        2: (Config(None, 1, 1, {"ROWS": 2}),),
        4: (Config(None, 1, 1, {"ROWS": 2}),),
    },
}

OPERANDS = (
    Operand("x", ("T", "rows_1", 256), wide=True),
    Operand("w", (256,)),
    Operand("y", ("T", "rows_1", 256), like="x", output=True),
)


def attn_qk_norm_full(x: torch.Tensor, w: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Launches `rmsnormOffset` on the current stream of `x`'s device.

        y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² / 256 + 1e-06) · (1 + w[i])

    x: [T, rows_1, 256], activation.
    w: [256], weight.
    Returns y [T, rows_1, 256]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (y,) = bind(OPERANDS, (x, w), (out,))
    T = sizes["T"]
    rows_1 = sizes["rows_1"]
    if y.numel() == 0:
        return y
    config = pick(CONFIGS, x, T * rows_1, ROWS=rows_1)
    grid = (T * triton.cdiv(rows_1, config.tiles["ROWS"]),)
    with on(x.device):
        attn_qk_norm_full_kernel[grid](
            x,
            w,
            y,
            rows_1,
            x.stride(0),
            x.stride(1),
            y.stride(0),
            y.stride(1),
            **config.options(),
        )
    return y
