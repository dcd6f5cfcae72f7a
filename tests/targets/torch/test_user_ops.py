"""Ops that a user might write, and operands with awkward names: their printed functions against the oracle."""

from __future__ import annotations

import pytest

from tests.lower.cases import Case, operands
from tests.lower.test_names import CASES
from tests.lower.user_ops import USER
from tests.targets.torch.agreement import agree

SIZES = {"T": 3, "L": 7, "B": 2, "S": 5, "R0": 2, "R1": 3, "__1": 3}
SMALLEST = {**dict.fromkeys(SIZES, 1), "L": 3}


@pytest.mark.parametrize("sizes", [SIZES, SMALLEST], ids=["some", "one"])
@pytest.mark.parametrize("case", [*USER, *CASES], ids=lambda c: c.name)
def test_the_function_agrees_with_the_definition(case: Case, sizes: dict[str, int]) -> None:
    formula = case.formula()
    agree(formula, operands(formula, sizes, 0, case))
