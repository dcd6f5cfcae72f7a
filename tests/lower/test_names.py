"""Operands may be called as they like: nothing in a kernel is confused with them."""

from __future__ import annotations

import pytest

from specc.kernels import Attention, Contraction, Pointwise, RowReduction
from specc.lower.lower import accesses
from tests.lower.cases import Case, check, kernel_of

SIZES = {"T": 3, "L": 6, "S": 5, "B": 2, "__1": 3}
CASES = (
    Case("stage", "row_reduction", {"H": 4}, """
      op f(r1[T, H], r2[H], r1_raw[T, H]) -> y[T, H]
        y[t, i] = r1[t, i] / √(Σ_j r1[t, j]²) · r2[i] + Max_j r1_raw[t, j]"""),
    Case("raw result", "row_reduction", {"H": 4}, """
      op f(r1_raw[T, H], r2_raw[T, H]) -> y[T, H]
        y[t, i] = r1_raw[t, i] / √(Σ_j r1_raw[t, j]²) + Max_j r2_raw[t, j]"""),
    Case("index", "row_reduction", {"H": 4}, """
      op f(j1[T, H], i[H], t[T]) -> y[T, H]
        y[t, i] = j1[t, i] · i[i] · t[t] / Σ_j j1[t, j]"""),
    Case("row index like a stage", "row_reduction", {"H": 4}, """
      op f(x[T, H]) -> y[T, H]
        y[r1, j1] = x[r1, j1] / Σ_r2 x[r1, r2]²"""),
    Case("accumulator", "contraction", {"K": 4, "N": 3}, """
      op f(acc[T, K], w[N, K], bias[N]) -> y[T, N]
        y[t, n] = (Σ_k acc[t, k]·w[n, k]) + bias[n] + acc[t, 0]"""),
    Case("sum index", "contraction", {"K": 4, "N": 3}, """
      op f(x[T, K], w[N, K]) -> y[T, N]
        y[t, n] = Σ_acc x[t, acc]·w[n, acc]"""),
    Case("attention", "attention_prefill", {"N": 4, "M": 2, "D": 3}, """
      op f(dot[T, N, D], acc[L, M, D], kv_head[L, M, D], k[T]: index, v[T], q[T]) -> o[T, N, D]
        o[t, h, d] = q[t]·Σ_l softmax_l(v[t]·Σ_d dot[t, h, d]·acc[l, h // (N // M), d] | l ≤ k[t])
          · kv_head[l, h // (N // M), d]""", index={"k": lambda n: (0, n["L"])}),
    Case("table", "pointwise", {"H": 4}, """
      op f(table[T, H], table_2[T, H]) -> y[T, H]
        y[t, i] = table[t, i]·cos(i/7) + table_2[t, i]·sin(i/3)"""),
    Case("offset", "pointwise", {"H": 4}, """
      op f(x[T, H], x_p1[T, H]) -> y[T, H]
        y[t, i] = (if i < 3 then x[t, i + 1] else 0) + x_p1[t, i]"""),
    Case("one operand under two indices", "contraction", {"K": 4}, """
      op f(x[T, K], w[K, K]) -> y[T, K]
        y[t, n] = Σ_k x[t, k]·w[n, k]·w[k, n] + x[t, n]·w[n, 0]"""),
    Case("read of a row, twice", "pointwise", {"H": 6}, """
      op f(x[T, H], s[4]) -> y[T, H]
        y[t, i] = if i < 2 then s[0]·x[t, i] else if i < 4 then s[1]·x[t, i] else s[0]·s[3]·x[t, i]"""),
    Case("underscores", "pointwise", {"H": 4}, """
      def _(_1, __2) = _1 + tanh(__2)
      def _1(_) = 2·_(_, _)
      op _2(_1[__1, H], _[H], __2[H], x_[H], x1_[__1, H], _x[H]; H: nat) -> __3[__1, H], _4[__1, H]
        __3[_9, _0] = _(_1[_9, _0], _[_0]) + __2[_0]·x1_[_9, _0]
        _4[_9, _0] = _1(x_[_0]) + _x[_0]·_1[_9, _0]"""),
    Case("underscores in a row", "row_reduction", {"_0": 4}, """
      op _2(_1[__1, _0], ___[_0], x___[_0]; _0: nat) -> _[__1, _0]
        let _3 = Σ_j _1[_9, j] / _0
        _[_9, __] = _1[_9, __]·___[__] + x___[__]·_3"""),
    Case("a name that Python does not let go of", "pointwise", {"H": 4}, """
      op f(__debug__[T, H]) -> y[T, H]
        y[t, i] = 2·__debug__[t, i]"""),
    Case("underscores in a product", "contraction", {"K": 4, "_": 3}, """
      op _(_1[__1, K], _2[_, K], __2[_]; K: nat, _: nat) -> __[__1, _]
        __[_9, _0] = (Σ__3 _1[_9, _3]·_2[_0, _3]) + __2[_0]"""),
    Case("underscores in attention", "attention_prefill", {"N": 4, "M": 2, "D": 3}, """
      op f(_[__1, N, D], _1[L, M, D], __[L, M, D], _2[__1]: index, _3[__1]) -> _4[__1, N, D]
        _4[_5, _6, _7] = Σ__8 softmax__8(_3[_5]·Σ__9 _[_5, _6, _9]·_1[_8, _6 // (N // M), _9] | _8 ≤ _2[_5])
          · __[_8, _6 // (N // M), _7]""", index={"_2": lambda n: (0, n["L"])}),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_name_means_one_thing(case: Case) -> None:
    check(case, SIZES, 0)
    kernel = case.kernel()
    found = {a.name: (a.operand, a.indices) for a in accesses(kernel.schedule)}
    assert all(found[a.name] == (a.operand, a.indices) for a in accesses(kernel.schedule))


def test_reads_keep_the_names_of_their_operands() -> None:
    kernel = kernel_of("op f(x[T, K], w[N, K], b[N]) -> y[T, N]\n  y[t, n] = Σ_k x[t, k]·w[n, k] + b[n]", K=4, N=3)
    assert isinstance(kernel.schedule, Contraction)
    assert [a.name for a in accesses(kernel.schedule)] == ["x", "w", "b"]
    assert kernel.schedule.accumulator == "acc"


def test_attention_reads_are_called_q_k_and_v() -> None:
    text = "op f(a[T, N, D], b[L, N, D], c[L, N, D]) -> o[T, N, D]\n"
    kernel = kernel_of(text + "  o[t, h, d] = Σ_l softmax_l(Σ_e a[t, h, e]·b[l, h, e])·c[l, h, d]", N=2, D=3)
    assert isinstance(kernel.schedule, Attention)
    assert [a.name for a in accesses(kernel.schedule)] == ["q", "k", "v"]


def test_a_table_is_read_under_its_own_name() -> None:
    kernel = kernel_of("op f(x[T, H]) -> y[T, H]\n  y[t, i] = x[t, i]·cos(i/7)", H=4)
    assert isinstance(kernel.schedule, Pointwise)
    assert [t.name for t in kernel.tables] == ["table"]
    assert "table" in [a.name for a in accesses(kernel.schedule)]


def test_stages_are_numbered() -> None:
    kernel = kernel_of("op f(x[T, H]) -> y[T, H]\n  y[t, i] = x[t, i]·(Σ_j x[t, j])·Max_j x[t, j]", H=4)
    assert isinstance(kernel.schedule, RowReduction)
    assert [s.name for s in kernel.schedule.stages] == ["r1", "r2"]
