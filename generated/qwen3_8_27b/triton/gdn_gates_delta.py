"""`gdnGates` as node gdn_gates_delta.

    alpha[t, i] = exp(-exp(A_log[i]) · softplus(a[t, i] + dt_bias[i]))
    beta[t, i] = sigmoid(b[t, i])

Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.gates
Schedule  pointwise: no reduction: each element of `i` stands alone
Tensor    a [T, 48], activation, 64-bit offsets
Tensor    b [T, 48], activation, 64-bit offsets
Tensor    A_log [48], weight
Tensor    dt_bias [48], weight
Tensor    alpha [T, 48], accumulator, result
Tensor    beta [T, 48], accumulator, result
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .launch import Config, Configs, Operand, bind, on, pick


@triton.jit
def softplus(x):
    """softplus(x) = log(1 + exp(x))

    computed as max(x, 0) + log1p(exp(-abs(x)))
    """
    return tl.maximum(x, 0.0) + libdevice.log1p(tl.exp(-tl.abs(x)))


@triton.jit
def sigmoid(x):
    """sigmoid(x) = 1 / (1 + exp(-x))

    computed as (if x ≥ 0 then 1 else exp(-abs(x))) / (1 + exp(-abs(x)))
    """
    t1 = tl.exp(-tl.abs(x))
    return tl.where(x >= 0, 1.0, t1) / (1.0 + t1)


@triton.jit(do_not_specialize=["T"])
def gdn_gates_delta_kernel(
    a_ptr,
    b_ptr,
    A_log_ptr,
    dt_bias_ptr,
    alpha_ptr,
    beta_ptr,
    T,
    a_stride_t,
    b_stride_t,
    alpha_stride_t,
    beta_stride_t,
    ROWS: tl.constexpr,
):
    """One program: all columns of ROWS rows."""
    t = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    t_in = t < T
    i = tl.arange(0, 64)[None, :]
    i_in = i < 48
    a_row = a_ptr + t.to(tl.int64) * a_stride_t
    b_row = b_ptr + t.to(tl.int64) * b_stride_t
    alpha_row = alpha_ptr + t * alpha_stride_t
    beta_row = beta_ptr + t * beta_stride_t
    A_log = tl.load(A_log_ptr + i, mask=i_in, other=0.0).to(tl.float32)
    a = tl.load(a_row + i, mask=t_in & i_in, other=0.0).to(tl.float32)
    dt_bias = tl.load(dt_bias_ptr + i, mask=i_in, other=0.0).to(tl.float32)
    b = tl.load(b_row + i, mask=t_in & i_in, other=0.0).to(tl.float32)
    alpha = tl.exp(-tl.exp(A_log) * softplus(a + dt_bias))
    beta = sigmoid(b)
    tl.store(alpha_row + i, alpha.to(alpha_ptr.dtype.element_ty), mask=t_in & i_in)
    tl.store(beta_row + i, beta.to(beta_ptr.dtype.element_ty), mask=t_in & i_in)


CONFIGS: Configs = {
    "sm_80": {
        2: (Config(None, 4, 1, {"ROWS": 16}),),
        4: (Config(None, 8, 1, {"ROWS": 16}),),
    },
    "sm_90": {
        2: (Config(None, 4, 1, {"ROWS": 16}),),
        4: (Config(None, 8, 1, {"ROWS": 16}),),
    },
    "sm_100": {
        2: (Config(None, 4, 1, {"ROWS": 16}),),
        4: (Config(None, 8, 1, {"ROWS": 16}),),
    },
}

OPERANDS = (
    Operand("a", ("T", 48), wide=True),
    Operand("b", ("T", 48), like="a", wide=True),
    Operand("A_log", (48,)),
    Operand("dt_bias", (48,), like="A_log"),
    Operand("alpha", ("T", 48), output=True, accumulator=True),
    Operand("beta", ("T", 48), output=True, accumulator=True),
)


def gdn_gates_delta(
    a: torch.Tensor,
    b: torch.Tensor,
    A_log: torch.Tensor,
    dt_bias: torch.Tensor,
    *,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Launches `gdnGates` on the current stream of `a`'s device.

        alpha[t, i] = exp(-exp(A_log[i]) · softplus(a[t, i] + dt_bias[i]))
        beta[t, i] = sigmoid(b[t, i])

    a: [T, 48], activation.
    b: [T, 48], activation.
    A_log: [48], weight.
    dt_bias: [48], weight.
    Returns alpha [T, 48], beta [T, 48]: `out` if it is given, else new.

    Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take.
    """
    sizes, (alpha, beta) = bind(OPERANDS, (a, b, A_log, dt_bias), (None, None) if out is None else out)
    T = sizes["T"]
    if alpha.numel() == 0:
        return alpha, beta
    config = pick(CONFIGS, a, T)
    grid = (triton.cdiv(T, config.tiles["ROWS"]),)
    with on(a.device):
        gdn_gates_delta_kernel[grid](
            a,
            b,
            A_log,
            dt_bias,
            alpha,
            beta,
            T,
            a.stride(0),
            b.stride(0),
            alpha.stride(0),
            beta.stride(0),
            **config.options(),
        )
    return alpha, beta
