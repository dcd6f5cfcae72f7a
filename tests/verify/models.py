"""The shipped specs at small sizes, and what their official classes gave: each made once in a session."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import specc
from specc.oracle.arrays import Array
from specc.verify.draw import draw_weights
from specc.verify.implementation import Trace
from specc.verify.judge import Text
from specc.verify.lift import Lift
from specc.verify.official import Official
from specc.verify.report import texts
from specc.verify.sizes import Reduced, reduce
from specc.verify.whole import Whole

ROOT = Path(__file__).parent.parent.parent
NAMES = tuple(path.stem for path in sorted((ROOT / "specs").glob("*.spec")))
SEED = 1


@cache
def reduced(name: str) -> Reduced:
    return reduce(specc.load(ROOT / "specs" / f"{name}.spec"))


@dataclass(frozen=True)
class Case:
    """One draw of weights, one text, and what the official class made of it."""

    whole: Whole
    official: Official
    text: Text
    trace: Trace
    weights: dict[str, Array]


@cache
def case(name: str, length: int = 0) -> Case:
    """`length`: which of the lengths."""
    model = reduced(name).spec.model
    weights = draw_weights(model, (SEED, 0))
    official = Official(model, weights, Lift())
    text = list(texts(reduced(name), SEED, 0))[length]
    return Case(Whole(model, weights), official, text, official.prefill(text.tokens), weights)
