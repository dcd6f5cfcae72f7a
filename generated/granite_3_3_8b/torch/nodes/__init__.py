"""The nodes of ibm-granite/granite-3.3-8b-instruct@1.0, one function each."""

from .attn import attn_core_decode, attn_core_prefill, attn_o_proj, attn_qkv_proj, attn_rope
from .mlp import mlp_act, mlp_down, mlp_gate_up
from .trunk import attn_residual, embed, final_norm, input_norm, lm_head, mlp_residual, post_attn_norm

__all__ = [
    "attn_core_decode",
    "attn_core_prefill",
    "attn_o_proj",
    "attn_qkv_proj",
    "attn_residual",
    "attn_rope",
    "embed",
    "final_norm",
    "input_norm",
    "lm_head",
    "mlp_act",
    "mlp_down",
    "mlp_gate_up",
    "mlp_residual",
    "post_attn_norm",
]
