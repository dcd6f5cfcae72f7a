"""`rope` as node attn_rope.

    y[t, h, i] = if i < 64 then x[t, h, i] · cos(pos[t] · invFreq(10000000, 128, 64, i)) - x[t, h, i + 64] ·
        sin(pos[t] · invFreq(10000000, 128, 64, i)) else if i < 128 then x[t, h, i] · cos(pos[t] ·
        invFreq(10000000, 128, 64, i - 64)) + x[t, h, i - 64] · sin(pos[t] · invFreq(10000000, 128, 64, i -
        64)) else x[t, h, i]

Spec Key  ibm-granite/granite-3.3-8b-instruct@1.0:layers[*].attn.rope
Schedule  pointwise: no reduction: each element of `i` stands alone, cut at 64
Tensor    x [T, rows_1, 128], activation
Tensor    pos [T], int32 or int64
Tensor    y [T, rows_1, 128], activation, result
Table     table[i] = 10000000^(-(2 · i / 128)) for i < 64, float64
"""

from __future__ import annotations

import math
from functools import cache

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit
def turn_fraction(angle):
    """`angle` (float64, radians) in turns, less the nearest whole number, as float32 in [-0.5, 0.5]."""
    turns = angle * 0.15915494309189535
    return (turns - tl.floor(turns + 0.5)).to(tl.float32)


@triton.jit(do_not_specialize=["rows_1"])
def attn_rope_kernel(
    x_ptr,
    pos_ptr,
    y_ptr,
    table_ptr,
    rows_1,
    x_stride_t,
    x_stride_h,
    y_stride_t,
    y_stride_h,
    ROWS: tl.constexpr,
):
    """One program: all columns of ROWS of the rows along `h`."""
    blocks = tl.cdiv(rows_1, ROWS)
    t = tl.program_id(0) // blocks
    h = (tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS))[:, None]
    h_in = h < rows_1
    pos = tl.load(pos_ptr + t).to(tl.int64)
    i = tl.arange(0, 64)[None, :]
    x_row = x_ptr + t * x_stride_t + h * x_stride_h
    y_row = y_ptr + t * y_stride_t + h * y_stride_h
    x = tl.load(x_row + i, mask=h_in, other=0.0).to(tl.float32)
    table = tl.load(table_ptr + i)
    x_p64 = tl.load(x_row + (i + 64), mask=h_in, other=0.0).to(tl.float32)
    t1 = pos.to(tl.float64) * table
    t2 = libdevice.cospi(2.0 * turn_fraction(t1))
    t3 = libdevice.sinpi(2.0 * turn_fraction(t1))
    y = x * t2 - x_p64 * t3
    y_2 = x_p64 * t2 + x * t3
    tl.store(y_row + i, y.to(y_ptr.dtype.element_ty), mask=h_in)
    tl.store(y_row + (i + 64), y_2.to(y_ptr.dtype.element_ty), mask=h_in)


CONFIGS: Configs = {
    "sm_80": {
        2: (Config(None, 4, 1, {"ROWS": 32}),),
        4: (Config(None, 4, 1, {"ROWS": 32}),),
    },
    "sm_90": {
        2: (Config(None, 4, 1, {"ROWS": 32}),),
        4: (Config(None, 4, 1, {"ROWS": 32}),),
    },
    "sm_100": {
        2: (Config(None, 4, 1, {"ROWS": 32}),),
        4: (Config(None, 4, 1, {"ROWS": 32}),),
    },
}

OPERANDS = (
    Operand("x", ("T", "rows_1", 128)),
    Operand("pos", ("T",), index=True),
    Operand("y", ("T", "rows_1", 128), like="x", output=True),
)


@cache
def _table(device: torch.device) -> torch.Tensor:
    """10000000^(-(2 · i / 128)) for i < 64, in float64."""
    values = [math.pow(10000000, -(2 * i / 128)) for i in range(64)]
    return torch.tensor(values, dtype=torch.float64, device=device)


def attn_rope(x: torch.Tensor, pos: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Launches `rope` on the current stream of `x`'s device.

        y[t, h, i] = if i < 64 then x[t, h, i] · cos(pos[t] · invFreq(10000000, 128, 64, i)) - x[t, h, i + 64]
            · sin(pos[t] · invFreq(10000000, 128, 64, i)) else if i < 128 then x[t, h, i] · cos(pos[t] ·
            invFreq(10000000, 128, 64, i - 64)) + x[t, h, i - 64] · sin(pos[t] · invFreq(10000000, 128, 64, i
            - 64)) else x[t, h, i]

    x: [T, rows_1, 128], activation.
    pos: [T], int32 or int64.
    Returns y [T, rows_1, 128]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (y,) = bind(OPERANDS, (x, pos), (out,))
    T = sizes["T"]
    rows_1 = sizes["rows_1"]
    if y.numel() == 0:
        return y
    config = pick(CONFIGS, x, T * rows_1, ROWS=rows_1)
    grid = (T * triton.cdiv(rows_1, config.tiles["ROWS"]),)
    with on(x.device):
        attn_rope_kernel[grid](
            x,
            pos,
            y,
            _table(x.device),
            rows_1,
            x.stride(0),
            x.stride(1),
            y.stride(0),
            y.stride(1),
            **config.options(),
        )
    return y
