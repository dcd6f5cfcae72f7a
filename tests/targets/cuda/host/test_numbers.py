"""bfloat16 and float16 on the CPU, bit by bit, and functions of numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.targets.cuda.host.kernels import run

EVERY = np.arange(1 << 16, dtype=np.uint16)
KINDS = {"__nv_bfloat16": torch.bfloat16, "__half": torch.float16}
GRID = {"grid": (64,), "block": (1024,)}
PLACE = "const int n = blockIdx.x * 1024 + threadIdx.x;\n"


def as_floats(bits: np.ndarray, kind: str) -> np.ndarray:  # type: ignore[type-arg]
    return torch.from_numpy(bits.view(np.int16)).view(KINDS[kind]).float().numpy()


def rounded(x: np.ndarray, kind: str) -> np.ndarray:  # type: ignore[type-arg]
    y = {"y": np.zeros(len(x), dtype=np.uint16)}
    body = PLACE + f"y[n] = specc::round_to<{kind}>(x[n]).bits;"
    run(body, y, {"x": x}, grid=(len(x) // 1024,), block=(1024,))
    return y["y"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_pattern_becomes_its_float32(kind: str) -> None:
    y = {"y": np.zeros(1 << 16, dtype=np.float32)}
    run(PLACE + f"y[n] = specc::to_real({kind}{{x[n]}});", y, {"x": EVERY}, grid=(64,), block=(1024,))
    assert np.array_equal(y["y"], as_floats(EVERY, kind), equal_nan=True)
    assert np.array_equal(np.signbit(y["y"]), EVERY >= 1 << 15)


@pytest.mark.parametrize("kind", KINDS)
def test_every_pattern_comes_back_and_nan_stays_nan(kind: str) -> None:
    values = as_floats(EVERY, kind)
    found = rounded(values, kind)
    number = ~np.isnan(values)
    assert (found[number] == EVERY[number]).all()
    assert np.isnan(as_floats(found, kind)[~number]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", [0.25, 0.5, 0.75])
def test_numbers_between_two_patterns_go_to_the_nearest_and_ties_to_even(kind: str, part: float) -> None:
    """Between each pattern and the next: halfway, and a float32 step to each side of it, where there is room."""
    with np.errstate(invalid="ignore", over="ignore"):
        low = as_floats(EVERY, kind).astype(np.float64)
        high = as_floats(EVERY + 1, kind).astype(np.float64)
        middle = low + (high - low) * part
    sound = np.isfinite(low) & np.isfinite(high) & (np.sign(low) * np.sign(high) >= 0)
    x = np.where(sound, middle, 0.0).astype(np.float32)
    for step in (x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))):
        right = torch.from_numpy(step).to(KINDS[kind]).view(torch.int16).numpy().view(np.uint16)
        assert (rounded(step, kind) == right).all()


@pytest.mark.parametrize("kind", KINDS)
def test_float32_at_random_and_at_its_edges_rounds_as_torch_rounds(kind: str) -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, 1 << 17, dtype=np.uint32)
    edges = np.array([65519.996, 65520, 65504, 2.0**-24, 2.0**-25, 2.0**-26, 3.4e38, np.inf, -np.inf, 0.0, -0.0, 1e-45])
    bits[: len(edges)] = edges.astype(np.float32).view(np.uint32)
    x = bits.view(np.float32)
    right = torch.from_numpy(x).to(KINDS[kind]).view(torch.int16).numpy().view(np.uint16)
    number = ~np.isnan(x)
    assert (rounded(x, kind)[number] == right[number]).all()


def test_angles_are_reduced_in_float64() -> None:
    angles = np.random.default_rng(0).uniform(-262143, 262143, 1024)
    y = {"s": np.zeros(1024, dtype=np.float32), "c": np.zeros(1024, dtype=np.float32)}
    body = "const int n = threadIdx.x;\ns[n] = specc::sine(x[n], real());\nc[n] = specc::cosine(x[n], real());"
    run(body, y, {"x": angles}, block=(1024,))
    unit = 2.0**-24
    turns = 262143 * 2.0**-52  # what the reduction leaves, in radians
    assert np.abs(y["s"] - np.sin(angles)).max() <= 3 * unit + 2 * np.pi * (unit / 2) + turns
    assert np.abs(y["c"] - np.cos(angles)).max() <= 3 * unit + 2 * np.pi * (unit / 2) + turns


def test_division_of_integers_rounds_down() -> None:
    a, b = np.meshgrid(np.arange(-8, 8), np.array([-3, -2, -1, 1, 2, 3, 5, 7]), indexing="ij")
    y = {"q": np.zeros(128, dtype=np.int64), "r": np.zeros(128, dtype=np.int64)}
    run("const int n = threadIdx.x;\nq[n] = specc::floor_div(a[n], b[n]);\nr[n] = specc::floor_mod(a[n], b[n]);", y,
        {"a": a.astype(np.int64), "b": b.astype(np.int64)}, block=(128,))  # fmt: skip
    assert (y["q"] == (a // b).reshape(-1)).all() and (y["r"] == (a % b).reshape(-1)).all()


@pytest.mark.parametrize("left", [0, 1, 3, 4, 7, 8, 9])
def test_a_vector_at_the_end_of_a_row_takes_and_leaves_what_is_there(left: int) -> None:
    x = np.arange(1, 17, dtype=np.float32)[: max(left, 1)]
    y = {"y": np.zeros(16, dtype=np.float32)}
    trace = run(f"specc::store_up_to(y, specc::load_up_to<8>(x, {left}), {left});", y, {"x": x}, block=(1,))
    count = min(left, 8)
    assert (y["y"][:count] == x[:count]).all() and (trace.counts["y"][:count] == 1).all()
    assert (trace.counts["y"][count:] == 0).all()


def test_the_whole_kernel_can_compute_in_float64() -> None:
    x = np.random.default_rng(0).standard_normal(32)
    y = {"y": np.zeros(32)}
    run("y[threadIdx.x] = specc::rounded<double>(x[threadIdx.x] * real(0.1));", y, {"x": x}, wide=True)
    assert (y["y"] == x * 0.1).all()
