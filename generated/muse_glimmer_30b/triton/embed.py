"""`embed` as node embed.

    y[t, i] = 1 · w[tokens[t], i] / √(Σ_j w[tokens[t], j]² / 6656 + 1e-05)

Spec Key  meta-models/Muse-Glimmer-30B@1.0:embed
Schedule  row_reduction: every reduction runs over the whole row: Σ over `i`
Tensor    tokens [T], int32 or int64
Tensor    w [202048, 6656], weight
Tensor    y [T, 6656], activation, result
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
    TILE: tl.constexpr,
):
    """One program: one row."""
    t = tl.program_id(0)
    tokens = tl.load(tokens_ptr + t).to(tl.int64)
    w_found = (tokens >= 0) & (tokens < 202048)
    w_row = w_ptr + tl.where(w_found, tokens, 0).to(tl.int32) * w_stride_tokens
    y_row = y_ptr + t * y_stride_t
    lane = tl.arange(0, TILE)
    w_all = ()
    part = tl.full((TILE,), 0.0, tl.float32)
    for piece in tl.static_range(0, 6656, TILE):
        i = piece + lane
        i_in = i < 6656 if piece + TILE > 6656 else tl.full((TILE,), True, tl.int1)
        w = tl.load(w_row + i, mask=i_in & w_found, other=float("nan")).to(tl.float32)
        w_all = w_all + (w,)
        r1_values = tl.where(i_in, w * w, 0.0)
        part = part + r1_values
    r1_raw = tl.sum(part, 0)
    r1 = 1.0 / tl.sqrt_rn(r1_raw / 6656.0 + 1e-05)
    for piece in tl.static_range(0, 6656, TILE):
        i = piece + lane
        i_in = i < 6656 if piece + TILE > 6656 else tl.full((TILE,), True, tl.int1)
        w = w_all[piece // TILE]
        y = w * r1
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
    Operand("tokens", ("T",), index=True),
    Operand("w", (202048, 6656)),
    Operand("y", ("T", 6656), like="w", output=True),
)


def embed(tokens: torch.Tensor, w: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Launches `embed` on the current stream of `w`'s device.

        y[t, i] = 1 · w[tokens[t], i] / √(Σ_j w[tokens[t], j]² / 6656 + 1e-05)

    tokens: [T], int32 or int64.
    w: [202048, 6656], weight.
    Returns y [T, 6656]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (y,) = bind(OPERANDS, (tokens, w), (out,))
    T = sizes["T"]
    if y.numel() == 0:
        return y
    config = pick(CONFIGS, w, T)
    grid = (T,)
    with on(w.device):
        embed_kernel[grid](tokens, w, y, w.stride(0), y.stride(0), **config.options())
    return y
