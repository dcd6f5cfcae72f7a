"""Launchers: what they refuse, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from specc.targets.triton.emit import emit
from specc.targets.triton.interpret import interpreted
from specc.targets.triton.load import load_module, runtime_of
from tests.oracle.formulas import close
from tests.targets.triton.generated import assert_right, custom, kernel_of, operands, shipped

LINEAR = shipped("linear", K=32, N=16)
MODULE = load_module(emit(LINEAR))
RUNTIME: Any = runtime_of(MODULE)
X, W = torch.ones(3, 32), torch.ones(16, 32)

Wrong = Callable[[], Any]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: MODULE.node([1.0], W), TypeError, "x is a list, not a tensor"),
        (lambda: MODULE.node(X.double(), W.double()), TypeError, "x holds float64, not bfloat16, float16, float32"),
        (lambda: MODULE.node(X, W.half()), TypeError, "w holds float16, not float32 as x is"),
        (lambda: MODULE.node(X[0], W), ValueError, r"x has 1 axes, not 2: \[R0, 32\]"),
        (lambda: MODULE.node(X[:, :31], W), ValueError, r"x is \[3, 31\], not \[3, 32\]"),
        (lambda: MODULE.node(X, W[:15]), ValueError, r"w is \[15, 32\], not \[16, 32\]"),
        (lambda: MODULE.node(torch.ones(32, 3).T, W), ValueError, "x has stride 3 on its last axis, not 1"),
        (lambda: MODULE.node(X, W.to("meta")), ValueError, "w is on meta, other arguments are on cpu"),
        (lambda: MODULE.node(X, W, out=torch.ones(3, 15)), ValueError, r"y is \[3, 15\]"),
        (lambda: MODULE.node(X, W, out=torch.ones(3, 16).half()), TypeError, "y holds float16"),
        (lambda: MODULE.node(X, W, out=torch.ones(1, 16).expand(3, 16)), ValueError, "share a place"),
        (lambda: MODULE.node(X, W, out=X[:, :16]), ValueError, "y overlaps x"),
        (lambda: MODULE.node(torch.ones(1, 32).expand(2**27, 32), W, out=X), ValueError, r"y is \[3, 32\]"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(call: Wrong, error: type[Exception], message: str) -> None:
    with interpreted() as trace, pytest.raises(error, match=message):
        call()
    assert trace.launches == []


def test_columns_of_one_buffer_may_be_read_and_written_side_by_side() -> None:
    buffer = torch.ones(3, 48)
    with interpreted():
        y = MODULE.node(buffer[:, :32], W, out=buffer[:, 32:])
    assert (y == 32).all()


def test_a_shared_row_may_be_read_many_times() -> None:
    with interpreted():
        assert (MODULE.node(torch.ones(1, 32).expand(3, 32), W) == 32).all()


def test_more_elements_than_32_bits_reach_are_refused_unless_offsets_are_wide() -> None:
    text = "op m(x[T, H]; H: nat) -> y[T, H]\n  y[t, i] = 2 · x[t, i]\n"
    narrow = load_module(emit(custom(text, H=1024)))
    huge = torch.empty(2**21 + 1, 1024, device="meta", dtype=torch.float16)
    with pytest.raises(ValueError, match="x reaches over 2147484672 elements"):
        narrow.node(huge)


def test_an_axis_longer_than_index_variables_count_is_refused() -> None:
    narrow = load_module(emit(custom("op m(x[T, H]; H: nat) -> y[T, H]\n  y[t, i] = 2 · x[t, i]\n", H=1)))
    with pytest.raises(ValueError, match="x has an axis of 1073741825, more than 1073741824"):
        narrow.node(torch.empty(2**30 + 1, 1, device="meta"))


def test_wide_operands_have_64_bit_offsets_and_no_others() -> None:
    kernel = kernel_of(close("geluMul", {"I": 21504}, 1), domain={"R0": 60000})
    text = emit(kernel)
    assert "gu_ptr + r0.to(tl.int64) * gu_stride_r0" in text
    assert "y_ptr + r0 * y_stride_r0" in text
    assert 'Operand("gu", ("R0", 43008), wide=True)' in text


def test_indices_are_of_either_integer_type() -> None:
    kernel = shipped("embed", mul=1, H=8, V=5)
    module = load_module(emit(kernel))
    w = torch.arange(40.0).reshape(5, 8)
    for dtype in (torch.int32, torch.int64):
        with interpreted():
            assert torch.equal(module.node(torch.tensor([3, 1], dtype=dtype), w), w[[3, 1]])
    with pytest.raises(TypeError, match="tokens holds float32, not int32, int64"):
        module.node(torch.ones(2), w)


def test_the_newest_architecture_that_a_gpu_runs_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = torch.device("cuda")
    for capability, arch in [((8, 0), "sm_80"), ((8, 9), "sm_80"), ((9, 0), "sm_90"), ((12, 0), "sm_100")]:
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, c=capability: c)
        assert RUNTIME.architecture(gpu, MODULE.CONFIGS) == arch
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    with pytest.raises(RuntimeError, match="no tiles for sm_75"):
        RUNTIME.architecture(gpu, MODULE.CONFIGS)


def test_tiles_follow_the_number_of_rows_and_the_storage_type() -> None:
    few, many = (RUNTIME.pick(MODULE.CONFIGS, X, rows) for rows in (16, 17))
    assert few.tiles["BLOCK_M"] == 16 < many.tiles["BLOCK_M"]
    assert RUNTIME.pick(MODULE.CONFIGS, X.half(), 17).tiles["BLOCK_K"] == 32
    assert few.options()["enable_fp_fusion"] is True


def test_a_tile_is_no_larger_than_its_extent_needs() -> None:
    kernel = shipped("rmsnorm", lead=2, H=64, eps=1)
    module = load_module(emit(kernel))
    with interpreted() as trace:
        module.node(torch.ones(2, 3, 64), torch.ones(64))
        module.node(torch.ones(2, 1, 64), torch.ones(64))
    assert [launch.grid for launch in trace.launches] == [(2, 1, 1), (2, 1, 1)]


def test_several_results_are_given_and_returned_together() -> None:
    text = "op m(x[T, H]; H: nat) -> y[T, H], z[T, H]\n  y[t, i] = 2 · x[t, i]\n  z[t, i] = x[t, i]²\n"
    module = load_module(emit(custom(text, H=8)))
    x, out = torch.full((2, 8), 3.0), (torch.empty(2, 8), torch.empty(2, 8))
    with interpreted():
        assert module.node(x, out=out)[1] is out[1]
    assert (out[0] == 6).all() and (out[1] == 9).all()


def test_a_compound_dimension_is_checked() -> None:
    text = "op m(a[T, H], x[T + 2, H]; H: nat) -> y[T, H]\n  y[t, i] = a[t, i] + x[t + 2, i]\n"
    module = load_module(emit(custom(text, H=8)))
    a, x = torch.ones(3, 8), torch.arange(5.0)[:, None].expand(5, 8).contiguous()
    with interpreted():
        assert torch.equal(module.node(a, x), x[2:] + 1)
    with pytest.raises(ValueError, match=r"x is \[4, 8\], not \[5, 8\]"):
        module.node(a, x[1:])


def test_operands_of_one_launch_need_no_memory() -> None:
    tensors = {n: t.to("meta") for n, t in operands(LINEAR, {"R0": 0}).items()}
    assert MODULE.node(*tensors.values()).shape == (0, 16)


@pytest.mark.parametrize(
    ("op", "size", "message"),
    [
        ("y[T, H]\n  y[t, i] = x[t, i] + z[t % S, i]\n", 0, "S is 0, and the formula divides by it"),
        ("y[T, H]\n  y[t, i] = x[t, i] + z[t % (S - 2), i]\n", 2, "S - 2 is 0"),
        ("y[T // S, H]\n  y[t, i] = x[t, i] + z[0, i]\n", 0, "S is 0"),
        ("y[T // (T // S), H]\n  y[t, i] = x[t, i]\n", 4, "T // S is 0"),
    ],
)
def test_a_size_of_zero_that_the_formula_divides_by_is_refused_by_name(op: str, size: int, message: str) -> None:
    module = load_module(emit(custom(f"op m(x[T, H], z[S, H]; H: nat) -> {op}", H=8)))
    with interpreted() as trace, pytest.raises(ValueError, match=message):
        module.node(torch.ones(3, 8), torch.ones(size, 8))
    assert trace.launches == []


def test_a_size_that_the_formula_divides_by_may_be_anything_else() -> None:
    text = "op m(x[T, H], z[S, H]; H: nat) -> y[T // S, H]\n  y[t, i] = x[t, i] + z[t % S, i] + (t % (S + 1))\n"
    kernel = custom(text, H=8)
    assert emit(kernel).count("nonzero(") == 2  # its definition, and the number of rows; S + 1 is never 0
    assert_right(kernel, operands(kernel, {"T": 7, "S": 2}))
