"""Rewrites of closed formulas on the way to kernels: pure functions, one a file, run in the order of `PASSES`."""

from __future__ import annotations

from collections.abc import Callable

from specc.ops import Formula
from specc.passes.constants import fold_constants
from specc.passes.expand import expand
from specc.passes.hoist import hoist
from specc.passes.powers import powers
from specc.passes.rename import rename
from specc.passes.simplify import simplify
from specc.passes.unroll import unroll
from specc.wellformed import Level, check

Rounds = tuple[tuple[str, str, str], ...]
"""(op or `softmax`, let or constant, role): where the profile rounds."""

PASSES: tuple[tuple[str, Level, Callable[[Formula, Rounds], Formula]], ...] = (
    ("expand", Level.CLOSED, expand),
    ("rename", Level.EXPANDED, lambda f, _: rename(f)),
    ("constants", Level.EXPANDED, lambda f, _: fold_constants(f)),
    ("simplify", Level.EXPANDED, lambda f, _: simplify(f)),
    ("hoist", Level.EXPANDED, lambda f, _: hoist(f)),
    ("unroll", Level.EXPANDED, lambda f, _: unroll(f)),
    ("powers", Level.EXPANDED, lambda f, _: powers(f)),
)
"""Name, what the pass may assume, and the pass."""


def run_passes(formula: Formula, rounds: Rounds = ()) -> Formula:
    """`formula` ready to be matched with a schedule: no scalar function, `let` or reducible constant is left."""
    for _, level, rewrite in PASSES:
        check(formula, level)
        formula = rewrite(formula, rounds)
    check(formula, Level.EXPANDED)
    return formula
