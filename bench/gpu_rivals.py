"""What a person would write in torch for each op: the other side of the timings. Nothing is checked against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

Rival = Callable[..., Tensor]


def rival(op: str, constants: Mapping[str, float]) -> Rival | None:
    """The function of the operands in the order of the op's signature, or None for an op that is not known here."""
    make = RIVALS.get(op)
    return None if make is None else make(dict(constants))


def _norm(c: Mapping[str, float]) -> Rival:
    return lambda x, w: F.rms_norm(x, x.shape[-1:], w, c["eps"])


def _offset_norm(c: Mapping[str, float]) -> Rival:
    return lambda x, w: F.rms_norm(x, x.shape[-1:], 1 + w, c["eps"])


def _unit_norm(c: Mapping[str, float]) -> Rival:
    return lambda x: F.rms_norm(x, x.shape[-1:], None, c["eps"])


def _linear(c: Mapping[str, float]) -> Rival:
    return lambda x, w: F.linear(x, w)


def _head(c: Mapping[str, float]) -> Rival:
    cap = c.get("softcap")

    def head(x: Tensor, w: Tensor) -> Tensor:
        z = F.linear(x, w)
        return z if cap is None else cap * torch.tanh(z / cap)

    return head


def _gelu_mul(c: Mapping[str, float]) -> Rival:
    def act(gu: Tensor) -> Tensor:
        gate, up = gu.chunk(2, -1)
        return F.gelu(gate, approximate="tanh") * up

    return act


def _silu_mul(c: Mapping[str, float]) -> Rival:
    def act(gu: Tensor) -> Tensor:
        gate, up = gu.chunk(2, -1)
        return F.silu(gate) * up

    return act


def _gate(c: Mapping[str, float]) -> Rival:
    return lambda x, g: x * torch.sigmoid(g)


def _l2norm(c: Mapping[str, float]) -> Rival:
    return lambda x: x * torch.rsqrt(x.square().sum(-1, keepdim=True) + c["eps"])


def _scaled(c: Mapping[str, float]) -> Rival:
    return lambda x: c["mul"] * x


def _residual(c: Mapping[str, float]) -> Rival:
    def add(x: Tensor, h: Tensor, s: Tensor | None = None) -> Tensor:
        y = x + h * c["r"] if c.get("r", 1) != 1 else x + h
        return y if s is None else s * y

    return add


def _embed(c: Mapping[str, float]) -> Rival:
    def embed(tokens: Tensor, w: Tensor) -> Tensor:
        rows = F.embedding(tokens, w)
        return c.get("mul", 1.0) * (F.rms_norm(rows, rows.shape[-1:], None, c["eps"]) if c.get("norm") else rows)

    return embed


def _rope(c: Mapping[str, float]) -> Rival:
    half = int(c["rot"]) // 2

    def turn(x: Tensor, pos: Tensor) -> Tensor:
        i = torch.arange(half, device=x.device, dtype=torch.float32)
        frequency = torch.where(i < c["active"], c["theta"] ** (-2 * i / c["denom"]), torch.zeros_like(i))
        angle = (pos[:, None].float() * frequency)[:, None, :]
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), -1)

    return turn


def _mask(pos: Tensor, keys: int, c: Mapping[str, float]) -> Tensor:
    key = torch.arange(keys, device=pos.device)
    mask = key <= pos[:, None]
    return mask & (key > pos[:, None] - int(c["window"])) if "window" in c else mask


def _prefill(c: Mapping[str, float]) -> Rival:
    def attend(q: Tensor, k: Tensor, v: Tensor, pos: Tensor) -> Tensor:
        heads = [t.transpose(0, 1)[None] for t in (q, k, v)]
        whole = "window" not in c and len(q) == len(k)  # nothing lies in a cache: one position after the other
        mask = None if whole else _mask(pos, len(k), c)
        o = F.scaled_dot_product_attention(
            heads[0], heads[1], heads[2], attn_mask=mask, is_causal=whole, scale=c["scale"], enable_gqa=True
        )
        return o[0].transpose(0, 1)

    return attend


def _decode(c: Mapping[str, float]) -> Rival:
    def attend(q: Tensor, k: Tensor, v: Tensor, seq_lens: Tensor) -> Tensor:
        keys = torch.arange(k.shape[1], device=q.device)
        mask = keys < seq_lens[:, None]
        if "window" in c:
            mask = mask & (keys >= seq_lens[:, None] - int(c["window"]))
        o = F.scaled_dot_product_attention(
            q[:, :, None], k.transpose(1, 2), v.transpose(1, 2), attn_mask=mask[:, None, None], scale=c["scale"],
            enable_gqa=True,
        )  # fmt: skip
        return o[:, :, 0]

    return attend


RIVALS: Mapping[str, Callable[[Mapping[str, float]], Rival]] = {
    "rmsnorm": _norm,
    "rmsnormOffset": _offset_norm,
    "rmsnormUnit": _unit_norm,
    "l2norm": _l2norm,
    "scaled": _scaled,
    "sigmoidGate": _gate,
    "linear": _linear,
    "lmHead": _head,
    "geluMul": _gelu_mul,
    "siluMul": _silu_mul,
    "residual": _residual,
    "embed": _embed,
    "rope": _rope,
    "causalGQA": _prefill,
    "slidingGQA": _prefill,
    "decodeGQA": _decode,
    "slidingDecodeGQA": _decode,
}
