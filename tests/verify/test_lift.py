"""Requests for float32 become float64, wherever they are made, and are counted by place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from specc.verify.lift import Lift

X = torch.arange(3, dtype=torch.float64) / 3

REQUESTS: dict[str, Callable[[], torch.Tensor]] = {
    "float": lambda: X.float(),
    "to": lambda: X.to(torch.float32),
    "to with a device": lambda: X.to("cpu", torch.float32),
    "softmax": lambda: functional.softmax(X, dim=-1, dtype=torch.float32),
    "mean": lambda: X.mean(dtype=torch.float32),
    "arange": lambda: torch.arange(3, dtype=torch.int64).float() / 3,
    "tensor": lambda: torch.tensor([0.1], dtype=torch.float32),
    "zeros_like": lambda: torch.zeros_like(X, dtype=torch.float32) + 1 / 3,
    "type": lambda: X.type(torch.float32),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_for_float32_is_lifted_and_counted(name: str) -> None:
    lift = Lift()
    with lift():
        found = REQUESTS[name]()
    assert found.dtype is torch.float64
    assert lift.count == 1
    assert next(iter(lift.places)).startswith("test_lift.py:")


def test_digits_are_kept() -> None:
    with Lift()():
        assert torch.equal(X.float(), X)
        assert torch.tensor(1 / 3).item() == 1 / 3


def test_outside_nothing_is_lifted() -> None:
    before = torch.get_default_dtype()
    lift = Lift()
    with pytest.raises(ValueError, match="here"), lift():
        raise ValueError("here")
    assert torch.get_default_dtype() is before
    assert X.float().dtype is torch.float32
    assert lift.count == 0
