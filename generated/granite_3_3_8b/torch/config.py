"""What ibm-granite/granite-3.3-8b-instruct@1.0 is made of: kinds of layers, states and types."""

from __future__ import annotations

import torch

from .runtime import Precision

LAYERS = 40
VOCABULARY = 49159
PATTERN = ("layer",)
# Kind of each layer; the pattern repeats.
KINDS = tuple(PATTERN[i % len(PATTERN)] for i in range(LAYERS))
# Shape of one position of each state.
STATES: dict[str, dict[str, tuple[int, ...]]] = {
    "layer": {"k_cache": (8, 128), "v_cache": (8, 128)},
}
# The rounding profile's storage types.
PROFILE = Precision(
    weight=torch.bfloat16,
    activation=torch.bfloat16,
    cache=torch.bfloat16,
    accumulator=torch.float32,
)
