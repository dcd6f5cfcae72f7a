"""What Qwen/Qwen3.8-27B@1.0 is made of: kinds of layers, states and types."""

from __future__ import annotations

import torch

from .runtime import Precision

LAYERS = 64
VOCABULARY = 248320
PATTERN = ("delta", "delta", "delta", "full")
# Kind of each layer; the pattern repeats.
KINDS = tuple(PATTERN[i % len(PATTERN)] for i in range(LAYERS))
# Shape of each state, of one position where tokens are appended.
STATES: dict[str, dict[str, tuple[int, ...]]] = {
    "delta": {"window": (3, 10240), "memory": (48, 128, 128)},
    "full": {"k_cache": (4, 256), "v_cache": (4, 256)},
}
# States that a call replaces, and those that are kept in the accumulator's type.
REPLACED = ("window", "memory")
KEPT: tuple[str, ...] = ("memory",)
# The rounding profile's storage types.
PROFILE = Precision(
    weight=torch.bfloat16,
    activation=torch.bfloat16,
    cache=torch.bfloat16,
    accumulator=torch.float32,
)
