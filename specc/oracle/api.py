"""What the rest of the compiler calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specc.ops import Formula
from specc.oracle.arithmetic import Float64
from specc.oracle.arrays import Array, Budget, Values
from specc.oracle.blocks import Box, fill
from specc.oracle.evaluate import Evaluator
from specc.oracle.precise import Precise
from specc.oracle.sizes import Chosen, bind, places
from specc.oracle.uncertain import U, Uncertain

GIB = 1 << 30
SHARE = 0.01
"""How much of a tolerance the oracle's own error may use up."""
DIGITS = 50
MOST_DIGITS = 800
BYTES_PER_PRECISE = 16
"""An mpmath number takes about as many times the 8 bytes of a double."""


def evaluate(
    formula: Formula,
    tensors: Mapping[str, Array],
    sizes: Mapping[str, int] | None = None,
    at: Chosen | None = None,
    limit_bytes: int = GIB,
) -> dict[str, Array]:
    """The results of a closed formula by its definition, in float64.

    `tensors`: one array per input, any real or integer type of at most 64 bits, any strides; only elements
    that are read are touched. Run-time sizes come from their shapes; `sizes` adds those that no operand has.
    `at` chooses, per result and index variable, positions (or a slice): the result is their box; what it
    does not name is whole. No intermediate passes `limit_bytes`.

    Raises ValueError (operands do not fit the formula), IndexError (a read outside an operand, or of `at`),
    ZeroDivisionError (an index divided by 0), MemoryError (one element alone passes `limit_bytes`).
    """
    found = _Run(formula, tensors, sizes, limit_bytes, Float64()).results(at)
    return {name: v.data for name, v in found.items()}


def uncertainty(
    formula: Formula,
    tensors: Mapping[str, Array],
    sizes: Mapping[str, int] | None = None,
    at: Chosen | None = None,
    limit_bytes: int = GIB,
) -> dict[str, Array]:
    """For each value that `evaluate` gives for the same arguments, a bound of its own rounding error (inf or
    NaN where none is known). A NaN that comes from a NaN operand has bound 0. Raises as `evaluate` does."""
    found = _Run(formula, tensors, sizes, limit_bytes, Uncertain()).results(at)
    return {name: _bound(v) for name, v in found.items()}


def precise(
    formula: Formula,
    tensors: Mapping[str, Array],
    sizes: Mapping[str, int] | None = None,
    at_points: Mapping[str, Sequence[Sequence[int]]] | None = None,
    digits: int = DIGITS,
    limit_bytes: int = GIB,
) -> dict[str, list[Any]]:
    """Single elements as mpmath numbers, computed with `digits` decimal digits: per result, in the order of
    its points (one index per axis). Raises as `evaluate` does."""
    run = _Run(formula, tensors, sizes, limit_bytes // BYTES_PER_PRECISE, Precise(digits))
    return {name: [run.element(name, p) for p in points] for name, points in (at_points or {}).items()}


@dataclass(frozen=True)
class Within:
    """Values with a bound of their own error. `unsettled` counts, per result, the values whose error may pass
    the share of the tolerance that it was to keep; `recomputed` says how many needed more than float64."""

    values: dict[str, Array]
    uncertainty: dict[str, Array]
    recomputed: int
    unsettled: dict[str, int]


def evaluate_within(
    formula: Formula,
    tensors: Mapping[str, Array],
    tolerance: Mapping[str, Array | float],
    sizes: Mapping[str, int] | None = None,
    at: Chosen | None = None,
    limit_bytes: int = GIB,
    max_precise: int = 64,
    share: float = SHARE,
) -> Within:
    """As `evaluate`, but each value is off by at most `share` of its tolerance (an array over the chosen box,
    or one number, per result), or by half a unit in its last place. Where float64 cannot promise that, the
    element is computed again with so many digits that two computations agree: at most `max_precise` elements
    in all, the worst first. Raises as `evaluate` does."""
    found = _Run(formula, tensors, sizes, limit_bytes, Uncertain()).results(at)
    again = _Again(formula, tensors, sizes, limit_bytes // BYTES_PER_PRECISE)
    left, unsettled = max_precise, {}
    for name, v in found.items():
        allowed = np.broadcast_to(share * np.asarray(tolerance[name], np.float64), v.data.shape)
        doubtful = _worst_first(_bound(v), allowed)
        settled = sum(again.settle(name, v, index, float(allowed[index]), at) for index in doubtful[:left])
        unsettled[name] = len(doubtful) - settled
        left -= min(left, len(doubtful))
    values = {name: v.data for name, v in found.items()}
    return Within(values, {name: _bound(v) for name, v in found.items()}, max_precise - left, unsettled)


def _bound(v: Values) -> Array:
    return np.zeros(v.data.shape) if v.error is None else v.error


def _worst_first(error: Array, allowed: Array) -> list[tuple[int, ...]]:
    """Places where the error may be larger than allowed."""
    with np.errstate(all="ignore"):
        ratio = np.where(error <= allowed, 0.0, np.nan_to_num(error / allowed, nan=np.inf)).ravel()
    order = np.argsort(-ratio, kind="stable")[: int((ratio > 0).sum())]
    return [tuple(int(i) for i in np.unravel_index(k, error.shape)) for k in order]


class _Run:
    """One formula on given operands in one arithmetic."""

    def __init__(
        self,
        formula: Formula,
        tensors: Mapping[str, Array],
        sizes: Mapping[str, int] | None,
        limit_bytes: int,
        number: Float64,
    ) -> None:
        self.formula = formula
        self.sizes = bind(formula, tensors, sizes)
        self.evaluator = Evaluator(formula, tensors, self.sizes, number, Budget(limit_bytes))

    def results(self, at: Chosen | None) -> dict[str, Values]:
        boxes = {q.tensor.name: self.box(q.tensor.name, at) for q in self.formula.equations}
        unknown = [n for n in at or {} if n not in boxes]
        if unknown:
            raise ValueError(f"{self.formula.op} has no result `{unknown[0]}`")
        with np.errstate(all="ignore"):
            return {q.tensor.name: fill(q, boxes[q.tensor.name], self.evaluator) for q in self.formula.equations}

    def box(self, name: str, at: Chosen | None) -> Box:
        return places(self._equation(name), self.sizes, at)

    def element(self, name: str, point: Sequence[int]) -> Any:
        q = self._equation(name)
        if len(point) != len(q.indices):
            raise ValueError(f"`{name}` has {len(q.indices)} axes, a point has {len(point)} indices")
        box = places(q, self.sizes, {name: {v: [i] for v, i in zip(q.indices, point, strict=True)}})
        with np.errstate(all="ignore"):
            return fill(q, box, self.evaluator).data.flat[0]

    def _equation(self, name: str) -> Any:
        for q in self.formula.equations:
            if q.tensor.name == name:
                return q
        raise ValueError(f"{self.formula.op} has no result `{name}`")


class _Again:
    """Second computations of single elements, with as many digits as they need."""

    def __init__(
        self,
        formula: Formula,
        tensors: Mapping[str, Array],
        sizes: Mapping[str, int] | None,
        limit_bytes: int,
    ) -> None:
        self.arguments = (formula, tensors, sizes, limit_bytes)
        self.runs: dict[int, _Run] = {}

    def _run(self, digits: int) -> _Run:
        if digits not in self.runs:
            self.runs[digits] = _Run(*self.arguments, Precise(digits))
        return self.runs[digits]

    def settle(self, name: str, v: Values, index: tuple[int, ...], allowed: float, at: Chosen | None) -> bool:
        """Replaces one value and its error in `v`. False where no number of digits gave a stable value."""
        box = self._run(DIGITS).box(name, at)
        point = [int(positions[i]) for positions, i in zip(box.values(), index, strict=True)]
        digits, value = DIGITS, self._run(DIGITS).element(name, point)
        while digits < MOST_DIGITS:
            digits *= 2
            better = self._run(digits).element(name, point)
            gap, value = abs(better - value), better
            if gap <= max(abs(value) * U / 16, allowed / 16):
                v.data[index] = float(value)
                assert v.error is not None
                v.error[index] = float(gap) + abs(float(value)) * U
                return bool(v.error[index] <= max(allowed, abs(float(value)) * 2 * U))
        return False
