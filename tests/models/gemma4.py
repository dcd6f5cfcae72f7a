"""What is published of google/gemma-4-31B: its founding page; `left_out` are further keys of config.json."""

from __future__ import annotations

from specc.page.markdown import plain
from tests.models.published import RUN, TOKENS, Published
from tests.page.founding import NODES, PARAMETERS

PUBLISHED = Published(
    PARAMETERS,
    tuple((node, op, layers, plain(constants)) for node, op, layers, constants in NODES),
    {
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
    },
    (
        "model_type",
        *(f"text_config.{key}" for key in ("model_type", *RUN, *TOKENS, "pad_token_id", "vocab_size_per_layer_input")),
        *(f"text_config.{key}" for key in ("num_experts", "top_k_experts", "use_bidirectional_attention")),
    ),
)
