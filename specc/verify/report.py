"""Runs a whole verification of a spec against the official class, and what there is to say of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from math import isfinite
from typing import Any

from specc.api import Spec
from specc.ir import Model
from specc.verify import sizes
from specc.verify.draw import draw_tokens, draw_weights
from specc.verify.judge import Figure, Text, judge, worst
from specc.verify.lift import Lift
from specc.verify.locate import Departure
from specc.verify.official import Official, parameter_count
from specc.verify.whole import Whole

STEPS = 8
"""Tokens that are given one at a time at the end of a long text; a short one is decoded from its first token on."""


@dataclass(frozen=True)
class Report:
    """What was run, and how it came out. `lifted` counts requests for float32 by place; None where none was lifted, and
    nothing is judged then."""

    spec: Spec
    reduced: sizes.Reduced
    seed: int
    draws: int
    parameters: tuple[int, int]
    figures: tuple[Figure, ...]
    departures: tuple[Departure, ...]
    lifted: dict[str, int] | None

    @property
    def ok(self) -> bool:
        same = self.parameters[0] == self.parameters[1]
        return same and (self.lifted is None or all(f.ok for f in self.figures))

    def rows(self) -> list[tuple[str, Figure]]:
        """The worst figure of each part and layer kind, in order."""
        return rows(self.figures)


def rows(figures: Sequence[Figure]) -> list[tuple[str, Figure]]:
    """The worst of each part and layer kind, in order."""
    groups: dict[str, list[Figure]] = {}
    for f in sorted(figures, key=lambda f: ORDER.index(f.part)):
        kind = f" {f.kind}" if f.part == "layer" and f.kind != "layer" else ""
        groups.setdefault(f.part + kind, []).append(f)
    return [(name, worst(found)) for name, found in groups.items()]


ORDER = ("embed", "layer", "node", "head", "stack", "logits", "chunks", "decode")


def verify(spec: Spec, seed: int, draws: int = 2, lift: bool = True) -> Report:
    """`spec` at reduced sizes against the class that it names. Raises SpecError."""
    counts = (spec.parameter_count, parameter_count(spec.model))
    reduced = sizes.reduce(spec)
    model = reduced.spec.model
    lifting = Lift() if lift else None
    figures: list[Figure] = []
    departures: list[Departure] = []
    for draw in range(draws):
        weights = draw_weights(model, (seed, draw), forgetful=draw % 2 == 1)
        whole, official = Whole(model, weights), Official(model, weights, lifting)
        for text in texts(reduced, seed, draw):
            found, where = judge(whole, official, text)
            figures += found
            departures += where
    places = None if lifting is None else dict(sorted(lifting.places.items()))
    return Report(spec, reduced, seed, draws, counts, tuple(figures), tuple(departures), places)


def texts(reduced: sizes.Reduced, seed: int, draw: int) -> Iterator[Text]:
    """One text of each length."""
    for n, length in enumerate(reduced.lengths):
        tokens = draw_tokens(reduced.spec.model, length, (seed, draw, n))
        yield Text(draw, tokens, 0 if n == 0 else length - STEPS)


def lines(report: Report) -> Iterator[str]:
    """The report for a person."""
    model, (ours, theirs) = report.spec.model, report.parameters
    yield f"{model.key}@{model.version} against {model.official_class} {version('transformers')}, seed {report.seed}"
    same = f"{ours:,} in both" if ours == theirs else f"{ours:,} in the spec, {theirs:,} in the class"
    yield f"parameters at full size: {same}"
    reduced = ", ".join(f"{name}={value}" for name, value in report.reduced.sizes)
    texts = " and ".join(str(n) for n in report.reduced.lengths)
    yield f"compared at {reduced}; draws of weights: {report.draws}; texts of {texts} tokens"
    yield f"  {'max|Δ| / max|value|':<24} {'worst':>8} {'limit':>8}   where"
    for name, f in report.rows():
        limit = "-" if report.lifted is None else f"{f.limit:.0e}"
        yield f"  {name:<24} {f.value:>8.1e} {limit:>8}   {figure_where(f)}"
    if report.lifted is None:
        yield "float32 was not lifted: the figures are those of the class as it is, and not judged"
    else:
        yield f"lifted to float64: {sum(report.lifted.values())} requests for float32 at {len(report.lifted)} places"
    for where in dict.fromkeys(str(d) for d in report.departures if report.lifted is not None):
        yield f"departs {where}"
    if report.ok:
        yield not_judged(model, "the class")
    yield "REFUTED" if not report.ok else "NOT JUDGED" if report.lifted is None else "VERIFIED"


def given_keys(model: Model) -> tuple[str, ...]:
    """Keys of the configuration that the other side gets from the spec."""
    return tuple(key for key, _ in model.config if key != "architectures")


def not_judged(model: Model, by: str) -> str:
    keys = ", ".join(given_keys(model)) or "none"
    return f"taken from the spec, and therefore not judged by {by}: {keys}"


def figure_where(f: Figure) -> str:
    layer = "" if f.layer is None else f"layer {f.layer}, "
    return f"{layer}draw {f.draw}, {f.length} tokens"


def values(report: Report) -> dict[str, Any]:
    """The report for a program."""
    model = report.spec.model
    return {
        "ok": report.ok,
        "model": model.key,
        "class": model.official_class,
        "transformers": version("transformers"),
        "seed": report.seed,
        "draws": report.draws,
        "parameters": {"spec": report.parameters[0], "class": report.parameters[1]},
        "sizes": dict(report.reduced.sizes),
        "lengths": list(report.reduced.lengths),
        "judged": report.lifted is not None,
        "lifted": report.lifted,
        "not_judged": list(given_keys(model)),
        "worst": {name: figure_values(f) for name, f in report.rows()},
        "figures": [figure_values(f) for f in report.figures],
        "departures": [_departure(d) for d in report.departures],
    }


def figure_values(f: Figure) -> dict[str, Any]:
    place = {"part": f.part, "kind": f.kind, "layer": f.layer, "draw": f.draw, "length": f.length}
    return {**place, "value": finite(f.value), "limit": f.limit, "ok": f.ok}


def finite(value: float) -> float | str:
    """JSON has no infinities and no NaN: their names."""
    return value if isfinite(value) else str(value)


def _departure(d: Departure) -> dict[str, Any]:
    found = {"layer": d.layer, "nodes": list(d.suspects), "place": d.place, "index": list(d.index)}
    return {**found, "spec": finite(d.ours), "class": finite(d.theirs), "text": str(d)}
