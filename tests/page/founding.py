"""What the founding page of google/gemma-4-31B says, cell by cell, as Markdown."""

from __future__ import annotations

PARAMETERS = 30_697_345_340

FACTS: tuple[tuple[str, str], ...] = (
    ("Model key", "`google/gemma-4-31B`"),
    ("Parameters (text model)", "30,697,345,340"),
    ("Layers", "60 (50 sliding-window attention, 10 full attention)"),
    ("Hidden size", "5,376"),
    ("MLP width", r"21,504 (gelu\_pytorch\_tanh)"),
    ("Vocabulary", "262,144"),
    ("Norm", "`w·x̂`, ε = 1e-06"),
    ("Embedding", "tied to the LM head, × √5376"),
    ("Logits", "soft-capped at 30"),
    ("Hugging Face class", "`Gemma4ForConditionalGeneration`"),
    (
        "Shape domain",
        r"`T` ∈ \[1, 262,144] tokens, `B` ∈ \[1, 256] sequences, "
        r"`S` ∈ \[1, 262,144] cached positions, page size 16",
    ),
)

NODES: tuple[tuple[str, str, str, str], ...] = (
    ("embed", "embed", "—", "mul=√5376, norm=False"),
    ("input_norm", "rmsnorm", "all 60", "H=5376, eps=1e-06"),
    ("attn.qkv_proj", "linear", "50: all but 5, 11, …, 59", "K=5376, N=16384"),
    ("attn.qk_norm", "rmsnorm", "50: all but 5, 11, …, 59", "D=256, eps=1e-06"),
    ("attn.v_norm", "rmsnormUnit", "50: all but 5, 11, …, 59", "D=256, eps=1e-06"),
    ("attn.rope", "rope", "50: all but 5, 11, …, 59", "D=256, active=128, denom=256, rot=256, theta=10000"),
    (
        "attn.core",
        "slidingDecodeGQA",
        "50: all but 5, 11, …, 59",
        r"D=256, heads=32, kv\_heads=16, scale=1, window=1024",
    ),
    ("attn.o_proj", "linear", "50: all but 5, 11, …, 59", "K=8192, N=5376"),
    ("post_mix_norm", "rmsnorm", "all 60", "H=5376, eps=1e-06"),
    ("attn_residual", "residual", "all 60", r"H=5376, layer\_scalar=False, r=1"),
    ("post_attn_norm", "rmsnorm", "all 60", "H=5376, eps=1e-06"),
    ("mlp.gate_up", "linear", "all 60", "K=5376, N=43008"),
    ("mlp.act", "geluMul", "all 60", r"I=21504, act=gelu\_pytorch\_tanh"),
    ("mlp.down", "linear", "all 60", "K=21504, N=5376"),
    ("post_ffn_norm", "rmsnorm", "all 60", "H=5376, eps=1e-06"),
    ("mlp_residual", "residual", "all 60", r"H=5376, layer\_scalar=True, r=1"),
    ("attn.qkv_proj", "linear", "10: 5, 11, …, 59", "K=5376, N=18432"),
    ("attn.qk_norm", "rmsnorm", "10: 5, 11, …, 59", "D=512, eps=1e-06"),
    ("attn.v_norm", "rmsnormUnit", "10: 5, 11, …, 59", "D=512, eps=1e-06"),
    ("attn.rope", "rope", "10: 5, 11, …, 59", "D=512, active=64, denom=512, rot=512, theta=1000000"),
    ("attn.core", "decodeGQA", "10: 5, 11, …, 59", r"D=512, heads=32, kv\_heads=4, scale=1"),
    ("attn.o_proj", "linear", "10: 5, 11, …, 59", "K=16384, N=5376"),
    ("final_norm", "rmsnorm", "—", "H=5376, eps=1e-06"),
    ("lm_head", "lmHead", "—", "mul=1, softcap=30, tied=True"),
)
"""Node, Op Spec, Layers, Constants, in the order of the page."""

TENSORS: tuple[tuple[str, str], ...] = (
    ("embed", r"`tokens` \[T], `y` \[T, 5376]"),
    ("input_norm", r"`x` \[T, 5376], `y` \[T, 5376]"),
    ("attn.qkv_proj", r"`x` \[T, 5376], `y` \[T, 16384]"),
    ("attn.qk_norm", r"`q` \[T, 32, 256], `k` \[T, 16, 256], `q_out` \[T, 32, 256], `k_out` \[T, 16, 256]"),
    ("attn.v_norm", r"`v` \[T, 16, 256], `v_out` \[T, 16, 256]"),
    ("attn.rope", r"`q` \[T, 32, 256], `k` \[T, 16, 256], `pos` \[T], `q_out` \[T, 32, 256], `k_out` \[T, 16, 256]"),
    ("attn.core", r"`q` \[B, 32, 256], `k` \[B, S, 16, 256], `v` \[B, S, 16, 256], `seq_lens` \[B], `o` \[B, 32, 256]"),
    ("attn.o_proj", r"`x` \[T, 8192], `y` \[T, 5376]"),
    ("post_mix_norm", r"`x` \[T, 5376], `y` \[T, 5376]"),
    ("attn_residual", r"`x` \[T, 5376], `h` \[T, 5376], `y` \[T, 5376]"),
    ("post_attn_norm", r"`x` \[T, 5376], `y` \[T, 5376]"),
    ("mlp.gate_up", r"`x` \[T, 5376], `y` \[T, 43008]"),
    ("mlp.act", r"`gate_up` \[T, 43008], `y` \[T, 21504]"),
    ("mlp.down", r"`x` \[T, 21504], `y` \[T, 5376]"),
    ("post_ffn_norm", r"`x` \[T, 5376], `y` \[T, 5376]"),
    ("mlp_residual", r"`x` \[T, 5376], `h` \[T, 5376], `y` \[T, 5376]"),
    ("final_norm", r"`x` \[T, 5376], `y` \[T, 5376]"),
    ("lm_head", r"`x` \[T, 5376], `logits` \[T, 262144]"),
)
"""Node (its first variant), inputs and outputs."""

CONFIG: dict[str, object] = {
    "tie_word_embeddings": True,
    "text_config": {
        "vocab_size": 262144,
        "use_double_wide_mlp": False,
        "tie_word_embeddings": True,
        "sliding_window": 1024,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000},
            "full_attention": {
                "rope_type": "proportional",
                "rope_theta": 1000000,
                "partial_rotary_factor": 0.25,
            },
        },
        "rms_norm_eps": 1e-06,
        "num_kv_shared_layers": 0,
        "num_key_value_heads": 16,
        "num_hidden_layers": 60,
        "num_global_key_value_heads": 4,
        "num_attention_heads": 32,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 10,
        "intermediate_size": 21504,
        "hidden_size_per_layer_input": 0,
        "hidden_size": 5376,
        "hidden_activation": "gelu_pytorch_tanh",
        "head_dim": 256,
        "global_head_dim": 512,
        "final_logit_softcapping": 30,
        "enable_moe_block": False,
        "attention_k_eq_v": True,
        "attention_bias": False,
    },
    "architectures": ["Gemma4ForConditionalGeneration"],
}
"""The published configuration, as the page prints it: a whole number has no point."""
