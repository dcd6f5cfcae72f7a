"""Bounds of recurrences: they hold for float32 arithmetic in both forms, do not grow with length, and are exact where
every number is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from specc.bounds import Bound, Numerics, bound, torch, triton
from specc.evidence.judge import VACUOUS
from specc.kernels import Kernel
from tests.bounds.support import kernel, normal, storage
from tests.twins import gdnState

HEADS = {"Hv": 2, "Hk": 1, "Dk": 12, "Dv": 5}


def core(given: tuple[str, ...] = ()) -> Kernel:
    return kernel("gatedDeltaRule", HEADS, given=given)


def operands(steps: int, seed: int, decay: tuple[float, float] = (0.5, 1.0)) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    keys = rng.standard_normal((steps, 1, 12))
    keys /= np.sqrt(np.sum(keys**2, axis=-1, keepdims=True))
    found = {"q": normal(rng, steps, 1, 12), "k": keys, "v": normal(rng, steps, 2, 5)}
    found |= {"alpha": rng.uniform(*decay, (steps, 2)), "beta": rng.uniform(0, 1, (steps, 2))}
    return {n: np.asarray(np.float32(x), np.float64) for n, x in found.items()}


def numerics(*chunks: int) -> Numerics:
    found = triton(storage("float32"))
    return replace(found, depth=replace(found.depth, chunks=chunks))


def float32_steps(t: dict[str, Any]) -> tuple[Any, Any]:
    """The recurrence in float32, one step after the other."""
    x = {n: np.float32(v) for n, v in t.items()}
    state, outputs = np.zeros((2, 5, 12), np.float32), []
    for i in range(len(x["v"])):
        for h in range(2):
            k = x["k"][i, 0]
            held = x["beta"][i, h] * (state[h] @ k)
            state[h] = x["alpha"][i, h] * (state[h] - np.outer(held, k)) + np.outer(x["beta"][i, h] * x["v"][i, h], k)
        outputs.append(np.stack([state[h] @ x["q"][i, 0] for h in range(2)]))
    return state, np.stack(outputs)


@pytest.mark.parametrize("steps", [1, 2, 17, 70])
@pytest.mark.parametrize("form", [torch(storage("float32")), numerics(16)], ids=["steps", "chunks"])
def test_float32_steps_lie_within(steps: int, form: Numerics) -> None:
    for seed in range(3):
        t = operands(steps, seed)
        found = bound(core().lowered, t, form)
        for name, value in zip(("S", "o"), float32_steps(t), strict=True):
            assert np.all(np.abs(value - found[name].value) <= found[name].error)


def vacuity(b: Bound) -> float:
    return float(np.sqrt(np.mean(b.error**2) / np.mean(b.value**2)))


@pytest.mark.parametrize("form", [torch(storage("float32")), numerics(16), numerics(64)], ids=["1", "16", "64"])
def test_a_long_recurrence_has_a_small_bound(form: Numerics) -> None:
    """Magnitudes pushed through the steps would pass every number that float32 has."""
    t = operands(256, 1, (1.0, 1.0)) | {"beta": np.full((256, 2), 0.9)}
    magnitude = np.zeros((5, 12))
    for i in range(256):
        k = np.abs(t["k"][i, 0])
        magnitude = magnitude + 0.9 * np.outer(magnitude @ k + np.abs(t["v"][i, 0]), k)
    assert np.max(magnitude) > 1e38
    found = bound(core().lowered, t, form)
    assert vacuity(found["S"]) <= VACUOUS and vacuity(found["o"]) <= VACUOUS


def test_repeated_keys_do_not_inflate_the_bound_of_a_chunk() -> None:
    """The powers of the triangular matrix pass 2**60 here; its inverse has entries of ±1."""
    t = operands(64, 2, (1.0, 1.0)) | {"beta": np.ones((64, 2))}
    t["k"] = np.repeat(t["k"][:1], 64, axis=0)
    found = bound(core().lowered, t, numerics(64))
    assert vacuity(found["S"]) <= VACUOUS


def test_exact_states_have_no_error() -> None:
    rng = np.random.default_rng(3)
    t = operands(40, 3)
    t["k"] = np.eye(12)[rng.integers(0, 12, 40)][:, None]
    t |= {n: rng.choice([0.0, 1.0], (40, 2)) for n in ("alpha", "beta")}
    t |= {n: rng.integers(-3, 4, t[n].shape).astype(float) for n in ("q", "v")}
    for form in (torch(storage("float32")), numerics(16), numerics(16, 64)):
        found = bound(core().lowered, t, form)
        assert not np.any(found["S"].error) and not np.any(found["o"].error)
        assert np.array_equal(found["S"].value, gdnState(t["k"], t["v"], t["alpha"], t["beta"])[-1])


def test_a_bound_for_several_chunk_sizes_is_none_below_each() -> None:
    t = operands(70, 4)
    both = bound(core().lowered, t, numerics(16, 64))
    for size in (16, 64):
        one = bound(core().lowered, t, numerics(size))
        assert all(np.all(both[n].error >= one[n].error * (1 - 1e-12)) for n in one)


def test_a_chosen_box_has_the_bounds_of_the_whole() -> None:
    t = operands(20, 5) | {"S0": np.ones((2, 5, 12))}
    k = core(("S0",))
    whole = bound(k.lowered, t, numerics(16))
    at = {"o": {"h": [1], "a": [0, 3], "t": [2, 19]}, "S": {"h": [1], "a": [4]}}
    some = bound(k.lowered, t, numerics(16), at=at)
    np.testing.assert_allclose(some["o"].error, whole["o"].error[np.ix_([2, 19], [1], [0, 3])])
    np.testing.assert_allclose(some["S"].error, whole["S"].error[np.ix_([1], [4])])


def test_the_bound_excludes_what_a_dropped_decay_gives() -> None:
    t = operands(33, 6, (0.99, 1.0))
    found = bound(core().lowered, t, numerics(16))["S"]
    once = {**t, "alpha": t["alpha"].copy()}
    once["alpha"][5] = 1.0
    other = gdnState(once["k"], once["v"], once["alpha"], once["beta"])[-1]
    assert np.mean(np.abs(other - found.value) > found.error) > 1 / 2
