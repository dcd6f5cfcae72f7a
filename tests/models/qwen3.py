"""What is published of Qwen/Qwen3-0.6B."""

from __future__ import annotations

from tests.models.published import RUN, SAVED, TOKENS, Published

PUBLISHED = Published(
    596_049_920,
    (
        ("embed", "embed", "—", "mul=1, norm=False"),
        ("input_norm", "rmsnorm", "all 28", "H=1024, eps=1e-06"),
        ("attn.qkv_proj", "linear", "all 28", "K=1024, N=4096"),
        ("attn.qk_norm", "rmsnorm", "all 28", "D=128, eps=1e-06"),
        ("attn.rope", "rope", "all 28", "D=128, rot=128, denom=128, active=64, theta=1000000"),
        ("attn.core", "decodeGQA", "all 28", "D=128, heads=16, kv_heads=8, scale=0.08838834764831845"),
        ("attn.o_proj", "linear", "all 28", "K=2048, N=1024"),
        ("attn_residual", "residual", "all 28", "H=1024, r=1, layer_scalar=False"),
        ("post_attn_norm", "rmsnorm", "all 28", "H=1024, eps=1e-06"),
        ("mlp.gate_up", "linear", "all 28", "K=1024, N=6144"),
        ("mlp.act", "siluMul", "all 28", "I=3072, act=silu"),
        ("mlp.down", "linear", "all 28", "K=3072, N=1024"),
        ("mlp_residual", "residual", "all 28", "H=1024, r=1, layer_scalar=False"),
        ("final_norm", "rmsnorm", "—", "H=1024, eps=1e-06"),
        ("lm_head", "lmHead", "—", "mul=1, tied=True"),
    ),
    {
        "architectures": ["Qwen3ForCausalLM"],
        "attention_bias": False,
        "head_dim": 128,
        "hidden_act": "silu",
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "max_window_layers": 28,
        "model_type": "qwen3",
        "num_attention_heads": 16,
        "num_hidden_layers": 28,
        "num_key_value_heads": 8,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 1000000,
        "sliding_window": None,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "vocab_size": 151936,
    },
    (*RUN, *TOKENS, *SAVED),
)
