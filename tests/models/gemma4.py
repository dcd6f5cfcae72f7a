"""What is published of google/gemma-4-31B: its founding page, and config.json, of which `left_out` are further keys."""

from __future__ import annotations

from specc.page.markdown import plain
from tests.models.published import RUN, TOKENS, Published, leaves
from tests.page.founding import CONFIG, NODES, PARAMETERS

FLOATS: dict[str, object] = {
    "text_config.final_logit_softcapping": 30.0,
    "text_config.rope_parameters.full_attention.rope_theta": 1000000.0,
    "text_config.rope_parameters.sliding_attention.rope_theta": 10000.0,
}
"""What config.json has as floats and the founding page as whole numbers. The official class refuses 30."""

PUBLISHED = Published(
    PARAMETERS,
    tuple((node, op, layers, plain(constants)) for node, op, layers, constants in NODES),
    leaves(CONFIG) | FLOATS,
    (
        "model_type",
        *(f"text_config.{key}" for key in ("model_type", *RUN, *TOKENS, "pad_token_id", "vocab_size_per_layer_input")),
        *(f"text_config.{key}" for key in ("num_experts", "top_k_experts", "use_bidirectional_attention")),
    ),
)
