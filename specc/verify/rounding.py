"""The generated reference under the spec's rounding profile, and the official class in the profile's type: how far each
is from the layer in float64, on the same weights and the same input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from specc.api import Spec
from specc.ir import Model, Role
from specc.oracle.arrays import Array
from specc.targets.torch import target
from specc.verify.draw import draw_weights
from specc.verify.judge import Text, layer_kind
from specc.verify.lift import Lift
from specc.verify.official import Official, array
from specc.verify.report import texts
from specc.verify.sizes import reduce
from specc.verify.whole import Cache, Whole

MOST = 1.1
"""How many times the official distance ours may be."""


@dataclass(frozen=True)
class Rounding:
    """RMS distance of a layer's result from its value in float64, over the RMS of that value."""

    kind: str
    layer: int
    ours: float
    official: float

    @property
    def ratio(self) -> float:
        return self.ours / self.official

    @property
    def ok(self) -> bool:
        return self.ratio <= MOST


@dataclass(frozen=True)
class Report:
    spec: Spec
    dtype: str
    seed: int
    draws: int
    layers: tuple[Rounding, ...]

    @property
    def ok(self) -> bool:
        return all(r.ok for r in self.layers)


def verify_rounding(spec: Spec, seed: int, draws: int = 2) -> Report:
    """Every layer at reduced sizes, over all draws and texts together. Raises SpecError."""
    small = reduce(spec)
    texts_ = [text for draw in range(draws) for text in texts(small, seed, draw)]
    found = compare_roundings(small.spec.model, texts_, seed)
    return Report(spec, spec.model.profile.type_of(Role.ACTIVATION), seed, draws, tuple(found))


def lines(report: Report) -> Iterator[str]:
    """The report for a person."""
    model = report.spec.model
    yield f"{model.key}@{model.version} in {report.dtype}, seed {report.seed}: RMS distance from float64"
    yield f"  {'layer':<20} {'reference':>10} {'class':>10} {'ratio':>6}"
    for r in report.layers:
        yield f"  {f'{r.layer} {r.kind}':<20} {r.ours:>10.2e} {r.official:>10.2e} {r.ratio:>6.2f}"
    yield f"{'VERIFIED' if report.ok else 'REFUTED'}: the reference may be {MOST} times as far as the class"


def values(report: Report) -> dict[str, Any]:
    """The report for a program."""
    layers = [
        {"layer": r.layer, "kind": r.kind, "reference": r.ours, "class": r.official, "ratio": r.ratio}
        for r in report.layers
    ]
    about = {"model": report.spec.model.key, "class": report.spec.model.official_class, "dtype": report.dtype}
    return {"ok": report.ok, **about, "seed": report.seed, "draws": report.draws, "limit": MOST, "layers": layers}


def compare_roundings(model: Model, texts: Sequence[Text], seed: int) -> list[Rounding]:
    """Every layer over all texts together, each with the weights of its draw. Raises SpecError (E410, E521)."""
    short = getattr(torch, model.profile.type_of(Role.ACTIVATION))
    squares = np.zeros((model.layer_count, 3))
    with TemporaryDirectory() as folder:
        package = _reference(model, Path(folder))
        for text in texts:
            squares += _distances(model, package, text, draw_weights(model, (seed, text.draw)), short)
    ours, official, size = np.sqrt(squares).T
    return [
        Rounding(layer_kind(model, i), i, float(ours[i] / size[i]), float(official[i] / size[i]))
        for i in range(model.layer_count)
    ]


def _reference(model: Model, folder: Path) -> Any:
    for name, text in target.emit(model).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return target.load(folder)


def _distances(model: Model, package: Any, text: Text, weights: dict[str, Array], short: torch.dtype) -> Array:
    """Per layer the sums of squares of our error, of the official one, and of the value."""
    stored = {name: torch.as_tensor(value) for name, value in weights.items()}
    reference, whole = package.model.Model(stored), Whole(model, weights)
    hidden = Official(model, weights, Lift()).prefill(text.tokens).hidden
    assert hidden is not None
    inputs = [array(torch.as_tensor(h).to(short)) for h in hidden[:-1]]
    official = Official(model, weights, dtype=short).each_layer(text.tokens, inputs)
    cache, pos = package.model.Cache(1, len(text.tokens)), torch.arange(len(text.tokens))
    found = []
    for i, h in enumerate(inputs):
        exact = whole.layer(i, h, Cache())
        ours = array(reference.layer(i, torch.as_tensor(h).to(short), cache, pos))
        found.append([np.sum((ours - exact) ** 2), np.sum((official[i] - exact) ** 2), np.sum(exact**2)])
    return np.array(found)
