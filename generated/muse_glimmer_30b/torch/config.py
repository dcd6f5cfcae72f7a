"""What meta-models/Muse-Glimmer-30B@1.0 is made of: kinds of layers, states and types."""

from __future__ import annotations

import torch

from .runtime import Precision

LAYERS = 52
VOCABULARY = 202048
PATTERN = ("sliding", "sliding", "sliding", "global")
# Kind of each layer; the pattern repeats.
KINDS = tuple(PATTERN[i % len(PATTERN)] for i in range(LAYERS))
# Shape of one position of each state.
STATES: dict[str, dict[str, tuple[int, ...]]] = {
    "sliding": {"k_cache": (2, 128), "v_cache": (2, 128)},
    "global": {"k_cache": (2, 128), "v_cache": (2, 128)},
}
# The rounding profile's storage types.
PROFILE = Precision(
    weight=torch.bfloat16,
    activation=torch.bfloat16,
    cache=torch.bfloat16,
    accumulator=torch.float32,
)
