"""Every op of the library, printed and run in float64, is what the oracle says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from specc.library import load_library
from specc.ops import Formula, Size
from specc.oracle import evaluate
from specc.targets.torch.target import run_node
from tests.targets.torch.cases import CONSTANTS, formula_of, operands

CLOSE = 1e-12


def agree(formula: Formula, tensors: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, torch.Tensor]:
    """Runs the printed function and holds it against the oracle; also that it left its operands alone."""
    before = {n: t.copy() for n, t in tensors.items()}
    found = run_node(formula, {}, tensors, "float64")
    for name, expected in evaluate(formula, tensors).items():
        got = found[name].numpy()
        assert got.shape == expected.shape
        assert np.array_equal(np.isnan(got), np.isnan(expected))
        scale = np.nanmax(np.abs(expected), initial=1e-300)
        assert np.nanmax(np.abs(got - expected), initial=0.0) <= CLOSE * scale
    for name, t in tensors.items():
        assert np.array_equal(t, before[name], equal_nan=True)
    return found


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
    for t in formula.outputs:
        assert any(d in leading for d in t.dims)
        assert found[t.name].numel() == 0 and found[t.name].dim() == len(t.dims)
