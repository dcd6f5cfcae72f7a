"""Generated attention kernels, prefill and decode."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from specc.kernels import Kernel
from specc.targets.triton.emit import emit
from specc.targets.triton.interpret import interpreted
from specc.targets.triton.load import load_module
from tests.targets.triton.generated import STORAGE, assert_right, custom, operands, ran, results, shipped, strided


def prefill(
    kernel: Kernel, pos: Sequence[int], keys: int, dtype: torch.dtype = torch.float32
) -> dict[str, torch.Tensor]:
    return operands(kernel, {"T": len(pos), "L": keys}, dtype, indices={"pos": pos})


def right(kernel: Kernel, tensors: dict[str, torch.Tensor], inner: float = 500) -> None:
    """Right to within the rounding of probabilities to storage."""
    values = tensors["v"].float().nan_to_num()
    assert_right(kernel, tensors, inner, stored=float(values.abs().max()) / 2 if values.numel() else 0.0)


def causal(**sizes: int) -> Kernel:
    return shipped("causalGQA", lead=0, **({"D": 32, "heads": 4, "kv_heads": 2, "scale": 1} | sizes))


def sliding(**sizes: int) -> Kernel:
    return shipped("slidingGQA", lead=0, **({"D": 32, "heads": 4, "kv_heads": 2, "scale": 1, "window": 7} | sizes))


@pytest.mark.parametrize("dtype", STORAGE)
def test_chunked_causal_prefill_is_right(dtype: torch.dtype) -> None:
    kernel = causal()
    right(kernel, prefill(kernel, range(30, 67), 67, dtype))


@pytest.mark.parametrize("window", [1, 2, 31, 32, 33, 200])
def test_a_window_of_any_length_is_right_to_the_key(window: int) -> None:
    kernel = sliding(window=window)
    right(kernel, prefill(kernel, range(150), 150))


@pytest.mark.parametrize(("heads", "kv_heads"), [(1, 1), (5, 1), (6, 1), (8, 4), (3, 3), (16, 1)])
def test_every_ratio_of_heads_finds_its_keys(heads: int, kv_heads: int) -> None:
    kernel = causal(heads=heads, kv_heads=kv_heads)
    right(kernel, prefill(kernel, range(9), 9))


def test_widths_that_are_no_power_of_two_are_padded() -> None:
    kernel = causal(D=40)
    right(kernel, prefill(kernel, range(9), 12))


def test_columns_come_in_blocks_and_products_in_parts() -> None:
    kernel = causal(D=320)
    right(kernel, prefill(kernel, range(5), 5))
    right(kernel, prefill(kernel, range(5), 5, torch.bfloat16))


def test_logits_of_hundreds_neither_overflow_nor_lose_the_largest() -> None:
    kernel = causal()
    tensors = prefill(kernel, range(40), 40)
    tensors["q"] *= 60
    right(kernel, tensors, inner=20000)


def test_a_row_that_sees_no_key_is_zero() -> None:
    kernel = causal()
    tensors = prefill(kernel, [-1, 0, -5, 3], 4)
    o = ran(kernel, tensors).outputs["o"]
    assert (o[[0, 2]] == 0).all()
    assert (o[[1, 3]] != 0).any()


def test_no_keys_at_all_give_zero() -> None:
    kernel = causal()
    assert (results(kernel, prefill(kernel, [0, 1], 0))["o"] == 0).all()


def test_positions_past_the_keys_see_all_of_them() -> None:
    kernel = causal()
    far = prefill(kernel, [2**31 - 1, 5], 6)
    near = far | {"pos": torch.tensor([5, 5], dtype=torch.int64)}
    assert torch.equal(results(kernel, far)["o"], results(kernel, near)["o"])


def test_a_bad_value_reaches_only_the_rows_that_see_it() -> None:
    kernel = sliding(window=7)
    tensors = prefill(kernel, range(40), 40)
    clean = results(kernel, tensors)["o"]
    tensors["v"][10, 1] = float("nan")
    tensors["v"][25, 0, 3] = float("inf")
    tensors["k"][30, 0] = float("nan")
    o = results(kernel, tensors)["o"]
    assert o[10:17, 2:].isnan().all()
    assert o[25:32, :2, 3].isnan().any() or o[25:32, :2, 3].isinf().all()
    assert o[30:37, :2].isnan().all()
    rest = torch.ones_like(o, dtype=torch.bool)
    rest[10:17, 2:] = rest[30:37, :2] = rest[25:32, :2, 3] = False
    assert torch.allclose(o[rest], clean[rest], atol=1e-5)


def test_unused_slots_of_a_cache_are_never_read() -> None:
    kernel = causal()
    tensors = prefill(kernel, range(20), 64)
    tensors["k"][20:] = tensors["v"][20:] = float("nan")
    right(kernel, tensors)


def test_blocks_outside_of_the_window_are_not_loaded() -> None:
    kernel = sliding(window=7)
    tensors = prefill(kernel, range(400, 420), 420)
    tensors["k"][:390] = tensors["v"][:390] = float("nan")
    assert not results(kernel, tensors)["o"].isnan().any()


def test_queries_are_a_view_of_a_wider_buffer() -> None:
    kernel = causal()
    tensors = prefill(kernel, range(20), 20, torch.bfloat16)
    tensors["q"] = strided(tensors["q"], 75, 5)
    tensors["k"] = strided(tensors["k"], 11, 1)
    right(kernel, tensors)


def test_a_score_and_an_epilogue_of_ones_own_are_computed() -> None:
    text = """op att(q[T, H, D], k[L, H, D], v[L, H, D], pos[T]: index, gate[T]; D: nat, H: nat) -> o[T, H, D]
  let z[l] = 1/4 · tanh(Σ_e q[t, h, e] · k[l, h, e]) + gate[t]
  o[t, h, d] = gate[t] · Σ_l softmax_l(z[l] | l <= pos[t]) · v[l, h, D - 1 - d]
"""
    kernel = custom(text, D=32, H=2)
    tensors = prefill(kernel, range(20), 20)
    right(kernel, tensors)


def test_query_heads_of_a_kv_head_may_be_far_apart() -> None:
    text = """op att(q[T, heads, D], k[L, kv, D], v[L, kv, D]; D: nat, heads: nat, kv: nat) -> o[T, heads, D]
  o[t, h, d] = Σ_l softmax_l(Σ_e q[t, h, e] · k[l, h % kv, e]) · v[l, h % kv, d]
"""
    kernel = custom(text, D=32, heads=6, kv=3)
    right(kernel, operands(kernel, {"T": 5, "L": 9}))


def test_the_real_arithmetic_of_prefill_is_its_formula() -> None:
    kernel = sliding(window=7)
    tensors = prefill(kernel, range(30), 30)
    wide = {n: t.double() if t.is_floating_point() else t for n, t in tensors.items()}
    assert ran(kernel, wide, widen=True).error("o").max() < 1e-12


def test_no_finite_number_stands_for_a_hidden_score() -> None:
    text = emit(causal())
    assert 'float("-inf")' in text
    assert "1e9" not in text and "-1e" not in text


def decode(
    kernel: Kernel, lengths: Sequence[int], slots: int, dtype: torch.dtype = torch.float32
) -> dict[str, torch.Tensor]:
    """Sequences of these lengths in a cache whose other slots are NaN."""
    tensors = operands(kernel, {"B": len(lengths), "S": slots}, dtype, indices={"seq_lens": lengths})
    for b, length in enumerate(lengths):
        tensors["k"][b, max(length, 0) :] = tensors["v"][b, max(length, 0) :] = float("nan")
    return tensors


def decoding(op: str = "decodeGQA", **constants: int) -> Kernel:
    return shipped(op, lead=0, **({"D": 32, "heads": 4, "kv_heads": 2, "scale": 1} | constants))


@pytest.mark.parametrize("dtype", STORAGE)
def test_decode_is_right_for_every_length(dtype: torch.dtype) -> None:
    kernel = decoding()
    right(kernel, decode(kernel, [1, 2, 63, 64, 65, 300], 300, dtype))


@pytest.mark.parametrize("window", [1, 64, 100])
def test_windowed_decode_is_right_to_the_key(window: int) -> None:
    kernel = decoding("slidingDecodeGQA", window=window)
    lengths = [1, window - 1, window, window + 1, 300]
    tensors = decode(kernel, lengths, 300)
    tensors["k"][4, : 300 - window] = tensors["v"][4, : 300 - window] = float("nan")
    right(kernel, tensors)


def test_parts_without_keys_are_merged_into_nothing() -> None:
    kernel = decoding()
    found = ran(kernel, decode(kernel, [1, 0, -3], 700))
    assert (found.outputs["o"][1:] == 0).all()
    assert found.error("o").max() < 1e-5
    assert found.trace.launches[0].grid[2] > 1


def test_a_length_past_the_cache_sees_all_of_it() -> None:
    kernel = decoding()
    tensors = decode(kernel, [40, 40], 40)
    far = tensors | {"seq_lens": torch.tensor([2**31 - 1, 2**40])}
    assert torch.equal(results(kernel, far)["o"], results(kernel, tensors)["o"])


@pytest.mark.parametrize(("heads", "kv_heads"), [(1, 1), (5, 1), (8, 8), (20, 1), (6, 3)])
def test_decode_finds_the_keys_of_every_ratio_of_heads(heads: int, kv_heads: int) -> None:
    kernel = decoding(heads=heads, kv_heads=kv_heads)
    right(kernel, decode(kernel, [30] * kv_heads, 70))


def test_a_given_workspace_and_result_are_used() -> None:
    kernel = decoding()
    tensors = decode(kernel, [30, 7], 70)
    module = load_module(emit(kernel))
    out, workspace = torch.full((2, 4, 32), float("nan")), torch.full((2 * 4 * 2 * 34 + 5,), float("nan"))
    inputs = [tensors[n] for n in ("q", "k", "v", "seq_lens")]
    with interpreted() as trace:
        assert module.node(*inputs, out=out, workspace=workspace) is out
    assert {w.tensor.untyped_storage().data_ptr() for w in trace.written_tensors()} == {
        out.untyped_storage().data_ptr(), workspace.untyped_storage().data_ptr()
    }  # fmt: skip
    assert torch.equal(out, results(kernel, tensors)["o"])
    with pytest.raises(ValueError, match="contiguous elements"):
        module.node(*inputs, workspace=workspace[:100])


@pytest.mark.parametrize("name", ["q", "k", "v", "out"])
def test_a_workspace_in_another_argument_is_refused(name: str) -> None:
    kernel = decoding()
    tensors = decode(kernel, [30, 7], 70)
    arguments = {**tensors, "out": torch.empty_like(tensors["q"])}
    arena = torch.zeros(arguments[name].numel() + 2 * 4 * 2 * 34)
    arguments[name] = arena[: arguments[name].numel()].view(arguments[name].shape).copy_(arguments[name])
    with pytest.raises(ValueError, match="workspace overlaps another argument"):
        load_module(emit(kernel)).node(**arguments, workspace=arena)


def test_nan_reaches_only_the_heads_that_see_it() -> None:
    kernel = decoding()
    tensors = decode(kernel, [30, 30], 70)
    tensors["v"][0, 5, 1, 3] = float("nan")
    o = results(kernel, tensors)["o"]
    assert o[0, 2:, 3].isnan().all()
    assert o.isnan().sum() == 2


def test_a_predicate_with_holes_hides_what_is_in_them() -> None:
    text = """op att(q[B, H, D], k[B, S, H, D], v[B, S, H, D], n[B]: index; D: nat, H: nat) -> o[B, H, D]
  o[b, h, d] = Σ_l softmax_l(Σ_e q[b, h, e] · k[b, l, h, e] | l < n[b] and l % 2 == 0) · v[b, l, h, d]
"""
    kernel = custom(text, D=32, H=2)
    tensors = operands(kernel, {"B": 2, "S": 100}, indices={"n": [100, 9]})
    tensors["k"][:, 1::2] = tensors["v"][:, 1::2] = float("nan")
    right(kernel, tensors)


def test_the_real_arithmetic_of_decode_is_its_formula() -> None:
    kernel = decoding()
    tensors = {n: t.double() if t.is_floating_point() else t for n, t in decode(kernel, [30, 200], 300).items()}
    assert ran(kernel, tensors, widen=True).error("o").max() < 1e-12


def test_a_long_predicate_is_printed_on_lines_that_fit() -> None:
    conditions = " and ".join(f"l + {n} <= pos[t] + {n}" for n in range(10, 17))
    text = f"""op att(q[T, H, D], k[L, H, D], v[L, H, D], pos[T]: index; D: nat, H: nat) -> o[T, H, D]
  o[t, h, d] = Σ_l softmax_l(Σ_e q[t, h, e] · k[l, h, e] | {conditions}) · v[l, h, d]
"""
    kernel = custom(text, D=32, H=2)
    assert max(len(line) for line in emit(kernel).splitlines() if "seen" in line) <= 110
    right(kernel, prefill(kernel, range(20), 20))


SLOPED = """op att(q[{m}, H, D], k[{keys}S, H, D], v[{keys}S, H, D], n[{m}]: index; D: nat, H: nat) -> o[{m}, H, D]
  let z[l] = 30 · tanh((Σ_e q[{r}, h, e] · k[{at}l, h, e] - (n[{r}] - l) / 8) / 30)
  o[{r}, h, d] = Σ_l softmax_l(z[l] | l < n[{r}]) · v[{at}l, h, d]
"""
PREFILL = {"m": "T", "r": "t", "keys": "", "at": ""}
DECODE = {"m": "B", "r": "b", "keys": "B, ", "at": "b, "}


@pytest.mark.parametrize("places", [PREFILL, DECODE])
def test_scores_may_depend_on_the_distance(places: dict[str, str]) -> None:
    kernel = custom(SLOPED.format(**places), D=32, H=4)
    tensors = operands(kernel, {"T": 5, "B": 5, "S": 100}, indices={"n": [1, 0, 33, 100, 70]})
    right(kernel, tensors)
    if places is PREFILL:
        tensors["v"][50, 0, 0] = float("nan")
        o = results(kernel, tensors)["o"]
        assert o.isnan().sum() == 2
