"""What google/gemma-3-270m@1.0 is made of: kinds of layers, states and types."""

from __future__ import annotations

import torch

from .runtime import Precision

LAYERS = 18
VOCABULARY = 262144
PATTERN = ("sliding", "sliding", "sliding", "sliding", "sliding", "global")
# Kind of each layer; the pattern repeats.
KINDS = tuple(PATTERN[i % len(PATTERN)] for i in range(LAYERS))
# Shape of one position of each state.
STATES: dict[str, dict[str, tuple[int, ...]]] = {
    "sliding": {"k_cache": (1, 256), "v_cache": (1, 256)},
    "global": {"k_cache": (1, 256), "v_cache": (1, 256)},
}
# The rounding profile's storage types.
PROFILE = Precision(
    weight=torch.bfloat16,
    activation=torch.bfloat16,
    cache=torch.bfloat16,
    accumulator=torch.float32,
)
