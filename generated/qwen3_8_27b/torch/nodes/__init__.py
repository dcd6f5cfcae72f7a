"""The nodes of Qwen/Qwen3.8-27B@1.0, one function each."""

from .attn import (
    attn_core_full_decode,
    attn_core_full_prefill,
    attn_gate_full,
    attn_o_proj_full,
    attn_qk_norm_full,
    attn_qkv_proj_full,
    attn_rope_full,
)
from .gdn import (
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
from .mlp import mlp_act, mlp_down, mlp_gate_up
from .trunk import attn_residual, embed, final_norm, input_norm, lm_head, mlp_residual, post_attn_norm

__all__ = [
    "attn_core_full_decode",
    "attn_core_full_prefill",
    "attn_gate_full",
    "attn_o_proj_full",
    "attn_qk_norm_full",
    "attn_qkv_proj_full",
    "attn_residual",
    "attn_rope_full",
    "embed",
    "final_norm",
    "gdn_conv_delta_decode",
    "gdn_conv_delta_prefill",
    "gdn_core_delta_decode",
    "gdn_core_delta_prefill",
    "gdn_gates_delta",
    "gdn_in_proj_delta",
    "gdn_norm_delta",
    "gdn_out_proj_delta",
    "gdn_q_scale_delta",
    "gdn_qk_norm_delta",
    "input_norm",
    "lm_head",
    "mlp_act",
    "mlp_down",
    "mlp_gate_up",
    "mlp_residual",
    "post_attn_norm",
]
