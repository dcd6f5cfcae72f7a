"""Attention that real kernels got wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from specc.oracle import evaluate
from specc.targets.triton.target import run
from tests.cases.support import STORAGE, TARGETS, Array, Trial, draw, kernel, stored, trial

PREFILL = ("causalGQA", "slidingGQA")
DECODE = ("decodeGQA", "slidingDecodeGQA")


def _constants(op: str, d: int, heads: int, kv_heads: int, window: int | None) -> dict[str, Any]:
    return {"D": d, "heads": heads, "kv_heads": kv_heads, "scale": 1} | ({"window": window} if "liding" in op else {})


def decode(
    op: str, lengths: Sequence[int], slots: int, dtype: str, heads: int = 2, kv_heads: int = 1, window: int = 5,
    scale: float = 1.0, d: int = 16,
) -> Trial:  # fmt: skip
    """Sequences of these lengths; slots that no query sees hold NaN in memory."""
    b = len(lengths)
    q, k, v = (draw(s, *shape) for s, shape in enumerate(((b, heads, d), *[(b, slots, kv_heads, d)] * 2)))
    of = kernel(op, lead=0, **_constants(op, d, heads, kv_heads, window))
    made = trial(of, dtype, q=q * scale, k=k, v=v, seq_lens=list(lengths))
    kept = np.zeros((b, slots), dtype=bool)
    for row, n in enumerate(lengths):
        kept[row, max(0, n - window) if "liding" in op else 0 : max(n, 0)] = True
    return made.stored_as(**{n: _poisoned(made.tensors[n], kept, dtype) for n in "kv"})


def _poisoned(values: Array, kept: Array, dtype: str) -> torch.Tensor:
    return stored(np.where(kept[..., None, None], values, np.nan), dtype)


def prefill(op: str, pos: Sequence[int], keys: int, dtype: str, heads: int = 2, kv_heads: int = 1, window: int = 5,
            scale: float = 1.0, d: int = 16) -> Trial:  # fmt: skip
    q, k, v = (draw(s, *shape) for s, shape in enumerate(((len(pos), heads, d), *[(keys, kv_heads, d)] * 2)))
    of = kernel(op, lead=0, **_constants(op, d, heads, kv_heads, window))
    return trial(of, dtype, q=q * scale, k=k, v=v, pos=list(pos))


@pytest.mark.parametrize("op", ["slidingGQA", "slidingDecodeGQA"])
def test_at_length_5000_a_window_of_4096_sees_904_to_4999(op: str) -> None:
    """Equal scores; one value each at the edges and their neighbours."""
    q, k, v = np.zeros((1, 1, 16)), np.zeros((5002, 1, 16)), np.zeros((5002, 1, 16))
    for column, place in enumerate((903, 904, 4999, 5000)):
        v[place, 0, column] = 1
    of = kernel(op, lead=0, **_constants(op, 16, 1, 1, 4096))
    if op == "slidingGQA":
        made = trial(of, "bfloat16", q=q, k=k, v=v, pos=[4999])
    else:
        made = trial(of, "bfloat16", q=q, k=k[None], v=v[None], seq_lens=[5000])
    made.right()
    for target in TARGETS:
        assert list(made.outputs(target)["o"][0, 0, :4]) == [0, 1 / 4096, 1 / 4096, 0]
    for seen in ([1, 1, 1, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 1, 1, 1]):
        made.refutes(np.array([*seen, *[0] * 12]) / 4096)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("op", DECODE)
def test_lengths_around_the_window_and_the_whole_cache(op: str, dtype: str) -> None:
    decode(op, [0, 1, 4, 5, 6, 69, 70], 70, dtype).right()


@pytest.mark.parametrize("op", DECODE)
def test_lengths_at_the_edges_of_cache_pages(op: str) -> None:
    """Pages of 16 slots: a last page that is full, of one slot, and one short of full."""
    decode(op, [15, 16, 17, 31, 32, 33, 48], 48, "bfloat16", window=16).right()


@pytest.mark.parametrize("op", DECODE)
@pytest.mark.parametrize("length", [0, -3])
def test_a_sequence_that_sees_no_key_is_zero(op: str, length: int) -> None:
    made = decode(op, [length, 3], 9, "float32").right()
    assert (made.oracle()[0] == 0).all()
    assert all((made.outputs(t)["o"][0] == 0).all() for t in TARGETS)


@pytest.mark.parametrize("op", PREFILL)
def test_a_query_that_sees_no_key_is_zero(op: str) -> None:
    made = prefill(op, [-1, 0, -5, 3], 4, "float32").right()
    assert all((made.outputs(t)["o"][[0, 2]] == 0).all() for t in TARGETS)


FAR = 1e30
"""A query and a key of this size and of opposite signs have a score beyond float32: -inf."""


def _beyond(op: str, scores: Sequence[Sequence[float]], dtype: str) -> dict[str, Array]:
    """By target: what rows of one head get whose keys have these scores; those of NaN are not seen."""
    seen = [sum(not np.isnan(s) for s in row) for row in scores]
    b, keys = len(scores), len(scores[0])
    q, k = np.zeros((b, 1, 16)), np.zeros((b, keys, 1, 16))
    q[..., 0], q[..., 1] = FAR, 1
    k[..., 0] = np.where(np.isinf(scores), scores, 0)[..., None].clip(-FAR, FAR)
    k[..., 1] = np.nan_to_num(scores, neginf=0)[..., None]
    v = np.broadcast_to(np.arange(1.0, keys + 1)[:, None, None], k.shape)
    of = kernel(op, lead=0, **_constants(op, 16, 1, 1, None))
    if op == "decodeGQA":
        made = trial(of, dtype, q=q, k=k, v=v, seq_lens=seen)
        return {t: made.outputs(t)["o"][:, 0, 0] for t in ("torch", "triton", "cuda")}
    own = [trial(of, dtype, q=q[n : n + 1], k=k[n], v=v[n], pos=[seen[n] - 1]) for n in range(b)]
    return {t: np.concatenate([m.outputs(t)["o"][:, 0, 0] for m in own]) for t in ("torch", "triton", "cuda")}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("op", ["causalGQA", "decodeGQA"])
def test_a_row_whose_scores_all_overflow_is_nan_and_one_that_sees_no_key_is_zero(op: str, dtype: str) -> None:
    """Its exact result is not 0, and nothing better is known of it; one finite score is enough to know it."""
    inf, unseen, keys = -np.inf, np.nan, 300
    rows = [
        [inf] + [unseen] * (keys - 1), [inf] * keys, [unseen] * keys, [inf] * (keys - 1) + [0.0],
        [0.0] + [inf] * (keys - 1), [inf, 2.0] + [unseen] * (keys - 2),
    ]  # fmt: skip
    for target, found in _beyond(op, rows, dtype).items():
        assert np.array_equal(found, [np.nan, np.nan, 0, keys, 1, 2], equal_nan=True), (target, found)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_merging_splits_without_keys_is_not_nan(dtype: str) -> None:
    made = decode("decodeGQA", [0, 1, 700], 700, dtype)
    operands = {n: stored(a, dtype) for n, a in made.tensors.items()} | dict(made.views)
    assert run(made.kernel, operands)[1].launches[0].grid[2] > 1
    made.right()
    assert (made.outputs("triton")["o"][0] == 0).all()


@pytest.mark.parametrize(("heads", "ratio"), [(4, 1), (4, 2), (10, 5), (12, 6), (14, 7), (16, 8), (32, 16), (24, 24)])
@pytest.mark.parametrize("op", ["causalGQA", "decodeGQA"])
def test_query_heads_are_grouped_by_integer_division(op: str, heads: int, ratio: int) -> None:
    """One key, so each head gives back the value of its KV head, exactly."""
    kv_heads = heads // ratio
    q, k = np.ones((1, heads, 16)), np.ones((1, kv_heads, 16))
    v = np.broadcast_to(np.arange(1.0, kv_heads + 1)[None, :, None], k.shape)
    of = kernel(op, lead=0, **_constants(op, 16, heads, kv_heads, None))
    decoding = op == "decodeGQA"
    made = trial(of, "bfloat16", q=q, k=k[None] if decoding else k, v=v[None] if decoding else v,
                 **({"seq_lens": [1]} if decoding else {"pos": [0]})).right()  # fmt: skip
    for target in TARGETS:
        assert list(made.outputs(target)["o"][0, :, 0]) == [1 + h // ratio for h in range(heads)]
    if 1 < kv_heads < heads:
        made.refutes(np.array([1 + h % kv_heads for h in range(heads)])[None, :, None])


@pytest.mark.parametrize("op", DECODE)
def test_as_many_sequences_as_kv_heads_do_not_mix(op: str) -> None:
    lengths = [3, 1, 0, 5]
    made = decode(op, lengths, 7, "float32", heads=8, kv_heads=4).right()
    fault = made.oracle().copy()
    for g, n in enumerate(lengths):  # lengths laid along the KV heads
        (wrong,) = evaluate(made.kernel.formula, {**made.tensors, "seq_lens": np.full(4, n)}).values()
        fault[:, 2 * g : 2 * g + 2] = wrong[:, 2 * g : 2 * g + 2]
    made.refutes(fault)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("op", [*PREFILL, *DECODE])
def test_logits_of_hundreds_at_scale_one(op: str, dtype: str) -> None:
    made = (
        decode(op, [40, 3], 40, dtype, scale=60.0)
        if op in DECODE
        else prefill(op, range(36, 40), 40, dtype, scale=60.0)
    )
    made.right()
    q, k = (made.tensors[n].reshape(-1, 16) for n in "qk")
    assert np.abs(q @ k.T).max() > 300


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("op", ["causalGQA", "decodeGQA"])
def test_heads_of_512_are_right(op: str, dtype: str) -> None:
    if op == "decodeGQA":
        decode(op, [20, 1], 20, dtype, d=512, scale=0.05).right()
    else:
        prefill(op, range(15, 20), 20, dtype, d=512, scale=0.05).right()
