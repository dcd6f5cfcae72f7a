"""What is published of meta-models/Muse-Glimmer-30B."""

from __future__ import annotations

from tests.models.published import RUN, TOKENS, Published

NOT_EVERY_FOURTH = "39: all but 3, 7, …, 51"
EVERY_FOURTH = "13: 3, 7, …, 51"
PUBLISHED = Published(
    27_854_780_928,
    (
        ("embed", "embed", "—", "mul=1, norm=True, eps=1e-05"),
        ("input_norm", "rmsnormOffset", "all 52", "H=6656, eps=1e-05"),
        ("attn.qkv_proj", "linear", "all 52", "K=6656, N=8704"),
        ("attn.qk_norm", "rmsnormUnit", "all 52", "D=128, eps=1e-05"),
        ("attn.rope", "rope", NOT_EVERY_FOURTH, "D=128, rot=128, denom=128, active=64, theta=500000"),
        (
            "attn.core",
            "slidingDecodeGQA",
            NOT_EVERY_FOURTH,
            # The query scale 3.87 of the published attn.qk_norm stands in the scale, beside 1/√128.
            f"D=128, heads=32, kv_heads=2, scale={3.87 * 128**-0.5}, window=2048",
        ),
        ("attn.core", "decodeGQA", EVERY_FOURTH, f"D=128, heads=32, kv_heads=2, scale={3.87 * 128**-0.5}"),
        ("attn.gate", "sigmoidGate", "all 52", "N=4096"),
        ("attn.o_proj", "linear", "all 52", "K=4096, N=6656"),
        ("post_mix_norm", "rmsnormOffset", "all 52", "H=6656, eps=1e-08"),
        ("attn_residual", "residual", "all 52", "H=6656, r=1, layer_scalar=False"),
        ("post_attn_norm", "rmsnormOffset", "all 52", "H=6656, eps=1e-05"),
        ("mlp.gate_up", "linear", "all 52", "K=6656, N=39936"),
        ("mlp.act", "siluMul", "all 52", "I=19968, act=silu"),
        ("mlp.down", "linear", "all 52", "K=19968, N=6656"),
        ("post_ffn_norm", "rmsnormOffset", "all 52", "H=6656, eps=1e-08"),
        ("mlp_residual", "residual", "all 52", "H=6656, r=1, layer_scalar=False"),
        ("final_norm", "rmsnorm", "—", "H=6656, eps=1e-05"),
        ("lm_head", "lmHead", "—", "mul=0.19611613513818404, softcap=20, tied=False"),
    ),
    {
        "architectures": ["MuseGlimmerForConditionalGeneration"],
        "model_type": "muse_glimmer",
        "text_config": {
            "attention_bias": False,
            "final_logit_softcapping": 20.0,
            "head_dim": 128,
            "hidden_activation": "silu",
            "hidden_size": 6656,
            "intermediate_size": 19968,
            "layer_rope_theta": [500000.0, 500000.0, 500000.0, 0.0] * 13,
            "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 13,
            "model_type": "muse_glimmer_text",
            "num_attention_heads": 32,
            "num_hidden_layers": 52,
            "num_key_value_heads": 2,
            "output_multiplier": 0.19611613513818404,
            "post_norm_eps": 1e-08,
            "qk_scale_factor": 3.87,
            "rms_norm_eps": 1e-05,
            "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"},
            "sliding_window": 2048,
            "tie_word_embeddings": False,
            "vocab_size": 202048,
        },
    },
    (
        "dtype", "eos_token_id", "image_token_id", "video_token_id", "out_hidden_size", "projector_hidden_act",
        "projector_hidden_size", "transformers_version", *(f"text_config.{k}" for k in (*RUN, *TOKENS, "pad_token_id")),
    ),
)  # fmt: skip
