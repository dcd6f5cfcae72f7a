"""`rmsnormGated` as node gdn_norm_delta.

    y[t, h, i] = w[i] · (x[t, h, i] / √(Σ_j x[t, h, j]² / 128 + 1e-06)) · silu(z[t, h, i])

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.norm
Schedule  row_reduction: every reduction runs over the whole row: Σ over `i`
Tensor    x [T, 48, 128], activation
Tensor    z [T, 48, 128], activation, 64-bit offsets
Tensor    w [128], weight
Tensor    y [T, 48, 128], activation, result
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
def gdn_norm_delta_kernel(
    x_ptr,
    z_ptr,
    w_ptr,
    y_ptr,
    x_stride_t,
    x_stride_h,
    z_stride_t,
    z_stride_h,
    y_stride_t,
    y_stride_h,
    ROWS: tl.constexpr,
):
    """One program: ROWS of the rows along `h`."""
    blocks = tl.cdiv(48, ROWS)
    t = tl.program_id(0) // blocks
    h = (tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS))[:, None]
    h_in = h < 48
    x_row = x_ptr + t * x_stride_t + h * x_stride_h
    z_row = z_ptr + t.to(tl.int64) * z_stride_t + h.to(tl.int64) * z_stride_h
    y_row = y_ptr + t * y_stride_t + h * y_stride_h
    i = tl.arange(0, 128)[None, :]
    x = tl.load(x_row + i, mask=h_in, other=0.0).to(tl.float32)
    z = tl.load(z_row + i, mask=h_in, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + i).to(tl.float32)
    r1_values = x * x
    r1_raw = tl.sum(r1_values, 1)[:, None]
    r1 = 1.0 / tl.sqrt_rn(r1_raw / 128.0 + 1e-06)
    y = w * (x * r1) * silu(z)
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
    Operand("x", ("T", 48, 128)),
    Operand("z", ("T", 48, 128), like="x", wide=True),
    Operand("w", (128,)),
    Operand("y", ("T", 48, 128), like="x", output=True),
)


def gdn_norm_delta(
    x: torch.Tensor,
    z: torch.Tensor,
    w: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Launches `rmsnormGated` on the current stream of `x`'s device.

        y[t, h, i] = w[i] · (x[t, h, i] / √(Σ_j x[t, h, j]² / 128 + 1e-06)) · silu(z[t, h, i])

    x: [T, 48, 128], activation.
    z: [T, 48, 128], activation.
    w: [128], weight.
    Returns y [T, 48, 128]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (y,) = bind(OPERANDS, (x, z, w), (out,))
    T = sizes["T"]
    if y.numel() == 0:
        return y
    config = pick(CONFIGS, x, T * 48)
    grid = (T * triton.cdiv(48, config.tiles["ROWS"]),)
    with on(x.device):
        gdn_norm_delta_kernel[grid](
            x,
            z,
            w,
            y,
            x.stride(0),
            x.stride(1),
            z.stride(0),
            z.stride(1),
            y.stride(0),
            y.stride(1),
            **config.options(),
        )
    return y
