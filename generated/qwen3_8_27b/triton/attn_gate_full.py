"""`sigmoidGate` as node attn_gate_full.

    y[t, i] = o[t, i] · sigmoid(gate[t, i])

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].attn.gate
Schedule  pointwise: no reduction: each element of `i` stands alone
Tensor    o [T, 6144], activation
Tensor    gate [T, 6144], activation, 64-bit offsets
Tensor    y [T, 6144], activation, result
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
def attn_gate_full_kernel(
    o_ptr,
    gate_ptr,
    y_ptr,
    o_stride_t,
    gate_stride_t,
    y_stride_t,
    BLOCK: tl.constexpr,
):
    """One program: BLOCK columns of one row."""
    t = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    i_in = i < 6144 if 6144 % BLOCK != 0 else tl.full((BLOCK,), True, tl.int1)
    o_row = o_ptr + t * o_stride_t
    gate_row = gate_ptr + t.to(tl.int64) * gate_stride_t
    y_row = y_ptr + t * y_stride_t
    o = tl.load(o_row + i, mask=i_in, other=0.0).to(tl.float32)
    gate = tl.load(gate_row + i, mask=i_in, other=0.0).to(tl.float32)
    y = o * sigmoid(gate)
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
    Operand("o", ("T", 6144)),
    Operand("gate", ("T", 6144), like="o", wide=True),
    Operand("y", ("T", 6144), like="o", output=True),
)


def attn_gate_full(o: torch.Tensor, gate: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Launches `sigmoidGate` on the current stream of `o`'s device.

        y[t, i] = o[t, i] · sigmoid(gate[t, i])

    o: [T, 6144], activation.
    gate: [T, 6144], activation.
    Returns y [T, 6144]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (y,) = bind(OPERANDS, (o, gate), (out,))
    T = sizes["T"]
    if y.numel() == 0:
        return y
    config = pick(CONFIGS, o, T)
    grid = (T, triton.cdiv(6144, config.tiles["BLOCK"]))
    with on(o.device):
        attn_gate_full_kernel[grid](o, gate, y, o.stride(0), gate.stride(0), y.stride(0), **config.options())
    return y
