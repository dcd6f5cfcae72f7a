"""Weights of Qwen/Qwen3.8-27B@1.0 by node, out of the tensors of a checkpoint."""

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
        "input_norm.w": (Piece("model.language_model.layers.{i}.input_layernorm.weight", (5120,)),),
        "post_attn_norm.w": (
            Piece("model.language_model.layers.{i}.post_attention_layernorm.weight", (5120,)),
        ),
        "mlp_gate_up.w": (
            Piece("model.language_model.layers.{i}.mlp.gate_proj.weight", (17408, 5120)),
            Piece("model.language_model.layers.{i}.mlp.up_proj.weight", (17408, 5120)),
        ),
        "mlp_down.w": (Piece("model.language_model.layers.{i}.mlp.down_proj.weight", (5120, 17408)),),
    },
    "delta": {
        "gdn_in_proj_delta.w": (
            Piece("model.language_model.layers.{i}.linear_attn.in_proj_qkv.weight", (10240, 5120)),
            Piece("model.language_model.layers.{i}.linear_attn.in_proj_z.weight", (6144, 5120)),
            Piece("model.language_model.layers.{i}.linear_attn.in_proj_b.weight", (48, 5120)),
            Piece("model.language_model.layers.{i}.linear_attn.in_proj_a.weight", (48, 5120)),
        ),
        "gdn_conv_delta.w": (
            Piece("model.language_model.layers.{i}.linear_attn.conv1d.weight", (10240, 1, 4), row=(4,)),
        ),
        "gdn_gates_delta.A_log": (Piece("model.language_model.layers.{i}.linear_attn.A_log", (48,)),),
        "gdn_gates_delta.dt_bias": (Piece("model.language_model.layers.{i}.linear_attn.dt_bias", (48,)),),
        "gdn_norm_delta.w": (Piece("model.language_model.layers.{i}.linear_attn.norm.weight", (128,)),),
        "gdn_out_proj_delta.w": (
            Piece("model.language_model.layers.{i}.linear_attn.out_proj.weight", (5120, 6144)),
        ),
    },
    "full": {
        "attn_qkv_proj_full.w": (
            Piece(
                "model.language_model.layers.{i}.self_attn.q_proj.weight",
                (12288, 5120),
                ((0, 24, 24), (0, 1, 2), (0, 256, 256)),
            ),
            Piece("model.language_model.layers.{i}.self_attn.k_proj.weight", (1024, 5120)),
            Piece("model.language_model.layers.{i}.self_attn.v_proj.weight", (1024, 5120)),
            Piece(
                "model.language_model.layers.{i}.self_attn.q_proj.weight",
                (12288, 5120),
                ((0, 24, 24), (1, 2, 2), (0, 256, 256)),
            ),
        ),
        "attn_qk_norm_full.wq": (Piece("model.language_model.layers.{i}.self_attn.q_norm.weight", (256,)),),
        "attn_qk_norm_full.wk": (Piece("model.language_model.layers.{i}.self_attn.k_norm.weight", (256,)),),
        "attn_o_proj_full.w": (
            Piece("model.language_model.layers.{i}.self_attn.o_proj.weight", (5120, 6144)),
        ),
    },
    AROUND: {
        "embed.w": (Piece("model.language_model.embed_tokens.weight", (248320, 5120)),),
        "final_norm.w": (Piece("model.language_model.norm.weight", (5120,)),),
        "lm_head.w": (Piece("lm_head.weight", (248320, 5120)),),
    },
}
TIED: dict[str, str] = {}


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
