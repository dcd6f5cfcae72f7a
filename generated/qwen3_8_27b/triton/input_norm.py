"""`rmsnormOffset` as node input_norm.

    y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 5120 + 1e-06) · (1 + w[i])

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].input_norm
Schedule  row_reduction: every reduction runs over the whole row: Σ over `i`
Tensor    x [T, 5120], activation
Tensor    w [5120], weight
Tensor    y [T, 5120], activation, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit
def input_norm_kernel(
    x_ptr,
    w_ptr,
    y_ptr,
    x_stride_t,
    y_stride_t,
    TILE: tl.constexpr,
):
    """One program: one row."""
    t = tl.program_id(0)
    x_row = x_ptr + t * x_stride_t
    y_row = y_ptr + t * y_stride_t
    lane = tl.arange(0, TILE)
    x_all = ()
    part = tl.full((TILE,), 0.0, tl.float32)
    for piece in tl.static_range(0, 5120, TILE):
        i = piece + lane
        i_in = i < 5120 if piece + TILE > 5120 else tl.full((TILE,), True, tl.int1)
        x = tl.load(x_row + i, mask=i_in, other=0.0).to(tl.float32)
        x_all = x_all + (x,)
        r1_values = tl.where(i_in, x * x, 0.0)
        part = part + r1_values
    r1_raw = tl.sum(part, 0)
    r1 = 1.0 / tl.sqrt_rn(r1_raw / 5120.0 + 1e-06)
    for piece in tl.static_range(0, 5120, TILE):
        i = piece + lane
        i_in = i < 5120 if piece + TILE > 5120 else tl.full((TILE,), True, tl.int1)
        x = x_all[piece // TILE]
        w = tl.load(w_ptr + i, mask=i_in, other=0.0).to(tl.float32)
        y = x * r1 * (1.0 + w)
        tl.store(y_row + i, y.to(y_ptr.dtype.element_ty), mask=i_in)


CONFIGS: Configs = {
    "sm_80": {
        2: (Config(None, 8, 1, {"TILE": 2048}),),
        4: (Config(None, 8, 1, {"TILE": 1024}),),
    },
    "sm_90": {
        2: (Config(None, 8, 1, {"TILE": 2048}),),
        4: (Config(None, 8, 1, {"TILE": 1024}),),
    },
    "sm_100": {
        2: (Config(None, 8, 1, {"TILE": 2048}),),
        4: (Config(None, 8, 1, {"TILE": 1024}),),
    },
}

OPERANDS = (
    Operand("x", ("T", 5120)),
    Operand("w", (5120,)),
    Operand("y", ("T", 5120), like="x", output=True),
)


def input_norm(x: torch.Tensor, w: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Launches `rmsnormOffset` on the current stream of `x`'s device.

        y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 5120 + 1e-06) · (1 + w[i])

    x: [T, 5120], activation.
    w: [5120], weight.
    Returns y [T, 5120]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (y,) = bind(OPERANDS, (x, w), (out,))
    T = sizes["T"]
    if y.numel() == 0:
        return y
    config = pick(CONFIGS, x, T)
    grid = (T,)
    with on(x.device):
        input_norm_kernel[grid](x, w, y, x.stride(0), y.stride(0), **config.options())
    return y
