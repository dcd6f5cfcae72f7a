"""What lowering must keep: the kernel's slots and its lowered formula mean what the definition means."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from specc.ops import Apply, Named, walk
from tests.lower.cases import Case, check
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
@settings(max_examples=8)
def test_slots_and_lowered_formula_equal_the_definition(case: Case, sizes: dict[str, int], seed: int) -> None:
    check(case, sizes, seed)


@pytest.mark.parametrize("case", CASES, ids=title)
def test_a_lowered_formula_holds_no_definition_and_no_let(case: Case) -> None:
    nodes = [n for q in case.kernel().lowered.equations for n in walk(q.expr)]
    assert not [n for n in nodes if isinstance(n, Apply | Named)]
