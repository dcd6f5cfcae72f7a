"""Operands of recurrences: decays and rates at the ends of their range, keys of unit length, and exact ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from specc.evidence.case import Case
from specc.kernels import Recurrent
from specc.ops import Expr, Var, free_vars

Array = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]

FAMILIES = ("dyadic", "normal", "decays", "alike")
ENDS = (0.0, 1e-12, 1e-3, 0.5, 1 - 2.0**-10, 1.0)
"""Decays over which a chunked form that divides, or subtracts logarithms, goes wrong."""


def part_of(r: Recurrent, operand: str) -> str:
    """What an operand is to the recurrence: decay, rate, key, or other."""
    names = {a.name for a in r.loads if a.operand == operand}

    def reads(e: Expr | None) -> bool:
        return e is not None and bool(names & set(free_vars(e)))

    if any(reads(e) for e in (r.probe, r.erase, r.write)):
        return "key"
    return "decay" if reads(r.decay) else "rate" if reads(r.rate) else "other"


def values(r: Recurrent, operand: str, shape: tuple[int, ...], case: Case, rng: np.random.Generator) -> Array:
    """Values of an operand, not rounded yet.

    dyadic: small integers, keys of a single ±1, decays and rates of 0, ½ and 1, so that every state is exact. normal:
    decays of 0.8 to 1. decays: those of ENDS. alike: the same key at every step, nothing decays, all is taken.
    """
    part = part_of(r, operand)
    found = _DRAWS[case.family].get(part, _DRAWS["normal"][part])(rng, shape)
    if case.family == "alike" and part == "key":
        axis = _time_axis(r, operand)
        found = np.repeat(np.take(found, [0], axis) if shape[axis] else found, max(shape[axis], 1), axis)
        found = found if shape[axis] else np.zeros(shape)
    return found * (case.magnitude if part == "other" and case.family != "dyadic" else 1.0)


def _time_axis(r: Recurrent, operand: str) -> int:
    access = next(a for a in r.loads if a.operand == operand)
    return next((n for n, i in enumerate(access.indices) if i == Var(r.time.var)), 0)


def _unit(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    rows = rng.standard_normal(shape)
    return np.asarray(rows / np.sqrt(np.sum(rows**2, axis=-1, keepdims=True)))


def _single(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Rows of a single ±1, among the first few places and the last."""
    rows = np.zeros(shape)
    flat = rows.reshape(-1, shape[-1])
    places = np.array(sorted({0, min(1, shape[-1] - 1), shape[-1] - 1}))
    flat[np.arange(len(flat)), rng.choice(places, len(flat))] = rng.choice([-1.0, 1.0], len(flat))
    return rows


def _among(*choices: float) -> Draw:
    return lambda rng, shape: rng.choice(np.array(choices), shape)


_DRAWS: Mapping[str, Mapping[str, Draw]] = {
    "dyadic": {
        "decay": _among(0.0, 0.5, 1.0, 1.0, 1.0, 1.0),
        "rate": _among(0.0, 0.5, 1.0, 1.0),
        "key": _single,
        "other": lambda rng, shape: rng.integers(-3, 4, shape).astype(np.float64),
    },
    "normal": {
        "decay": lambda rng, shape: rng.uniform(0.8, 1.0, shape),
        "rate": lambda rng, shape: rng.uniform(0.0, 1.0, shape),
        "key": _unit,
        "other": lambda rng, shape: rng.standard_normal(shape),
    },
    "decays": {"decay": _among(*ENDS), "rate": _among(0.0, 0.5, 1.0)},
    "alike": {"decay": _among(1.0), "rate": _among(1.0)},
}
