"""Reads that leave their operand are refused, and no others."""

from __future__ import annotations

import pytest

from specc.lower.lower import NoSchedule, Setting, lower_formula
from specc.lower.reach import stray_read
from tests.lower.cases import Case, formula_of
from tests.lower.user_ops import USER

SIGNATURE = "op f(x[T, H], w[H], n[T]: index; H: nat) -> y[T, H]\n  y[t, i] = "


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("x[t, i + 1]", "`i + 1` is 37 at i = 36, not in 0 ≤ … < 37"),
        ("x[t, i - 1]", "`i - 1` is -1 at i = 0, not in 0 ≤ … < 37"),
        ("if i + 1 <= H then x[t, i + 1] else 0", "`i + 1` is 37 at i = 36"),
        ("x[t + 1, i]", "`t + 1` does not always lie in 0 ≤ … < T"),
        ("x[t - 1, i]", "`t - 1` does not always lie in 0 ≤ … < T"),
        ("if t <= T then x[t, i] + x[t + 1, i] else 0", "`t + 1` does not always lie in 0 ≤ … < T"),
        ("Σ_{j < 12} x[t, (i // 12)·12 + j]", "at i = 36, j = 1, not in 0 ≤ … < 37"),
        ("x[t, i]·Σ_{j < H | j > i} w[j + 1]", "`j + 1` is 37 at j = 36"),
        ("x[t, i]·w[2·i - 30]", "is -30 at i = 0, not in 0 ≤ … < 37"),
    ],
)
def test_a_read_that_leaves_its_operand_is_refused(body: str, told: str) -> None:
    formula = formula_of(SIGNATURE + body, H=37)
    found = stray_read(formula)
    assert found is not None and told in found
    with pytest.raises(NoSchedule, match="leaves"):
        lower_formula(formula, Setting("f"))


@pytest.mark.parametrize(
    "body",
    [
        "if i + 1 < H then x[t, i + 1] else 0",
        "if i >= 1 then x[t, i - 1] else 0",
        "if t > 0 and x[t - 1, i] > 0 then x[t, i] else 0",
        "if t == 0 then 0 else x[t - 1, i]",
        "x[t, (i + 5) % H]",
        "x[t, (i // 12)·12 + i % 12]",
        "x[t, H - 1 - i]",
        "x[t, max(i - 1, 0)]",
        "x[n[t], i]",
        "if n[t] > 0 then w[i + n[t]] else 0",
        "Σ_{j < 12 | (i // 12)·12 + j < H} x[t, (i // 12)·12 + j]",
    ],
)
def test_a_read_that_stays_inside_is_not_refused(body: str) -> None:
    assert stray_read(formula_of(SIGNATURE + body, H=37)) is None


@pytest.mark.parametrize("case", USER, ids=lambda c: c.name)
def test_no_right_op_has_a_stray_read(case: Case) -> None:
    assert stray_read(case.formula()) is None


def test_a_read_by_a_named_index_is_judged() -> None:
    body = "op f(x[T, H]; H: nat) -> y[T, H]\n  let g[i] = i + {}\n  y[t, i] = x[t, g[i] % 40]"
    assert stray_read(formula_of(body.format(0), H=37)) is None
    found = stray_read(formula_of(body.format(3), H=37))
    assert found is not None and "is 37 at i = 34" in found


def test_what_is_visible_guards_a_score() -> None:
    text = "op f(x[T, H], w[H]; H: nat) -> y[T, H]\n  y[t, i] = Σ_j softmax_j(w[j]·w[j + 1]{}) · x[t, j]"
    assert stray_read(formula_of(text.format(""), H=37)) is not None
    assert stray_read(formula_of(text.format(" | j + 1 < H"), H=37)) is None
