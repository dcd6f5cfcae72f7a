"""Gated activations that real kernels got wrong."""

from __future__ import annotations

import numpy as np
import pytest

from specc.oracle import precise
from tests import twins
from tests.cases.support import STORAGE, TARGETS, Trial, kernel, trial


def gelu(gate: float, up: float = 1.0, dtype: str = "float32") -> Trial:
    return trial(kernel("geluMul", I=1), dtype, gu=[[gate, up]])


def _digits(of: Trial, text: str) -> None:
    """The definition at many digits prints as `text`."""
    (value,) = precise(of.kernel.formula, of.tensors, at_points={"y": [(0, 0)]})["y"]
    places = len(text.split("e")[0].split(".")[1])
    mantissa, exponent = f"{float(value):.{places}e}".split("e")
    assert f"{mantissa}e{int(exponent)}" == text


@pytest.mark.parametrize(("gate", "text"), [(-8.0, "-3.1e-21"), (-5.0, "-2.29e-7")])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gelu_in_the_negative_tail_does_not_cancel(gate: float, text: str, dtype: str) -> None:
    of = gelu(gate, dtype=dtype).right()
    _digits(of, text)
    of.refutes(-0.0)


def test_the_tail_is_right_in_float64_too() -> None:
    of = gelu(-8.0, dtype="float64")
    y = of.outputs("torch")["y"]
    _digits(of, "-3.1e-21")
    assert f"{y[0, 0]:.1e}" == "-3.1e-21"
    of.right(("torch",)).refutes(-0.0, ("torch",))


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("gate", [10.1, 30.0, 100.0, 1e4])
def test_gelu_of_large_gates_is_the_gate(gate: float, dtype: str) -> None:
    of = gelu(gate, dtype=dtype).right()
    assert of.oracle()[0, 0] == of.tensors["gu"][0, 0]
    of.refutes(np.nan)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("gate", [-100.0, -1000.0, -1e4])
def test_silu_of_a_very_negative_gate_is_nearly_zero_not_nan(gate: float, dtype: str) -> None:
    of = trial(kernel("siluMul", I=1), dtype, gu=[[gate, 1.0]]).right(vacuous=np.inf)
    assert -1e-40 < of.oracle()[0, 0] <= 0
    of.refutes(np.nan).refutes(gate)
    assert all(-1e-37 < of.outputs(t)["y"][0, 0] <= 0 for t in TARGETS)


@pytest.mark.parametrize("dtype", STORAGE)
def test_the_activation_is_on_the_first_half(dtype: str) -> None:
    of = gelu(2.0, 3.0, dtype).right()
    assert of.oracle()[0, 0] == pytest.approx(3 * twins.geluTanh(2.0), rel=1e-15)
    of.refutes(2 * twins.geluTanh(3.0))
