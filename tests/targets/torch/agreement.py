"""Holding a printed function against the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from specc.ops import Formula
from specc.oracle import evaluate
from specc.targets.torch.target import run_node

CLOSE = 1e-12


def agree(formula: Formula, tensors: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, torch.Tensor]:
    """Runs the printed function in float64 and holds it against the oracle; also that it left its operands alone."""
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
