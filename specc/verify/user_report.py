"""`specc verify MODEL FILE`: judges a user's model file, and says what came out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from specc.api import Spec
from specc.verify import sizes
from specc.verify.draw import draw_weights
from specc.verify.explain import Search, explain, first_row
from specc.verify.judge import Figure, Text, judge
from specc.verify.locate import Departure
from specc.verify.report import figure_values, figure_where, given_keys, not_judged, rows, texts
from specc.verify.user import Answer, Bounds, run_file
from specc.verify.whole import Cache, Whole

SECONDS = 120.0
"""How long an explanation is looked for."""
SINGLE = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Findings:
    """How the answers of a model came out. `first`: where it departs for the first time; `token`: the first at which
    its logits do."""

    figures: tuple[Figure, ...]
    departures: tuple[Departure, ...]
    first: Figure | None
    token: int | None
    search: Search | None

    @property
    def ok(self) -> bool:
        return all(f.ok for f in self.figures)

    @property
    def given(self) -> tuple[str, ...]:
        """What the model gave beside logits."""
        parts = {f.part for f in self.figures}
        return tuple(name for name, part in (("hidden states", "layer"), ("step", "decode")) if part in parts)


@dataclass(frozen=True)
class Verdict:
    """What was run, and how it came out."""

    spec: Spec
    reduced: sizes.Reduced
    path: Path
    seed: int
    draws: int
    lifted: dict[str, int] | None
    findings: Findings

    @property
    def ok(self) -> bool:
        return self.findings.ok


def verify_file(
    spec: Spec,
    path: Path,
    seed: int,
    bounds: Bounds,
    draws: int = 2,
    lift: bool = True,
    seconds: float = SECONDS,
) -> Verdict:
    """`path` against `spec` at reduced sizes. Raises SpecError, also for a file that gives no answer."""
    reduced = sizes.reduce(spec)
    model = reduced.spec.model
    weights = [draw_weights(model, (seed, draw)) for draw in range(draws)]
    given = [list(texts(reduced, seed, draw)) for draw in range(draws)]
    run = run_file(path, model, weights, given, bounds, lift)
    rows = zip(weights, given, run.answers, strict=True)
    cases = [Case(Whole(model, w), t, a) for w, row, answers in rows for t, a in zip(row, answers, strict=True)]
    return Verdict(spec, reduced, path, seed, draws, run.lifted, assess(reduced.spec, cases, seconds))


@dataclass(frozen=True)
class Case:
    """A text, what the spec is for it, and what the model file gave."""

    whole: Whole
    text: Text
    answer: Answer


def assess(spec: Spec, cases: Sequence[Case], seconds: float = SECONDS) -> Findings:
    """Judges all cases, and explains the longest of those that differ."""
    figures: list[Figure] = []
    departures: list[Departure] = []
    worst: tuple[Case, Figure] | None = None
    total = 0.0
    for case in cases:
        found, where = judge(case.whole, case.answer, case.text)
        figures += found
        departures += where
        bad = _first(found)
        if bad is not None and (worst is None or len(case.text.tokens) > len(worst[0].text.tokens)):
            worst, total = (case, bad), next(f.limit for f in found if f.part == "logits")
    if worst is None:
        return Findings(tuple(figures), (), None, None, None)
    case, first = worst
    search = None
    if first.part != "decode":
        search = explain(spec, case.whole, case.answer.trace, case.text, first, total, seconds)
    ours = case.whole.run(case.text.tokens, Cache())
    token = first_row(ours, case.answer.trace.logits, total)
    return Findings(tuple(figures), tuple(departures), first, token, search)


def _first(figures: Sequence[Figure]) -> Figure | None:
    """The first part that differs, in the order of computation; of the model as a whole only where no part is known."""
    return next((f for f in figures if not f.ok and f.part in ("embed", "layer", "head", "logits", "decode")), None)


def lines(verdict: Verdict) -> Iterator[str]:
    """The verdict for a person."""
    model = verdict.spec.model
    yield f"{model.key}@{model.version} against {verdict.path}, seed {verdict.seed}"
    reduced = ", ".join(f"{name}={value}" for name, value in verdict.reduced.sizes)
    lengths = " and ".join(str(n) for n in verdict.reduced.lengths)
    yield f"compared at {reduced}; draws of weights: {verdict.draws}; texts of {lengths} tokens"
    yield f"given: {', '.join(('logits', *verdict.findings.given))}"
    yield f"  {'max|Δ| / max|value|':<24} {'worst':>8} {'limit':>8}   where"
    for name, f in rows(verdict.findings.figures):
        yield f"  {name:<24} {f.value:>8.1e} {f.limit:>8.0e}   {figure_where(f)}"
    if verdict.lifted:
        yield f"lifted to float64: {sum(verdict.lifted.values())} requests for float32 at {len(verdict.lifted)} places"
    yield from said(verdict.findings)
    if verdict.ok:
        yield not_judged(model, "the file")
    yield "VERIFIED" if verdict.ok else "REFUTED"


def said(found: Findings) -> Iterator[str]:
    """What there is to say beside the figures."""
    for d in found.departures[:1]:
        yield f"departs first {_departure(found, d)}"
    if found.token:
        yield f"the logits of the first {found.token} tokens are right"
    if found.first is not None and found.first.part == "decode":
        yield "prefill is right; `step`, a token at a time, departs"
    if found.first is not None and found.first.value < SINGLE:
        yield "the difference is of the size of float32 rounding: something was computed in float32"
    search = found.search
    if search is None:
        return
    if search.found is not None:
        guess = search.found.hypothesis
        share = "" if search.found.whole else " in this part, and something else besides"
        yield f"it equals the spec{share} with one change: {guess}"
        return
    count = f"none of {search.tried} single changes of the spec gives these answers"
    yield count if search.ended else f"{count}; the search was stopped: --search gives it more"
    if "hidden states" not in found.given:
        yield "return (logits, hidden) to learn the layer"


def _departure(found: Findings, d: Departure) -> str:
    """A part with many nodes is named without them."""
    part = "before the layers" if found.first is not None and found.first.part == "embed" else "after the layers"
    where = part if d.layer is None else f"in layer {d.layer}"
    at = ", ".join(str(i) for i in d.index)
    return f"{where}: {d.place} at [{at}] is {d.ours:.17g} by the spec, {d.theirs:.17g} there"


def values(verdict: Verdict) -> dict[str, Any]:
    """The verdict for a program."""
    first, search = verdict.findings.first, verdict.findings.search
    change = None if search is None else search.found
    return {
        "ok": verdict.ok,
        "model": verdict.spec.model.key,
        "file": str(verdict.path),
        "seed": verdict.seed,
        "draws": verdict.draws,
        "sizes": dict(verdict.reduced.sizes),
        "lengths": list(verdict.reduced.lengths),
        "given": ["logits", *verdict.findings.given],
        "lifted": verdict.lifted,
        "not_judged": list(given_keys(verdict.spec.model)),
        "worst": {name: figure_values(f) for name, f in rows(verdict.findings.figures)},
        "figures": [figure_values(f) for f in verdict.findings.figures],
        "first": None if first is None else figure_values(first),
        "right_tokens": verdict.findings.token,
        "departures": [str(d) for d in verdict.findings.departures],
        "tried": 0 if search is None else search.tried,
        "change": None
        if change is None
        else {
            "kind": change.hypothesis.mutant.kind,
            "nodes": list(change.hypothesis.nodes),
            "text": change.hypothesis.mutant.text,
            "whole": change.whole,
        },
    }
