"""What is published of google/gemma-3-270m."""

from __future__ import annotations

from tests.models.published import RUN, TOKENS, Published

SLIDING, GLOBAL = "15: all but 5, 11, 17", "3: 5, 11, 17"
PUBLISHED = Published(
    268_098_176,
    (
        ("embed", "embed", "—", "mul=25.298221281347036, norm=False"),
        ("input_norm", "rmsnormOffset", "all 18", "H=640, eps=1e-06"),
        ("attn.qkv_proj", "linear", "all 18", "K=640, N=1536"),
        ("attn.qk_norm", "rmsnormOffset", "all 18", "D=256, eps=1e-06"),
        ("attn.rope", "rope", SLIDING, "D=256, rot=256, denom=256, active=128, theta=10000"),
        ("attn.core", "slidingDecodeGQA", SLIDING, "window=512, D=256, heads=4, kv_heads=1, scale=0.0625"),
        ("attn.rope", "rope", GLOBAL, "D=256, rot=256, denom=256, active=128, theta=1000000"),
        ("attn.core", "decodeGQA", GLOBAL, "D=256, heads=4, kv_heads=1, scale=0.0625"),
        ("attn.o_proj", "linear", "all 18", "K=1024, N=640"),
        ("post_mix_norm", "rmsnormOffset", "all 18", "H=640, eps=1e-06"),
        ("attn_residual", "residual", "all 18", "H=640, r=1, layer_scalar=False"),
        ("post_attn_norm", "rmsnormOffset", "all 18", "H=640, eps=1e-06"),
        ("mlp.gate_up", "linear", "all 18", "K=640, N=4096"),
        ("mlp.act", "geluMul", "all 18", "I=2048, act=gelu_pytorch_tanh"),
        ("mlp.down", "linear", "all 18", "K=2048, N=640"),
        ("post_ffn_norm", "rmsnormOffset", "all 18", "H=640, eps=1e-06"),
        ("mlp_residual", "residual", "all 18", "H=640, r=1, layer_scalar=False"),
        ("final_norm", "rmsnormOffset", "—", "H=640, eps=1e-06"),
        ("lm_head", "lmHead", "—", "mul=1, tied=True"),
    ),
    {
        "architectures": ["Gemma3ForCausalLM"],
        "vocab_size": 262144,
        "hidden_size": 640,
        "intermediate_size": 2048,
        "num_hidden_layers": 18,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "hidden_activation": "gelu_pytorch_tanh",
        "rms_norm_eps": 1e-06,
        "tie_word_embeddings": True,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {"rope_type": "default", "rope_theta": 1000000.0},
        },
        "attention_bias": False,
        "query_pre_attn_scalar": 256,
        "sliding_window": 512,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 3,
        "final_logit_softcapping": None,
        "attn_logit_softcapping": None,
        "use_bidirectional_attention": False,
        "model_type": "gemma3_text",
    },
    (
        *RUN, *TOKENS, "pad_token_id", "unk_token_id", "transformers_version", "dtype", "output_hidden_states",
        "output_attentions", "return_dict", "chunk_size_feed_forward", "is_encoder_decoder", "id2label", "label2id",
        "problem_type", "_sliding_window_pattern", "_name_or_path", "_model_name_or_path",
    ),
)  # fmt: skip
