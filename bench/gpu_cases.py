"""The cases that gpu_check.py carries to a GPU, as make_gpu_cases.py left them: shapes, launches, sampled values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gpu_operands import Layout, layout

TARGETS = ("triton", "cuda")
SCHEDULES = (
    "contraction", "attention_prefill", "attention_decode", "recurrence", "row_reduction", "pointwise", "gather",
)  # fmt: skip
"""The most telling come first."""

Array = np.ndarray[Any, np.dtype[Any]]
Sample = tuple[Array, Array, Array]
"""Indices [n, rank], and low and high [n] of what may be stored there."""


@dataclass(frozen=True)
class Result:
    """A result of a launch and how it is stored."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Launch:
    """A launch of the CUDA target. `kernel`: an instance as C++ names it. `arguments`: the name of a tensor and bytes
    from its start, or a number and its size in bytes."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[tuple[str | int, int], ...]


@dataclass(frozen=True)
class Case:
    """A kernel of a spec at one shape. `workspace`: float32 elements that CUDA launches need beside operands; `tables`:
    what they read beside them. `repeats`: another case has the same kernel under another name."""

    spec: str
    kernel: str
    op: str
    schedule: str
    dtype: str
    sizes: Mapping[str, int]
    operands: tuple[Layout, ...]
    results: tuple[Result, ...]
    constants: Mapping[str, float]
    flops: float
    timed: bool
    repeats: bool
    plan: int
    launches: tuple[Launch, ...]
    workspace: int
    tables: Mapping[str, Array]
    samples: Mapping[str, Sample]

    @property
    def label(self) -> str:
        own = {o.dtype for o in self.operands if o.kind in ("index", "places")} - {"", "int64"}
        askew = ["askew"] if any(o.skew for o in self.operands) else []
        return " ".join([*(f"{n}={v}" for n, v in self.sizes.items()), self.dtype, *sorted(own), *askew])

    @property
    def order(self) -> tuple[bool, int, int]:
        """The most telling come first: kernels that differ, few rows, matrix products."""
        return self.repeats, self.plan, SCHEDULES.index(self.schedule)


def read_cases(path: Path) -> list[Case]:
    """The bundle, the most telling cases first. Raises OSError, KeyError, ValueError."""
    with np.load(path, allow_pickle=False) as found:
        arrays = {n: found[n] for n in ("axes", "low", "high", "tables")}
        metas = json.loads(str(found["meta"]))
    samples = _samples(metas["samples"], arrays)
    numbers = iter(np.split(arrays["tables"], np.cumsum(metas["tables"])[:-1]))
    tables = dict(enumerate(numbers))
    return sorted((_case(meta, samples, tables) for meta in metas["cases"]), key=lambda c: c.order)


def _case(meta: dict[str, Any], samples: Sequence[Mapping[str, Sample]], tables: Mapping[int, Array]) -> Case:
    given = {
        "operands": tuple(layout(o) for o in meta["operands"]),
        "results": tuple(Result(n, tuple(shape), dtype) for n, shape, dtype in meta["results"]),
        "launches": tuple(_launch(*one) for one in meta["launches"]),
        "tables": {n: tables[k] for n, k in meta["tables"].items()},
        "samples": samples[meta["samples"]],
    }
    return Case(**{**meta, **given})


def _launch(kernel: str, grid: Any, block: Any, shared: int, arguments: Any) -> Launch:
    return Launch(kernel, tuple(grid), tuple(block), shared, tuple((a, b) for a, b in arguments))


def _samples(metas: Sequence[Mapping[str, Sequence[int]]], arrays: Mapping[str, Array]) -> list[dict[str, Sample]]:
    """For each set of samples by result: every combination of the places on its axes, and the intervals there."""
    found: list[dict[str, Sample]] = []
    axis = value = 0
    for meta in metas:
        found.append({})
        for name, lengths in meta.items():
            places = []
            for length in lengths:
                places.append(arrays["axes"][axis : axis + length].astype(np.int64))
                axis += length
            at = np.stack(np.meshgrid(*places, indexing="ij"), axis=-1).reshape(-1, len(lengths))
            low, high = (arrays[n][value : value + prod(lengths)].astype(np.float64) for n in ("low", "high"))
            value += prod(lengths)
            found[-1][name] = (at, low, high)
    return found


def write_cases(
    path: Path, cases: Sequence[dict[str, Any]], samples: Sequence[Mapping[str, tuple[list[Array], Array, Array]]],
    tables: Sequence[Array],
) -> None:  # fmt: skip
    """`samples`: by result the places on each axis, and the intervals over them, whose ends are of a storage type, so
    that float32 holds them."""
    every = [part for one in samples for part in one.values()]
    meta = {
        "cases": cases,
        "samples": [{name: [len(a) for a in axes] for name, (axes, _, _) in one.items()} for one in samples],
        "tables": [len(t) for t in tables],
    }
    np.savez_compressed(
        path,
        meta=np.array(json.dumps(meta, separators=(",", ":"))),
        axes=np.concatenate([a for axes, _, _ in every for a in axes]).astype(np.int32),
        low=np.concatenate([low.ravel() for _, low, _ in every]).astype(np.float32),
        high=np.concatenate([high.ravel() for _, _, high in every]).astype(np.float32),
        tables=np.concatenate([*tables, np.zeros(0)]),
    )
