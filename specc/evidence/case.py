"""A test case as a small descriptor: what hypothesis draws and shrinks, and what a counterexample file holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

FAMILIES = (
    "normal", "integers", "sparse", "constant", "steps", "edges", "selected", "deep", "heads", "peaks", "spoiled",
    "dyadic", "decays", "alike",
)  # fmt: skip
"""How real operands are filled.

normal: normally distributed times `magnitude`. integers: -3 … 3, so that partial sums are exact. sparse: three full
mantissas a row, one of them last. constant: every element `magnitude`.

For attention only: steps: scores of exactly 0, -1, -2 and -3, so that weights are no round numbers. edges: equal
scores, values at the edges of the visible range. selected: keys that pick the edges, and louder ones just outside.
deep: every score far below zero. heads: each KV head has values of its own. peaks: parts of the keys whose scores are
far apart, in every second case the last key's the largest. spoiled: some keys and values that only some rows see are
NaN or infinite.

For recurrences: see `specc.evidence.recurrent`.
"""


@dataclass(frozen=True)
class Case:
    """`places`: the index operand that bounds visibility or turns angles (lengths, positions), one value a row,
    repeated as needed. `offset`, `pad`: elements before the first and between rows of the operand or result `moved`,
    or, where that is empty, of every real operand but weights. `axis`: rows are the slices of which axis."""

    dtype: str
    sizes: tuple[tuple[str, int], ...]
    family: str = "normal"
    magnitude: float = 1.0
    places: tuple[int, ...] = (0,)
    offset: int = 0
    pad: int = 0
    index_type: str = "int64"
    seed: int = 0
    moved: str = ""
    axis: int = 0

    def size(self, name: str) -> int:
        """Raises KeyError."""
        return dict(self.sizes)[name]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    @staticmethod
    def from_json(text: str) -> Case:
        """Raises ValueError for text that is no case."""
        data: Mapping[str, Any] = json.loads(text)
        unknown = set(data) - {f.name for f in fields(Case)}
        if unknown or "dtype" not in data or "sizes" not in data:
            raise ValueError(f"not a case: {sorted(unknown) or 'dtype and sizes are needed'}")
        sizes = tuple((str(n), int(v)) for n, v in data["sizes"])
        return Case(**{**data, "sizes": sizes, "places": tuple(data.get("places", (0,)))})

    def describe(self) -> str:
        """One line for a report."""
        sizes = ", ".join(f"{n}={v}" for n, v in self.sizes)
        whose = f" of {self.moved} along axis {self.axis}" if self.moved else ""
        extra = f", offset {self.offset}, pad {self.pad}{whose}" if self.offset or self.pad else ""
        places = f", places {list(self.places)}" if self.places != (0,) else ""
        indices = f", {self.index_type} indices" if self.index_type != "int64" else ""
        return f"{self.dtype}, {sizes}, {self.family} × {self.magnitude:g}{places}{indices}{extra}, seed {self.seed}"
