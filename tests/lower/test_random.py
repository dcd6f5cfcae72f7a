"""Random formulas are lowered rightly or refused, and nothing else."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings

from specc.evidence.tables import table_values
from specc.lower.lower import NoSchedule, Setting, lower_formula
from specc.ops import Expr, Size
from specc.oracle import evaluate
from specc.passes.rewrite import bottom_up
from tests.expressions import DATA, formula, reading, whole
from tests.lower.cases import bare
from tests.lower.slots import Machine


def closed(e: Expr) -> Expr:
    return bottom_up(e, lambda n: whole(4) if n == Size("H") else n)


@given(reading)
@settings(max_examples=300)
def test_a_random_formula_is_lowered_rightly_or_refused(e: Expr) -> None:
    f = formula(closed(e))
    try:
        kernel = lower_formula(f, Setting("f"))
    except NoSchedule as no:
        event(f"refused: {no.reasons[0][0]}")
        return
    event(kernel.schedule_name)
    right = evaluate(f, DATA)["y"]
    tables = {t.name: table_values(t) for t in kernel.tables}
    tolerance = {"rtol": 1e-9, "atol": 1e-9 * float(np.abs(right).max())}
    np.testing.assert_allclose(evaluate(bare(kernel.lowered), {**DATA, **tables})["y"], right, **tolerance)
    np.testing.assert_allclose(Machine(kernel, DATA, {"T": 3}).run()["y"], right, **tolerance)
