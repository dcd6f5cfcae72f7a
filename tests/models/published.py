"""What is published of each shipped model: parameters, node table, configuration. Transcribed by hand.

The configuration has the keys that the architecture determines; `LEFT_OUT` names the others."""

from __future__ import annotations

import json
from dataclasses import dataclass

Row = tuple[str, str, str, str]
"""Node, Op Spec, Layers, Constants; a number in the constants is compared as a number."""


@dataclass(frozen=True)
class Published:
    parameters: int
    nodes: tuple[Row, ...]
    config: dict[str, object]
    """Objects in objects, or values by dotted key."""
    left_out: tuple[str, ...]
    """Dotted keys of the published configuration that the architecture does not determine."""


def leaves(config: object, prefix: str = "") -> dict[str, object]:
    """The values of a configuration by dotted key."""
    if not isinstance(config, dict):
        return {prefix[:-1]: config}
    return {key: leaf for name, value in config.items() for key, leaf in leaves(value, f"{prefix}{name}.").items()}


def texts(config: object) -> dict[str, str]:
    """The values by dotted key as JSON, which tells `30` from `30.0` and `1` from `true`."""
    return {key: json.dumps(value) for key, value in leaves(config).items()}


NOT_ARCHITECTURE = {
    "how a run goes, not what is computed": (
        "use_cache", "output_hidden_states", "output_attentions", "return_dict", "chunk_size_feed_forward",
        "is_encoder_decoder", "id2label", "label2id", "problem_type", "transformers_version", "_name_or_path",
        "_model_name_or_path",
    ),
    "training only": ("attention_dropout", "initializer_range"),
    "the tokenizer's": ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id"),
    "the storage type of a checkpoint; the rounding profile states it": ("torch_dtype", "dtype", "mamba_ssm_dtype"),
    "a limit on use; the domain states it": ("max_position_embeddings",),
    "other inputs than text": (
        "image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id", "language_model_only",
        "out_hidden_size", "projector_hidden_act", "projector_hidden_size", "use_bidirectional_attention",
        "mrope_interleaved", "mrope_section",
    ),
    "layers that the official class of the text path does not have": (
        "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "num_experts", "top_k_experts",
        "vocab_size_per_layer_input",
    ),
    "says again what another key says": ("_sliding_window_pattern",),
    "the founding page renders the configuration without it": ("model_type",),
}  # fmt: skip
"""Why a published key is not in a rendered configuration."""

RUN = ("use_cache", "attention_dropout", "initializer_range", "max_position_embeddings")
TOKENS = ("bos_token_id", "eos_token_id")
SAVED = ("torch_dtype", "transformers_version")
