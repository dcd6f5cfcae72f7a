"""The nodes of Qwen/Qwen3.8-27B@1.0 in order: one function for each kind of layer and phase."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from .nodes.attn import (
    attn_core_full_decode,
    attn_core_full_prefill,
    attn_gate_full,
    attn_o_proj_full,
    attn_qk_norm_full,
    attn_qkv_proj_full,
    attn_rope_full,
)
from .nodes.gdn import (
    gdn_conv_delta_decode,
    gdn_conv_delta_prefill,
    gdn_core_delta_decode,
    gdn_core_delta_prefill,
    gdn_gates_delta,
    gdn_in_proj_delta,
    gdn_norm_delta,
    gdn_out_proj_delta,
    gdn_q_scale_delta,
    gdn_qk_norm_delta,
)
from .nodes.mlp import mlp_act, mlp_down, mlp_gate_up
from .nodes.trunk import attn_residual, embed, final_norm, input_norm, lm_head, mlp_residual, post_attn_norm
from .runtime import Precision, append, append_each, views


def before_layers(tokens: Tensor, w: Mapping[str, Tensor], p: Precision) -> Tensor:
    """What layer 0 reads."""
    h0 = embed(tokens, w["embed.w"], p)
    return h0


def delta_prefill(
    h: Tensor, w: Mapping[str, Tensor], cache: Mapping[str, Tensor], pos: Tensor, p: Precision
) -> Tensor:
    """A delta layer on T tokens of one sequence, at positions `pos`; `cache` is that sequence's."""
    x = input_norm(h, w["input_norm.w"], p)
    y = gdn_in_proj_delta(x, w["gdn_in_proj_delta.w"], p)
    qkv, z, b, a_raw = views(y, (10240,), (48, 128), (48,), (48,))
    window, y_2 = gdn_conv_delta_prefill(cache["window"], qkv, w["gdn_conv_delta.w"], p)
    cache["window"].copy_(window)
    q, k, v = views(y_2, (16, 128), (16, 128), (48, 128))
    qn = gdn_qk_norm_delta(q, p)
    kn = gdn_qk_norm_delta(k, p)
    qs = gdn_q_scale_delta(qn, p)
    alpha, beta = gdn_gates_delta(a_raw, b, w["gdn_gates_delta.A_log"], w["gdn_gates_delta.dt_bias"], p)
    memory, o = gdn_core_delta_prefill(cache["memory"], qs, kn, v, alpha, beta, p)
    cache["memory"].copy_(memory)
    on = gdn_norm_delta(o, z, w["gdn_norm_delta.w"], p)
    a = gdn_out_proj_delta(on.flatten(1), w["gdn_out_proj_delta.w"], p)
    h1 = attn_residual(h, a, p)
    m = post_attn_norm(h1, w["post_attn_norm.w"], p)
    gate_up = mlp_gate_up(m, w["mlp_gate_up.w"], p)
    act = mlp_act(gate_up, p)
    ffn = mlp_down(act, w["mlp_down.w"], p)
    h2 = mlp_residual(h1, ffn, p)
    return h2


def delta_decode(
    h: Tensor, w: Mapping[str, Tensor], cache: Mapping[str, Tensor], seq_lens: Tensor, p: Precision
) -> Tensor:
    """A delta layer on the last token of each of B sequences of `seq_lens` tokens."""
    x = input_norm(h, w["input_norm.w"], p)
    y = gdn_in_proj_delta(x, w["gdn_in_proj_delta.w"], p)
    qkv, z, b, a_raw = views(y, (10240,), (48, 128), (48,), (48,))
    window, y_2 = gdn_conv_delta_decode(cache["window"], qkv, w["gdn_conv_delta.w"], p)
    cache["window"].copy_(window)
    q, k, v = views(y_2, (16, 128), (16, 128), (48, 128))
    qn = gdn_qk_norm_delta(q, p)
    kn = gdn_qk_norm_delta(k, p)
    qs = gdn_q_scale_delta(qn, p)
    alpha, beta = gdn_gates_delta(a_raw, b, w["gdn_gates_delta.A_log"], w["gdn_gates_delta.dt_bias"], p)
    memory, o = gdn_core_delta_decode(cache["memory"], qs, kn, v, alpha, beta, p)
    cache["memory"].copy_(memory)
    on = gdn_norm_delta(o, z, w["gdn_norm_delta.w"], p)
    a = gdn_out_proj_delta(on.flatten(1), w["gdn_out_proj_delta.w"], p)
    h1 = attn_residual(h, a, p)
    m = post_attn_norm(h1, w["post_attn_norm.w"], p)
    gate_up = mlp_gate_up(m, w["mlp_gate_up.w"], p)
    act = mlp_act(gate_up, p)
    ffn = mlp_down(act, w["mlp_down.w"], p)
    h2 = mlp_residual(h1, ffn, p)
    return h2


def full_prefill(
    h: Tensor, w: Mapping[str, Tensor], cache: Mapping[str, Tensor], pos: Tensor, p: Precision
) -> Tensor:
    """A full layer on T tokens of one sequence, at positions `pos`; `cache` is that sequence's."""
    x = input_norm(h, w["input_norm.w"], p)
    y = attn_qkv_proj_full(x, w["attn_qkv_proj_full.w"], p)
    q, k, v, gate = views(y, (24, 256), (4, 256), (4, 256), (24, 256))
    qn = attn_qk_norm_full(q, w["attn_qk_norm_full.wq"], p)
    kn = attn_qk_norm_full(k, w["attn_qk_norm_full.wk"], p)
    qr = attn_rope_full(qn, pos, p)
    kr = attn_rope_full(kn, pos, p)
    k_cache = append(cache["k_cache"], kr, pos)
    v_cache = append(cache["v_cache"], v, pos)
    o = attn_core_full_prefill(qr, k_cache, v_cache, pos, p)
    og = attn_gate_full(o.flatten(1), gate.flatten(1), p)
    a = attn_o_proj_full(og, w["attn_o_proj_full.w"], p)
    h1 = attn_residual(h, a, p)
    m = post_attn_norm(h1, w["post_attn_norm.w"], p)
    gate_up = mlp_gate_up(m, w["mlp_gate_up.w"], p)
    act = mlp_act(gate_up, p)
    ffn = mlp_down(act, w["mlp_down.w"], p)
    h2 = mlp_residual(h1, ffn, p)
    return h2


def full_decode(
    h: Tensor, w: Mapping[str, Tensor], cache: Mapping[str, Tensor], seq_lens: Tensor, p: Precision
) -> Tensor:
    """A full layer on the last token of each of B sequences of `seq_lens` tokens."""
    pos = seq_lens - 1
    x = input_norm(h, w["input_norm.w"], p)
    y = attn_qkv_proj_full(x, w["attn_qkv_proj_full.w"], p)
    q, k, v, gate = views(y, (24, 256), (4, 256), (4, 256), (24, 256))
    qn = attn_qk_norm_full(q, w["attn_qk_norm_full.wq"], p)
    kn = attn_qk_norm_full(k, w["attn_qk_norm_full.wk"], p)
    qr = attn_rope_full(qn, pos, p)
    kr = attn_rope_full(kn, pos, p)
    k_cache = append_each(cache["k_cache"], kr, seq_lens)
    v_cache = append_each(cache["v_cache"], v, seq_lens)
    o = attn_core_full_decode(qr, k_cache, v_cache, seq_lens, p)
    og = attn_gate_full(o.flatten(1), gate.flatten(1), p)
    a = attn_o_proj_full(og, w["attn_o_proj_full.w"], p)
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
