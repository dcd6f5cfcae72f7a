"""Formulas that no shipped op has: whatever the language says, the printed function says too."""

from __future__ import annotations

import numpy as np
import pytest

from specc.ops import Num, Size
from tests.oracle.formulas import beside_shipped, close
from tests.targets.torch.agreement import agree
from tests.targets.torch.formulas import FORMULAS

LENGTHS = {"T": 5, "D": 6, "C": 3, "L": 7, "N": 4, "V": 9, "B": 3, "R0": 2, "R1": 3}


@pytest.mark.parametrize("name", FORMULAS)
def test_formula_agrees_with_the_oracle(name: str) -> None:
    formula = close("f", lead=2 if ".." in FORMULAS[name] else 0, library=beside_shipped(FORMULAS[name]))
    rng = np.random.default_rng(7)
    tensors = {}
    for t in formula.inputs:
        shape = [LENGTHS[d.name] if isinstance(d, Size) else int(d.value) for d in t.dims if isinstance(d, Size | Num)]
        tensors[t.name] = rng.integers(0, 9, shape) if t.sort == "index" else rng.normal(size=shape)
    agree(formula, tensors)
