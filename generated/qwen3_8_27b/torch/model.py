"""Qwen/Qwen3.8-27B@1.0 in PyTorch.

Qwen 3.8: 3 gated DeltaNet layers per layer of gated attention, partial rotary embedding, norms with weights 1 + w.

Prefill takes a run of tokens of one sequence, all at once or in chunks; decode takes one token of each
sequence. Both keep what later tokens need in a `Cache`. `Model(checkpoint, precision)` fixes the types:
`PROFILE` is the rounding profile of the Model Spec, `FLOAT64` keeps every intermediate in float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from . import layers
from .config import KEPT, KINDS, LAYERS, PROFILE, REPLACED, STATES, VOCABULARY
from .runtime import Precision
from .weights import Weights


class Cache:
    """What `sequences` sequences of up to `slots` tokens leave behind: for each layer and state a tensor
    [sequences, slots, …], and how many tokens each sequence has. Slot and position are one. A state that
    a call replaces is [sequences, …], and 0 before the first token."""

    def __init__(
        self,
        sequences: int,
        slots: int,
        precision: Precision = PROFILE,
        layers: Iterable[int] = range(LAYERS),
        device: torch.device | str = "cpu",
    ) -> None:
        self.lengths = torch.zeros(sequences, dtype=torch.int64, device=device)
        self.slots = slots
        self.layers: dict[int, dict[str, Tensor]] = {
            i: {
                name: torch.zeros(
                    *((sequences, *shape) if name in REPLACED else (sequences, slots, *shape)),
                    dtype=precision.accumulator if name in KEPT else precision.cache,
                    device=device,
                )
                for name, shape in STATES[KINDS[i]].items()
            }
            for i in layers
        }

    def of(self, layer: int, sequence: int) -> dict[str, Tensor]:
        """The states of one sequence in one layer: views, so that writing to them writes to the cache."""
        return {name: state[sequence] for name, state in self.layers[layer].items()}

    def clear(self, sequence: int) -> None:
        """Makes room for another sequence: no tokens, and states that are 0."""
        self.lengths[sequence] = 0
        for states in self.layers.values():
            for name in REPLACED:
                if name in states:
                    states[name][sequence] = 0


class Model:
    """The model over a checkpoint: a mapping from the official tensor names. Tensors are read when first
    needed, so that a single layer needs only its own."""

    def __init__(self, checkpoint: Mapping[str, Tensor], precision: Precision = PROFILE) -> None:
        self.precision = precision
        self.around = Weights(checkpoint, None, precision.weight)
        self.weights = [Weights(checkpoint, i, precision.weight) for i in range(LAYERS)]

    @torch.no_grad()
    def prefill(
        self, tokens: Tensor, cache: Cache, positions: Tensor | None = None, sequence: int = 0
    ) -> Tensor:
        """The results for `tokens` [T], which continue `sequence`. `positions` [T] are those that follow its
        last token. Raises ValueError when the cache has no
        room, for tokens outside the vocabulary, and for other positions."""
        start = int(cache.lengths[sequence])
        if positions is None:
            positions = torch.arange(start, start + len(tokens), device=tokens.device)
        _check_positions(positions, len(tokens), start)
        end = max(start, int(positions.max()) + 1 if len(positions) else 0)
        if end > cache.slots:
            raise ValueError(f"{end} tokens for sequence {sequence}, the cache has {cache.slots} slots")
        _check_tokens(tokens)
        h = layers.before_layers(tokens, self.around, self.precision)
        for i in range(LAYERS):
            h = self.layer(i, h, cache, positions, sequence)
        cache.lengths[sequence] = end
        return layers.after_layers(h, self.around, self.precision)

    @torch.no_grad()
    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        """The results for one more token of each sequence, `tokens` [B]. Raises ValueError when the cache has
        no room, and for tokens outside the vocabulary."""
        seq_lens = cache.lengths + 1
        if len(tokens) != len(seq_lens):
            raise ValueError(f"{len(tokens)} tokens for {len(seq_lens)} sequences")
        longest = int(seq_lens.max())
        if longest > cache.slots:
            raise ValueError(f"a sequence would have {longest} tokens, the cache has {cache.slots} slots")
        _check_tokens(tokens)
        h = layers.before_layers(tokens, self.around, self.precision)
        for i in range(LAYERS):
            h = self.layer_step(i, h, cache, seq_lens)
        cache.lengths = seq_lens
        return layers.after_layers(h, self.around, self.precision)

    def layer(self, i: int, h: Tensor, cache: Cache, positions: Tensor, sequence: int = 0) -> Tensor:
        """Layer `i` alone, on T tokens of one sequence: h [T, …] to h [T, …]."""
        return PREFILL[KINDS[i]](h, self.weights[i], cache.of(i, sequence), positions, self.precision)

    def layer_step(self, i: int, h: Tensor, cache: Cache, seq_lens: Tensor) -> Tensor:
        """Layer `i` alone, on the last token of each of B sequences of `seq_lens` tokens."""
        return DECODE[KINDS[i]](h, self.weights[i], cache.layers[i], seq_lens, self.precision)


def _check_tokens(tokens: Tensor) -> None:
    if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < VOCABULARY:
        raise ValueError(f"tokens are 0 to {VOCABULARY - 1}, not {int(tokens.min())} to {int(tokens.max())}")


def _check_positions(positions: Tensor, count: int, start: int) -> None:
    """One position after the other, from the next."""
    if positions.shape != (count,):
        raise ValueError(f"positions are {list(positions.shape)}, not [{count}]")
    first = int(positions[0]) if count else start
    if first != start or bool((positions.diff() != 1).any()):
        raise ValueError(f"positions do not count on from {start}")


PREFILL = {
    "delta": layers.delta_prefill,
    "full": layers.full_prefill,
}
DECODE = {
    "delta": layers.delta_decode,
    "full": layers.full_decode,
}
