"""The nodes of Qwen/Qwen3-0.6B@1.0 in order: one function for each kind of layer and phase."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from .nodes.attn import (
    attn_core_decode,
    attn_core_prefill,
    attn_o_proj,
    attn_qk_norm,
    attn_qkv_proj,
    attn_rope,
)
from .nodes.mlp import mlp_act, mlp_down, mlp_gate_up
from .nodes.trunk import attn_residual, embed, final_norm, input_norm, lm_head, mlp_residual, post_attn_norm
from .runtime import Precision, append, append_each, views


def before_layers(tokens: Tensor, w: Mapping[str, Tensor], p: Precision) -> Tensor:
    """What layer 0 reads."""
    h0 = embed(tokens, w["embed.w"], p)
    return h0


def layer_prefill(
    h: Tensor, w: Mapping[str, Tensor], cache: Mapping[str, Tensor], pos: Tensor, p: Precision
) -> Tensor:
    """A layer layer on T tokens of one sequence, at positions `pos`; `cache` is that sequence's."""
    x = input_norm(h, w["input_norm.w"], p)
    y = attn_qkv_proj(x, w["attn_qkv_proj.w"], p)
    q, k, v = views(y, (16, 128), (8, 128), (8, 128))
    qn = attn_qk_norm(q, w["attn_qk_norm.wq"], p)
    kn = attn_qk_norm(k, w["attn_qk_norm.wk"], p)
    qr = attn_rope(qn, pos, p)
    kr = attn_rope(kn, pos, p)
    k_cache = append(cache["k_cache"], kr, pos)
    v_cache = append(cache["v_cache"], v, pos)
    o = attn_core_prefill(qr, k_cache, v_cache, pos, p)
    a = attn_o_proj(o.flatten(1), w["attn_o_proj.w"], p)
    h1 = attn_residual(h, a, p)
    m = post_attn_norm(h1, w["post_attn_norm.w"], p)
    gate_up = mlp_gate_up(m, w["mlp_gate_up.w"], p)
    act = mlp_act(gate_up, p)
    ffn = mlp_down(act, w["mlp_down.w"], p)
    h2 = mlp_residual(h1, ffn, p)
    return h2


def layer_decode(
    h: Tensor, w: Mapping[str, Tensor], cache: Mapping[str, Tensor], seq_lens: Tensor, p: Precision
) -> Tensor:
    """A layer layer on the last token of each of B sequences of `seq_lens` tokens."""
    pos = seq_lens - 1
    x = input_norm(h, w["input_norm.w"], p)
    y = attn_qkv_proj(x, w["attn_qkv_proj.w"], p)
    q, k, v = views(y, (16, 128), (8, 128), (8, 128))
    qn = attn_qk_norm(q, w["attn_qk_norm.wq"], p)
    kn = attn_qk_norm(k, w["attn_qk_norm.wk"], p)
    qr = attn_rope(qn, pos, p)
    kr = attn_rope(kn, pos, p)
    k_cache = append_each(cache["k_cache"], kr, seq_lens)
    v_cache = append_each(cache["v_cache"], v, seq_lens)
    o = attn_core_decode(qr, k_cache, v_cache, seq_lens, p)
    a = attn_o_proj(o.flatten(1), w["attn_o_proj.w"], p)
    h1 = attn_residual(h, a, p)
    m = post_attn_norm(h1, w["post_attn_norm.w"], p)
    gate_up = mlp_gate_up(m, w["mlp_gate_up.w"], p)
    act = mlp_act(gate_up, p)
    ffn = mlp_down(act, w["mlp_down.w"], p)
    h2 = mlp_residual(h1, ffn, p)
    return h2


def after_layers(h: Tensor, w: Mapping[str, Tensor], p: Precision) -> Tensor:
    """From the residual stream after the last layer to the results."""
    hn = final_norm(h, w["final_norm.w"], p)
    logits = lm_head(hn, w["lm_head.w"], p)
    return logits
