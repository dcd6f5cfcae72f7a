"""The nodes of meta-models/Muse-Glimmer-30B@1.0, one function each."""

from .attn import (
    attn_core_global_decode,
    attn_core_global_prefill,
    attn_core_sliding_decode,
    attn_core_sliding_prefill,
    attn_gate,
    attn_o_proj,
    attn_qk_norm,
    attn_qkv_proj,
    attn_rope_sliding,
)
from .mlp import mlp_act, mlp_down, mlp_gate_up
from .trunk import (
    attn_residual,
    embed,
    final_norm,
    input_norm,
    lm_head,
    mlp_residual,
    post_attn_norm,
    post_ffn_norm,
    post_mix_norm,
)

__all__ = [
    "attn_core_global_decode",
    "attn_core_global_prefill",
    "attn_core_sliding_decode",
    "attn_core_sliding_prefill",
    "attn_gate",
    "attn_o_proj",
    "attn_qk_norm",
    "attn_qkv_proj",
    "attn_residual",
    "attn_rope_sliding",
    "embed",
    "final_norm",
    "input_norm",
    "lm_head",
    "mlp_act",
    "mlp_down",
    "mlp_gate_up",
    "mlp_residual",
    "post_attn_norm",
    "post_ffn_norm",
    "post_mix_norm",
]
