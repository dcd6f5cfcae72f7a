"""Launches of more blocks than 32 bits count, or than one axis of a grid has: as they should be, or refused."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import pytest

from specc.kernels import Kernel
from specc.targets.cuda import emit_pointwise, host
from specc.targets.cuda.emit import emit, symbol
from specc.targets.cuda.names import legal
from specc.targets.cuda.session import Planned, plan
from specc.targets.cuda.wrapper import Argument, arguments
from tests.targets.cuda.generated import assert_verified, custom, shipped

BFLOAT16, SOMEWHERE = 0, 1 << 40


def planned(kernel: Kernel, sizes: Sequence[int], stride: int) -> tuple[Planned, ...]:
    """What the kernel's wrapper would launch of bfloat16 operands at multiples of 16 bytes."""
    named = dict(zip(legal(kernel).sizes, sizes, strict=True))

    def value(a: Argument) -> object:
        match a.kind:
            case "size":
                return ctypes.c_int64(named[a.name])
            case "stride":
                return ctypes.c_int64(stride)
            case "type" | "index_bytes":
                return ctypes.c_int(BFLOAT16 if a.kind == "type" else 8)
        return ctypes.c_void_p(None if a.kind == "stream" else SOMEWHERE)

    library = host.load(host.build_wrapper(emit(kernel)))
    return plan(library, symbol(kernel), [value(a) for a in arguments(legal(kernel))])


def test_a_product_of_too_many_tiles_is_refused() -> None:
    kernel = shipped("lmHead", K=64, N=262144, mul=1, softcap=30)
    (one,) = planned(kernel, [1 << 17], stride=64)
    assert one.grid == ((1 << 17) // 128 * 2048, 1, 1)
    for rows in ((1 << 28) + 1, (1 << 29) + 128):
        with pytest.raises(ValueError, match="the launch wrapper returned 1"):
            planned(kernel, [rows], stride=64)


def test_more_rows_than_64_bits_count_are_refused() -> None:
    text = "op f(x[T, B, S, H], w[H]; H: nat) -> y[T, B, S, H]\n  y[t, b, s, i] = x[t, b, s, i] · w[i]\n"
    kernel = custom(text, H=64)
    assert planned(kernel, [5, 6, 7], stride=64)
    for size in (1 << 22, 1 << 30):
        with pytest.raises(ValueError, match="the launch wrapper returned 1"):
            planned(kernel, [size, size, size], stride=64)


def test_a_compound_axis_longer_than_index_variables_reach_is_refused() -> None:
    kernel = custom("op f(x[T, H], z[S, H]) -> y[T + S, H]\n  y[t, i] = if t < T then x[t, i] else z[t - T, i]", H=64)
    assert planned(kernel, [1 << 29, 1 << 29], stride=64)
    with pytest.raises(ValueError, match="the launch wrapper returned 1"):
        planned(kernel, [1 << 29, (1 << 29) + 1], stride=64)


@pytest.mark.parametrize("width", [17_000_001, 140_000_000])
def test_a_row_of_more_blocks_than_an_axis_has_takes_two_axes(width: int) -> None:
    (one,) = planned(shipped("geluMul", I=width), [3], stride=2 * width)
    x, y, z = one.grid
    vector = 8 if width % 8 == 0 else 1
    assert x == 3 and y <= 65535 and z > 1 and 0 <= y * z * one.block[0] * vector - width < (z + 1) * 256 * vector


def test_a_row_over_two_axes_of_a_grid_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit_pointwise, "MOST_ACROSS", 2)
    kernel = shipped("geluMul", I=5000)
    assert "blockIdx.z" in emit(kernel)
    assert_verified(kernel, examples=1)
