"""`embed` as node embed.

    y[t, i] = √5376 · w[tokens[t], i]

Spec Key  google/gemma-4-31B@1.0:embed
Schedule  gather: no reduction: each element of `i` stands alone
Tensor    tokens [T], int32 or int64
Tensor    w [262144, 5376], weight
Tensor    y [T, 5376], activation, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit
def embed_kernel(
    tokens_ptr,
    w_ptr,
    y_ptr,
    w_stride_tokens,
    y_stride_t,
    BLOCK: tl.constexpr,
):
    """One program: BLOCK columns of one row."""
    t = tl.program_id(0)
    tokens = tl.load(tokens_ptr + t).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    i_in = i < 5376 if 5376 % BLOCK != 0 else tl.full((BLOCK,), True, tl.int1)
    w_found = (tokens >= 0) & (tokens < 262144)
    w_row = w_ptr + tl.where(w_found, tokens, 0).to(tl.int32) * w_stride_tokens
    y_row = y_ptr + t * y_stride_t
    w = tl.load(w_row + i, mask=i_in & w_found, other=float("nan")).to(tl.float32)
    y = tl.full((), 73.32121111929344, tl.float32).to(w_ptr.dtype.element_ty).to(tl.float32) * w
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
    Operand("tokens", ("T",), index=True),
    Operand("w", (262144, 5376)),
    Operand("y", ("T", 5376), like="w", output=True),
)


def embed(tokens: torch.Tensor, w: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Launches `embed` on the current stream of `w`'s device.

        y[t, i] = √5376 · w[tokens[t], i]

    tokens: [T], int32 or int64.
    w: [262144, 5376], weight.
    Returns y [T, 5376]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (y,) = bind(OPERANDS, (tokens, w), (out,))
    T = sizes["T"]
    if y.numel() == 0:
        return y
    config = pick(CONFIGS, w, T)
    grid = (T, triton.cdiv(5376, config.tiles["BLOCK"]))
    with on(w.device):
        embed_kernel[grid](tokens, w, y, w.stride(0), y.stride(0), **config.options())
    return y
