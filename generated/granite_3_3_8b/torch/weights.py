"""Weights of ibm-granite/granite-3.3-8b-instruct@1.0 by node, out of the tensors of a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from .config import KINDS


@dataclass(frozen=True)
class Piece:
    """Rows of the checkpoint tensor `name`; `{i}` stands for the layer. `view` splits the rows into axes and takes
    low:high of size from each, (low, high, size); without it all rows are taken. `row` is the shape of a row of
    the weight, where the checkpoint has another one."""

    name: str
    shape: tuple[int, ...]
    view: tuple[tuple[int, int, int], ...] = ()
    row: tuple[int, ...] | None = None

    def rows(self, tensor: Tensor) -> Tensor:
        row = tensor.shape[1:] if self.row is None else self.row
        if self.view:
            tensor = tensor.reshape(*(size for _, _, size in self.view), *tensor.shape[1:])
            tensor = tensor[tuple(slice(low, high) for low, high, _ in self.view)]
        return tensor.reshape(-1, *row)


EVERY, AROUND = "every layer", "around the layers"
# Each weight is its pieces, one below the other.
WEIGHTS: dict[str, dict[str, tuple[Piece, ...]]] = {
    EVERY: {
        "input_norm.w": (Piece("model.layers.{i}.input_layernorm.weight", (4096,)),),
        "attn_qkv_proj.w": (
            Piece("model.layers.{i}.self_attn.q_proj.weight", (4096, 4096)),
            Piece("model.layers.{i}.self_attn.k_proj.weight", (1024, 4096)),
            Piece("model.layers.{i}.self_attn.v_proj.weight", (1024, 4096)),
        ),
        "attn_o_proj.w": (Piece("model.layers.{i}.self_attn.o_proj.weight", (4096, 4096)),),
        "post_attn_norm.w": (Piece("model.layers.{i}.post_attention_layernorm.weight", (4096,)),),
        "mlp_gate_up.w": (
            Piece("model.layers.{i}.mlp.gate_proj.weight", (12800, 4096)),
            Piece("model.layers.{i}.mlp.up_proj.weight", (12800, 4096)),
        ),
        "mlp_down.w": (Piece("model.layers.{i}.mlp.down_proj.weight", (4096, 12800)),),
    },
    "layer": {},
    AROUND: {
        "embed.w": (Piece("model.embed_tokens.weight", (49159, 4096)),),
        "final_norm.w": (Piece("model.norm.weight", (4096,)),),
    },
}
TIED: dict[str, str] = {
    "lm_head.w": "embed.w",
}


def table(layer: int | None) -> dict[str, tuple[Piece, ...]]:
    """The pieces of each weight of a layer, or of the nodes around the layers."""
    return WEIGHTS[AROUND] if layer is None else WEIGHTS[EVERY] | WEIGHTS[KINDS[layer]]


class Weights(Mapping[str, Tensor]):
    """The weights of one layer, or with `layer=None` of the nodes around the layers, made when first asked for."""

    def __init__(self, checkpoint: Mapping[str, Tensor], layer: int | None, dtype: torch.dtype) -> None:
        self.checkpoint, self.layer, self.dtype = checkpoint, layer, dtype
        self.table = table(layer)
        self.made: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        """Raises KeyError for a tensor that the checkpoint lacks, ValueError for one of another shape."""
        name = TIED.get(name, name)
        if name not in self.made:
            rows = [piece.rows(self._tensor(piece)) for piece in self.table[name]]
            self.made[name] = rows[0] if len(rows) == 1 else torch.cat(rows)
        return self.made[name]

    def _tensor(self, piece: Piece) -> Tensor:
        name = piece.name.replace("{i}", str(self.layer))
        if name not in self.checkpoint:
            raise KeyError(f"the checkpoint has no tensor {name!r}")
        tensor = self.checkpoint[name]
        if tuple(tensor.shape) != piece.shape:
            raise ValueError(f"{name} is {list(tensor.shape)}; this model has {list(piece.shape)}")
        return tensor.to(self.dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)


def checkpoint_shapes(layers: Iterable[int]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the checkpoint tensors of `layers` and of what stands around the layers."""
    found: dict[str, tuple[int, ...]] = {}
    for layer in (None, *layers):
        for piece in (p for pieces in table(layer).values() for p in pieces):
            found[piece.name.replace("{i}", str(layer))] = piece.shape
    return found


def random_checkpoint(
    layers: Iterable[int], seed: int = 0, dtype: torch.dtype = torch.float64
) -> dict[str, Tensor]:
    """Random tensors in a checkpoint's place: matrices keep the scale of what they multiply, vectors lie around 1."""
    generator = torch.Generator().manual_seed(seed)
    found: dict[str, Tensor] = {}
    for name, shape in checkpoint_shapes(layers).items():
        noise = torch.randn(shape, generator=generator, dtype=dtype)
        found[name] = noise / math.sqrt(shape[-1]) if len(shape) > 1 else 1 + noise / 10
    return found
