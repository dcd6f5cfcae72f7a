"""What is published of Qwen/Qwen3.8-27B."""

from __future__ import annotations

from tests.models.published import RUN, TOKENS, Published

DELTA, FULL = "48: all but 3, 7, …, 63", "16: 3, 7, …, 63"
PUBLISHED = Published(
    26_895_998_464,
    (
        ("embed", "embed", "—", "mul=1, norm=False"),
        ("input_norm", "rmsnormOffset", "all 64", "H=5120, eps=1e-06"),
        ("gdn.in_proj", "linear", DELTA, "K=5120, N=16480"),
        ("gdn.conv", "causalConvSiluStep", DELTA, "C=10240, K=4"),
        ("gdn.qk_norm", "l2norm", DELTA, "D=128, eps=1e-06"),
        # Published as a constant of gdn.qk_norm.
        ("gdn.q_scale", "scaled", DELTA, "mul=0.08838834764831845"),
        ("gdn.gates", "gdnGates", DELTA, "H=48"),
        ("gdn.core", "gdnStep", DELTA, "Hv=48, Hk=16, Dk=128, Dv=128"),
        ("gdn.norm", "rmsnormGated", DELTA, "H=128, eps=1e-06"),
        ("gdn.out_proj", "linear", DELTA, "K=6144, N=5120"),
        ("attn.qkv_proj", "linear", FULL, "K=5120, N=14336"),
        ("attn.qk_norm", "rmsnormOffset", FULL, "D=256, eps=1e-06"),
        ("attn.rope", "rope", FULL, "D=256, rot=64, denom=64, active=32, theta=10000000"),
        ("attn.core", "decodeGQA", FULL, "D=256, heads=24, kv_heads=4, scale=0.0625"),
        ("attn.gate", "sigmoidGate", FULL, "N=6144"),
        ("attn.o_proj", "linear", FULL, "K=6144, N=5120"),
        ("attn_residual", "residual", "all 64", "H=5120, r=1, layer_scalar=False"),
        ("post_attn_norm", "rmsnormOffset", "all 64", "H=5120, eps=1e-06"),
        ("mlp.gate_up", "linear", "all 64", "K=5120, N=34816"),
        ("mlp.act", "siluMul", "all 64", "I=17408, act=silu"),
        ("mlp.down", "linear", "all 64", "K=17408, N=5120"),
        ("mlp_residual", "residual", "all 64", "H=5120, r=1, layer_scalar=False"),
        ("final_norm", "rmsnormOffset", "—", "H=5120, eps=1e-06"),
        ("lm_head", "lmHead", "—", "mul=1, tied=False"),
    ),
    {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "tie_word_embeddings": False,
        "text_config": {
            "attention_bias": False,
            "attn_output_gate": True,
            "full_attention_interval": 4,
            "head_dim": 256,
            "hidden_act": "silu",
            "hidden_size": 5120,
            "intermediate_size": 17408,
            "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 16,
            "linear_conv_kernel_dim": 4,
            "linear_key_head_dim": 128,
            "linear_num_key_heads": 16,
            "linear_num_value_heads": 48,
            "linear_value_head_dim": 128,
            "model_type": "qwen3_5_text",
            "num_attention_heads": 24,
            "num_hidden_layers": 64,
            "num_key_value_heads": 4,
            "output_gate_type": "swish",
            "partial_rotary_factor": 0.25,
            "rms_norm_eps": 1e-06,
            "rope_parameters": {"partial_rotary_factor": 0.25, "rope_theta": 10000000.0, "rope_type": "default"},
            "tie_word_embeddings": False,
            "vocab_size": 248320,
        },
    },
    (
        "image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id", "language_model_only",
        "text_config.rope_parameters.mrope_interleaved", "text_config.rope_parameters.mrope_section",
        *(f"text_config.{key}" for key in (*RUN, *TOKENS, "pad_token_id", "dtype", "mamba_ssm_dtype")),
        "text_config.mtp_num_hidden_layers", "text_config.mtp_use_dedicated_embeddings",
    ),
)  # fmt: skip
