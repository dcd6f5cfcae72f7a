"""Every op of the library, printed and run in float64, is what the oracle says."""

from __future__ import annotations

import pytest

from specc.library import load_library
from specc.ops import Size
from specc.targets.torch.target import run_node
from tests.targets.torch.agreement import agree
from tests.targets.torch.cases import CONSTANTS, formula_of, operands


def test_no_op_of_the_library_is_left_out() -> None:
    assert sorted(CONSTANTS) == [op.name for op in load_library().ops]


@pytest.mark.parametrize("op", sorted(CONSTANTS))
@pytest.mark.parametrize("seed", [0, 1])
def test_every_op_agrees_with_the_oracle(op: str, seed: int) -> None:
    formula = formula_of(op)
    agree(formula, operands(formula, seed))


@pytest.mark.parametrize("op", sorted(CONSTANTS))
def test_every_op_agrees_with_the_oracle_on_one_row(op: str) -> None:
    formula = formula_of(op)
    agree(formula, operands(formula, T=1, B=1, Hn=1, L=9))


@pytest.mark.parametrize("op", sorted(CONSTANTS))
def test_no_rows_give_an_empty_result(op: str) -> None:
    formula = formula_of(op)
    tensors = operands(formula, T=0, B=0)
    found = run_node(formula, {}, tensors, "float64")
    leading = {Size("T"), Size("B")}
    rows = [t for t in formula.outputs if any(d in leading for d in t.dims)]
    assert rows
    for t in rows:
        assert found[t.name].numel() == 0 and found[t.name].dim() == len(t.dims)
