"""What the launchers share: checks of their arguments, their results, and the tiles for the GPU at hand.

A launcher refuses what its kernel would read wrongly: TypeError for a wrong kind of argument or storage type,
ValueError for a wrong shape, stride, device or overlap. Nothing here waits for the GPU or reads values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch

STORAGE = (torch.bfloat16, torch.float16, torch.float32)
INTEGERS = (torch.int32, torch.int64)
SCRATCH = torch.float32
WIDEST_TILES = 4
"""Bytes of the widest element that has tiles of its own."""
LARGEST_OFFSET = 2**31 - 1
"""Elements that a 32-bit offset reaches."""
LARGEST_SIZE = 2**30
"""Of a run-time axis: index variables have 32 bits."""

Sizes = Mapping[str, int]
Dim = int | str | Callable[[Sizes], int]
"""A number, a run-time size by name, or a function of run-time sizes."""


@dataclass(frozen=True)
class Operand:
    """A tensor argument. `like`: the operand whose storage type it shares. `wide`: offsets have 64 bits.
    `accumulator`: stored in the type that kernels compute in."""

    name: str
    dims: tuple[Dim, ...]
    like: str | None = None
    index: bool = False
    output: bool = False
    wide: bool = False
    accumulator: bool = False


@dataclass(frozen=True)
class Config:
    """Tiles for at most `rows` rows (None: any number), with warps a program and software pipeline stages."""

    rows: int | None
    warps: int
    stages: int
    tiles: Mapping[str, int]

    def options(self, *names: str) -> dict[str, int | bool]:
        """Constants (all, or these) and launch options. Fused multiply-add is said, not left to a default."""
        tiles = {n: size for n, size in self.tiles.items() if not names or n in names}
        return {**tiles, "num_warps": self.warps, "num_stages": self.stages, "enable_fp_fusion": True}


Configs = Mapping[str, Mapping[int, tuple[Config, ...]]]
"""By GPU architecture and bytes of a stored element; the first that takes the number of rows is used."""


def pick(configs: Configs, like: torch.Tensor, rows: int, **extents: int) -> Config:
    """Tiles for the device and storage type of `like` and so many rows; none larger than its extent needs."""
    found = configs[architecture(like.device, configs)][min(like.element_size(), WIDEST_TILES)]
    config = next(c for c in found if c.rows is None or rows <= c.rows)
    cut = {name: min(config.tiles[name], 1 << (n - 1).bit_length()) for name, n in extents.items()}
    return replace(config, tiles={**config.tiles, **cut}) if cut else config


def architecture(device: torch.device, known: Configs) -> str:
    """The newest architecture in `known` that `device` runs; without a GPU, the newest.

    Raises RuntimeError for a GPU older than all of them.
    """
    newest_first = sorted(known, key=_number, reverse=True)
    if device.type != "cuda":
        return newest_first[0]
    major, minor = torch.cuda.get_device_capability(device)
    for arch in newest_first:
        if _number(arch) <= 10 * major + minor:
            return arch
    raise RuntimeError(f"no tiles for sm_{major}{minor}: the oldest known are for {newest_first[-1]}")


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_"))


def on(device: torch.device) -> AbstractContextManager[object]:
    """Launches inside go to the current stream of `device`."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def bind(
    operands: Sequence[Operand], inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor | None]
) -> tuple[dict[str, int], list[torch.Tensor]]:
    """The run-time sizes and the results, made where they were not given, once every argument has passed.

    Raises TypeError and ValueError.
    """
    given = [o for o in operands if not o.output]
    results = [o for o in operands if o.output]
    tensors = dict(zip((o.name for o in given), inputs, strict=True))
    sizes: dict[str, int] = {}
    for operand in given:
        _check_kind(operand, tensors)
        _bind_sizes(operand, tensors[operand.name], sizes)
    for operand in given:
        _check_place(operand, tensors[operand.name], sizes, inputs[0].device)
    made = []
    for operand, result in zip(results, outputs, strict=True):
        tensors[operand.name] = _empty(operand, tensors, sizes) if result is None else result
        _check_kind(operand, tensors)
        _check_place(operand, tensors[operand.name], sizes, inputs[0].device)
        _check_alone(operand.name, tensors)
        made.append(tensors[operand.name])
    return sizes, made


def _check_kind(operand: Operand, tensors: Mapping[str, torch.Tensor]) -> None:
    tensor = tensors[operand.name]
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{operand.name} is a {type(tensor).__name__}, not a tensor")
    same = f" as {operand.like} is" if operand.like else ""
    own = (SCRATCH,) if operand.accumulator else (tensors[operand.like].dtype,) if operand.like else STORAGE
    allowed = INTEGERS if operand.index else own
    if tensor.dtype not in allowed:
        names = ", ".join(str(d).removeprefix("torch.") for d in allowed)
        raise TypeError(f"{operand.name} holds {str(tensor.dtype).removeprefix('torch.')}, not {names}{same}")


def _bind_sizes(operand: Operand, tensor: torch.Tensor, sizes: dict[str, int]) -> None:
    if tensor.dim() != len(operand.dims):
        raise ValueError(f"{operand.name} has {tensor.dim()} axes, not {len(operand.dims)}: {_dims(operand)}")
    for dim, n in zip(operand.dims, tensor.shape, strict=True):
        if isinstance(dim, str):
            sizes.setdefault(dim, n)
            if n > LARGEST_SIZE:
                raise ValueError(f"{operand.name} has an axis of {n}, more than {LARGEST_SIZE}")


def _check_place(operand: Operand, tensor: torch.Tensor, sizes: Sizes, device: torch.device) -> None:
    """Shape, device and strides."""
    name, shape = operand.name, _shape(operand, sizes)
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} is {list(tensor.shape)}, not {list(shape)}: {_dims(operand)}")
    if tensor.device != device:
        raise ValueError(f"{name} is on {tensor.device}, other arguments are on {device}")
    if tensor.numel() and tensor.dim() and shape[-1] > 1 and tensor.stride(-1) != 1:
        raise ValueError(f"{name} has stride {tensor.stride(-1)} on its last axis, not 1")
    if not operand.wide and span(tensor) - 1 > LARGEST_OFFSET:
        raise ValueError(f"{name} reaches over {span(tensor)} elements, more than 32-bit offsets do")


def _shape(operand: Operand, sizes: Sizes) -> tuple[int, ...]:
    return tuple(_extent(d, sizes) for d in operand.dims)


def _extent(dim: Dim, sizes: Sizes) -> int:
    return dim if isinstance(dim, int) else sizes[dim] if isinstance(dim, str) else dim(sizes)


def _dims(operand: Operand) -> str:
    return "[" + ", ".join("…" if callable(d) else str(d) for d in operand.dims) + "]"


def _empty(operand: Operand, tensors: Mapping[str, torch.Tensor], sizes: Sizes) -> torch.Tensor:
    like = tensors[operand.like or next(iter(tensors))]
    dtype = like.dtype if like.is_floating_point() and not operand.accumulator else SCRATCH
    return torch.empty(_shape(operand, sizes), dtype=dtype, device=like.device)


def span(tensor: torch.Tensor) -> int:
    """Elements from the first to one past the last, those in between that are not the tensor's included."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))


def _check_alone(name: str, tensors: Mapping[str, torch.Tensor]) -> None:
    """A result shares no element with another argument, nor with itself."""
    result = tensors[name]
    if _meets_itself(result):
        raise ValueError(f"{name} has strides {list(result.stride())}: several of its elements share a place")
    for other, tensor in tensors.items():
        if other != name and _meet(result, tensor):
            raise ValueError(f"{name} overlaps {other}; results need memory of their own")


def _meets_itself(tensor: torch.Tensor) -> bool:
    reach = 1
    for stride, n in sorted((s, n) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1):
        if stride < reach:
            return tensor.numel() > 0
        reach = stride * (n - 1) + reach
    return False


def _meet(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors may share an element: their ranges meet, and they are not columns side by side."""
    if a.device.type == "meta" or not a.numel() or not b.numel():
        return False
    first, second = a.data_ptr(), b.data_ptr()
    if first + span(a) * a.element_size() <= second or second + span(b) * b.element_size() <= first:
        return False
    return not _side_by_side(a, b, second - first)


def _side_by_side(a: torch.Tensor, b: torch.Tensor, distance: int) -> bool:
    """Whether `a` and `b`, `distance` bytes apart, are different columns of rows of one pitch."""
    if a.dim() < 2 or b.dim() < 2 or a.element_size() != b.element_size() or a.stride(0) != b.stride(0):
        return False
    pitch, size = a.stride(0), a.element_size()
    width_a, width_b = span(a[0]), span(b[0])
    if pitch == 0 or distance % size:
        return False
    column = distance // size % pitch
    return width_a <= column and column + width_b <= pitch


def workspace_of(
    workspace: torch.Tensor | None, elements: int, others: Sequence[torch.Tensor]
) -> torch.Tensor:
    """Float32 scratch memory of at least this many elements, apart from all others: the one given, or new.

    Raises TypeError and ValueError.
    """
    device = others[0].device
    if workspace is None:
        return torch.empty(elements, dtype=SCRATCH, device=device)
    if workspace.dtype != SCRATCH:
        raise TypeError(f"workspace holds {workspace.dtype}, not {SCRATCH}")
    if workspace.device != device or not workspace.is_contiguous() or workspace.numel() < elements:
        raise ValueError(f"workspace needs {elements} contiguous elements on {device}")
    if any(_meet(workspace, other) for other in others):
        raise ValueError("workspace overlaps another argument; it needs memory of its own")
    return workspace
