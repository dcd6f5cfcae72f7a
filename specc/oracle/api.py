"""What the rest of the compiler calls."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from specc.ops import Formula
from specc.oracle.arithmetic import Float64
from specc.oracle.arrays import Array, Budget, Values
from specc.oracle.blocks import fill
from specc.oracle.evaluate import Evaluator
from specc.oracle.sizes import Chosen, bind, places

GIB = 1 << 30


def evaluate(
    formula: Formula,
    tensors: Mapping[str, Array],
    sizes: Mapping[str, int] | None = None,
    at: Chosen | None = None,
    limit_bytes: int = GIB,
) -> dict[str, Array]:
    """The results of a closed formula by its definition, in float64.

    `tensors`: one array per input, any real or integer type of at most 64 bits, any strides; only elements that are
    read are touched. Run-time sizes come from their shapes; `sizes` adds those that no operand has. `at` chooses, per
    result and index variable, positions (or a slice): the result is their box; what it does not name is whole.
    No intermediate passes `limit_bytes`.

    Raises ValueError (operands do not fit the formula), IndexError (a read outside an operand, or of `at`),
    ZeroDivisionError (an index divided by 0), MemoryError (one element alone passes `limit_bytes`).
    """
    return {n: v.data for n, v in _run(formula, tensors, sizes, at, limit_bytes, Float64()).items()}


def _run(
    formula: Formula,
    tensors: Mapping[str, Array],
    sizes: Mapping[str, int] | None,
    at: Chosen | None,
    limit_bytes: int,
    number: Float64,
) -> dict[str, Values]:
    found = bind(formula, tensors, sizes)
    unknown = [n for n in at or {} if n not in {t.name for t in formula.outputs}]
    if unknown:
        raise ValueError(f"{formula.op} has no result `{unknown[0]}`")
    evaluator = Evaluator(formula, tensors, found, number, Budget(limit_bytes))
    with np.errstate(all="ignore"):
        return {q.tensor.name: fill(q, places(q, found, at), evaluator) for q in formula.equations}
