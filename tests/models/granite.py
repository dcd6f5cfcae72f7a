"""What is published of ibm-granite/granite-3.3-8b-instruct."""

from __future__ import annotations

from tests.models.published import RUN, SAVED, TOKENS, Published

PUBLISHED = Published(
    8_170_864_640,
    (
        ("embed", "embed", "—", "mul=12, norm=False"),
        ("input_norm", "rmsnorm", "all 40", "H=4096, eps=1e-05"),
        ("attn.qkv_proj", "linear", "all 40", "K=4096, N=6144"),
        ("attn.rope", "rope", "all 40", "D=128, rot=128, denom=128, active=64, theta=10000000"),
        ("attn.core", "decodeGQA", "all 40", "D=128, heads=32, kv_heads=8, scale=0.0078125"),
        ("attn.o_proj", "linear", "all 40", "K=4096, N=4096"),
        ("attn_residual", "residual", "all 40", "H=4096, r=0.22, layer_scalar=False"),
        ("post_attn_norm", "rmsnorm", "all 40", "H=4096, eps=1e-05"),
        ("mlp.gate_up", "linear", "all 40", "K=4096, N=25600"),
        ("mlp.act", "siluMul", "all 40", "I=12800, act=silu"),
        ("mlp.down", "linear", "all 40", "K=12800, N=4096"),
        ("mlp_residual", "residual", "all 40", "H=4096, r=0.22, layer_scalar=False"),
        ("final_norm", "rmsnorm", "—", "H=4096, eps=1e-05"),
        ("lm_head", "lmHead", "—", "mul=0.0625, tied=True"),
    ),
    {
        "architectures": ["GraniteForCausalLM"],
        "attention_bias": False,
        "attention_multiplier": 0.0078125,
        "embedding_multiplier": 12.0,
        "hidden_act": "silu",
        "hidden_size": 4096,
        "intermediate_size": 12800,
        "logits_scaling": 16.0,
        "mlp_bias": False,
        "model_type": "granite",
        "num_attention_heads": 32,
        "num_hidden_layers": 40,
        "num_key_value_heads": 8,
        "residual_multiplier": 0.22,
        "rms_norm_eps": 1e-05,
        "rope_scaling": None,
        "rope_theta": 10000000.0,
        "tie_word_embeddings": True,
        "vocab_size": 49159,
    },
    (*RUN, *TOKENS, *SAVED, "pad_token_id"),
)
