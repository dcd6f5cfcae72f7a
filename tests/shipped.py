"""The kernels of the shipped specs, those that several specs share once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import specc
from specc.kernels import Kernel
from specc.lowered import all_kernels, lower_each
from specc.resources import shipped

REDUCED: Mapping[str, Mapping[str, int]] = {
    "gemma3_270m": {"hidden": 64, "vocab": 96, "inter": 80, "heads": 4, "kv_heads": 1, "D": 32},
    "gemma4": {
        "hidden": 64, "vocab": 96, "inter": 80, "heads": 4, "kv_heads": 2, "sliding__D": 32, "global__D": 48,
    },
    "granite_3_3_8b": {"hidden": 80, "vocab": 97, "inter": 72, "heads": 4, "kv_heads": 2, "D": 20},
    "muse_glimmer_30b": {"hidden": 64, "vocab": 96, "inter": 80, "heads": 16, "kv_heads": 1, "D": 32},
    "qwen3_0_6b": {"hidden": 64, "vocab": 96, "inter": 80, "heads": 4, "kv_heads": 2, "D": 24},
    "qwen3_8_27b": {
        "hidden": 64, "vocab": 96, "inter": 80, "heads": 6, "kv_heads": 2, "D": 32, "hk": 2, "hv": 6, "dk": 32,
        "dv": 24,
    },
}  # fmt: skip
"""Sizes with which whole results are small, by spec: as many query heads a KV head as there are or nearly, sides that
are no multiples of tiles, odd vocabularies odd."""
SPECS = tuple(REDUCED)


@cache
def kernels(spec: str, reduced: bool = False) -> tuple[Kernel, ...]:
    """All kernels of a spec, of every phase, in the order of the page."""
    model = specc.load(shipped("specs") / f"{spec}.spec")
    return all_kernels(lower_each((model.reduced(**REDUCED[spec]) if reduced else model).model))


def distinct(specs: Sequence[str] = SPECS, reduced: bool = False) -> dict[str, Kernel]:
    """By spec and name, those that differ in more than that from the ones before them."""
    found: dict[Kernel, tuple[str, Kernel]] = {}
    for spec in specs:
        for kernel in kernels(spec, reduced):
            found.setdefault(replace(kernel, name="", keys=()), (f"{spec} {kernel.name}", kernel))
    return dict(found.values())
