"""Kernels of users' ops whose constants are none of a shipped spec: registers suffice for those too."""

from __future__ import annotations

import re

import pytest

from specc.ahead import ARCHITECTURES
from specc.kernels import Kernel
from specc.targets.cuda.aot import compile_kernel
from specc.targets.cuda.emit import emit
from tests.targets.cuda.generated import custom

SOFTMAX = """op softmax(x[T, H]; H: nat) -> y[T, H]
  let m = Max_j x[t, j]
  let s = Σ_j exp(x[t, j] - m)
  y[t, i] = exp(x[t, i] - m) / s
"""
LAYERNORM = """op norm(x[T, H], r[T, H], w[H], b[H]; H: nat) -> y[T, H], s[T, H]
  let z[i] = x[t, i] + r[t, i]
  let m = Σ_j z[j] / H
  let v = Σ_j (z[j] - m)² / H
  y[t, i] = (z[i] - m) / √(v + 1e-5) · w[i] + b[i]
  s[t, i] = z[i]
"""
SIX = """op six(a[T, H], b[T, H], c[T, H], d[T, H], e[T, H], f[T, H]; H: nat) -> y[T, H]
  let p = Σ_j a[t, j] · b[t, j]
  let q = Σ_j c[t, j] · d[t, j] + p
  let u = Σ_j e[t, j] · f[t, j] · q
  y[t, i] = a[t, i] · p + b[t, i] · q + c[t, i] · u + d[t, i] · (p - q) + e[t, i] · (q - u) + f[t, i]
"""
ROWS = {"softmax": SOFTMAX, "layer norm of a residual": LAYERNORM, "six rows at once": SIX}
LENGTHS = (
    1023,
    1025,
    4095,
    5376,
    8191,
    8192,
    8193,
    10240,
    12289,
    16383,
    16384,
    16385,
    19456,
    25001,
    32001,
    32768,
    32769,
)
GATED = """op down(g[T, 2·I], w[N, I]; I: nat, N: nat) -> y[T, N]
  y[t, n] = Σ_{i < I} g[t, i] / (1 + exp(-g[t, i])) · g[t, I + i] · w[n, i]
"""
ACROSS = "op f(x[T, K], w[K, N]; K: nat, N: nat) -> y[T, N]\n  y[t, n] = Σ_k x[t, k] · w[k, n]\n"
PRODUCTS = {
    "gate and value": (GATED, {"I": 4096, "N": 2048}),
    "weights across": (ACROSS, {"K": 127, "N": 129}),
    "weights across, whole tiles": (ACROSS, {"K": 768, "N": 3072}),
}
BOUNDS = re.compile(r"__launch_bounds__\((.*)\) \w+_kernel")


def assert_no_spills(kernel: Kernel, arch: str, dtype: str) -> None:
    for report in compile_kernel(kernel, emit(kernel), arch, dtype):
        assert (report.spill_stores, report.spill_loads, report.fits) == (0, 0, True), report


@pytest.mark.parametrize(("name", "length", "dtype"), [
    ("softmax", 19455, "bfloat16"), ("softmax", 32001, "bfloat16"), ("layer norm of a residual", 8191, "float32"),
    ("six rows at once", 16384, "float32"),
])  # fmt: skip
def test_long_rows_do_not_spill(name: str, length: int, dtype: str) -> None:
    assert_no_spills(custom(ROWS[name], H=length), "sm_80", dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_no_length_spill(name: str, length: int, arch: str, dtype: str) -> None:
    assert_no_spills(custom(ROWS[name], H=length), arch, dtype)


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_of_what_is_computed_is_promised_one_block_at_a_time(name: str) -> None:
    text, constants = PRODUCTS[name]
    assert set(BOUNDS.findall(emit(custom(text, **constants)))) == {"256, 1", "Shape::THREADS, 1"}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_of_what_is_computed_does_not_spill(name: str, arch: str, dtype: str) -> None:
    text, constants = PRODUCTS[name]
    assert_no_spills(custom(text, **constants), arch, dtype)
