"""Run-time sizes of 0: what has elements is written all the same, and nothing is divided by them."""

from __future__ import annotations

import ctypes

import pytest
import torch

from specc.oracle import evaluate
from specc.targets.cuda import host
from specc.targets.cuda.emit import emit, symbol
from specc.targets.cuda.run import TYPES
from specc.targets.cuda.session import call
from specc.targets.cuda.target import run
from specc.targets.cuda.wrapper import arguments
from tests.lower.cases import kernel_of

LAST = "op f(c[3, H], x[T, H]) -> y[3, H]\n  y[j, i] = if T + j < 3 then c[T + j, i] else x[T + j - 3, i]"
"""The last three rows, some of them older ones."""


@pytest.mark.parametrize(("op", "sizes"), [
    ("op f(x[T, H]) -> y[T + 1, H]\n  y[t, i] = if t < T then 2·x[t, i] else i", {"x": 0}),
    ("op f(x[T, H], z[S, H]) -> y[T + S, H]\n  y[t, i] = if t < T then x[t, i] else z[t - T, i]", {"x": 0, "z": 3}),
    ("op f(x[T, H], z[S, H]) -> y[T + S, H]\n  y[t, i] = if t < T then x[t, i] else z[t - T, i]", {"x": 3, "z": 0}),
    ("op f(x[T, H]) -> y[T // 2, H]\n  y[t, i] = x[2·t, i] - x[2·t + 1, i]", {"x": 1}),
    (LAST, {"c": 3, "x": 0}),
    ("op f(x[T, H], z[S, H]) -> y[T, H]\n  y[t, i] = if t < S then x[t, i]·z[t, i] else x[t, i]", {"x": 2, "z": 0}),
])  # fmt: skip
def test_results_with_elements_are_written(op: str, sizes: dict[str, int]) -> None:
    kernel = kernel_of(op, H=40)
    inputs = {name: torch.randn(n, 40) for name, n in sizes.items()}
    found = run(kernel, inputs)[0]["y"]
    expected = evaluate(kernel.formula, {name: x.double().numpy() for name, x in inputs.items()})["y"]
    assert torch.equal(found, torch.from_numpy(expected).float())


@pytest.mark.parametrize(("op", "sizes"), [
    ("y[T, H]\n  y[t, i] = x[t, i] + z[t % S, i]", (3, 0)),
    ("y[T, H]\n  y[t, i] = x[t, i] + z[t % (S - 2), i]", (3, 2)),
    ("y[T // S, H]\n  y[t, i] = x[t, i] + z[0, i]", (3, 0)),
    ("y[T // (T // S), H]\n  y[t, i] = x[t, i]", (3, 0)),
    ("y[T // (T // S), H]\n  y[t, i] = x[t, i]", (3, 5)),
    ("y[T, H]\n  y[t, i] = x[t, i] + (if S > 0 then z[t % S, i] else 0)", (3, 0)),
])  # fmt: skip
def test_a_wrapper_refuses_to_divide_by_a_size_of_zero(op: str, sizes: tuple[int, int]) -> None:
    kernel = kernel_of(f"op f(x[T, H], z[S, H]) -> {op}", H=40)
    known = {"type": ctypes.c_int(TYPES[torch.float32]), **dict(zip("TS", map(ctypes.c_int64, sizes), strict=True))}
    given = [known.get(a.name, ctypes.c_int64(40)) for a in arguments(kernel)]
    with pytest.raises(ValueError, match="the launch wrapper returned 1"):
        call(host.load(host.build(emit(kernel))), symbol(kernel), given, [])
