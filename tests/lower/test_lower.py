"""What lowering must keep: the kernel's slots and its lowered formula mean what the definition means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from specc.bounds import bound, triton
from specc.evidence.tables import table_values
from specc.ops import Apply, Named, walk
from specc.oracle import evaluate
from tests.lower.cases import Case, check, operands
from tests.lower.shipped import SHIPPED
from tests.lower.user_ops import USER

CASES = [*SHIPPED, *USER]
SIZES = st.fixed_dictionaries({
    "T": st.integers(0, 4), "L": st.integers(1, 9), "B": st.integers(0, 3), "S": st.integers(1, 9),
    "R0": st.integers(0, 3), "R1": st.integers(0, 3),
})  # fmt: skip


def title(case: Case) -> str:
    return f"{case.name}-" + "-".join(f"{k}={v}" for k, v in case.constants.items())


@pytest.mark.parametrize("case", CASES, ids=title)
@given(sizes=SIZES, seed=st.integers(0, 2**32 - 1))
@example(sizes={"T": 3, "L": 7, "B": 2, "S": 5, "R0": 2, "R1": 3}, seed=0)
@settings(max_examples=5)
def test_slots_and_lowered_formula_equal_the_definition(case: Case, sizes: dict[str, int], seed: int) -> None:
    check(case, sizes, seed)


@pytest.mark.parametrize("case", CASES, ids=title)
def test_a_lowered_formula_holds_no_definition_and_no_let(case: Case) -> None:
    nodes = [n for q in case.kernel().lowered.equations for n in walk(q.expr)]
    assert not [n for n in nodes if isinstance(n, Apply | Named)]


@pytest.mark.parametrize("case", CASES, ids=title)
def test_a_bound_is_known_for_every_lowered_formula(case: Case) -> None:
    kernel, sizes = case.kernel(), {"T": 3, "L": 7, "B": 2, "S": 5, "R0": 2, "R1": 3}
    tensors = operands(kernel.formula, sizes, 0, case)
    tables = {t.name: table_values(t) for t in kernel.tables}
    types = dict.fromkeys(("weight", "activation", "cache", "accumulator"), "float32")
    found = bound(kernel.lowered, {**tensors, **tables}, triton(types), tables=tuple(tables))
    right = evaluate(kernel.formula, tensors, sizes)
    for name, b in found.items():
        assert np.isfinite(b.error).all(), name
        assert (np.abs(b.value - right[name]) <= b.error + 1e-9).all(), name
