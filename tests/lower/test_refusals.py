"""What no schedule takes is refused with reasons that a user can act on."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from specc.limits import MAX_LAUNCHED
from specc.lower.lower import NoSchedule, Setting, lower_formula
from specc.resources import shipped
from tests.lower.cases import Case, formula_of, kernel_of


def refused() -> list[tuple[str, str, dict[str, int], str]]:
    """Schedule, part of its reason, constants, and the op."""
    found = []
    text = (Path(__file__).parent / "refused.txt").read_text(encoding="utf-8")
    for example in text.split("\n== ")[1:]:
        head, body = example.split("\n", 1)
        schedule, reason, *rest = (part.strip() for part in head.split(" | "))
        pairs = (item.split("=") for item in rest[0].split(", ")) if rest else ()
        found.append((schedule, reason, {k: int(v) for k, v in pairs}, body))
    return found


def _title(v: Any) -> str:
    return v if isinstance(v, str) and "\n" not in v else ""


def reasons(text: str, **constants: Any) -> dict[str, str]:
    formula = formula_of(text, **constants)
    with pytest.raises(NoSchedule) as caught:
        lower_formula(formula, Setting("f"))
    assert str(caught.value).startswith("no schedule fits `f`: ")
    return dict(caught.value.reasons)


def test_a_recurrence_whose_every_state_is_a_result_is_refused_as_such() -> None:
    formula = Case("gdnState", "", {"Hv": 4, "Hk": 2, "Dk": 3, "Dv": 3}).formula()
    with pytest.raises(NoSchedule, match="`S` is no sum over the state at its own step, nor the last state"):
        lower_formula(formula, Setting("gdnState"))


def test_results_of_different_shapes_are_refused() -> None:
    found = reasons("op f(x[T, H]) -> y[T, H], z[H]\n  y[t, i] = x[t, i]\n  z[i] = x[0, i]\n", H=20)
    assert found["row reduction"] == "its results have different axes"
    assert found["contraction"] == found["attention"] == "it has several results"


@pytest.mark.parametrize(("schedule", "reason", "constants", "text"), refused(), ids=_title)
def test_each_schedule_says_what_it_misses(schedule: str, reason: str, constants: dict[str, int], text: str) -> None:
    assert reason in reasons(text, **constants)[schedule]


def test_only_one_of_key_and_value_of_its_own_is_refused() -> None:
    text = "op f(q[B, N, D], k[B, L, N, D], v[L, N, D]) -> o[B, N, D]\n"
    equation = "  o[b, h, d] = Σ_l softmax_l(Σ_e q[b, h, e]·k[b, l, h, e])·v[l, h, d]"
    assert reasons(text + equation, N=2, D=3)["attention"] == "only one of key and value depends on `b`"


@pytest.mark.parametrize("power", ["x[t, i]^(1/3)", "2^x[t, i]", "x[t, i]^100"])
def test_a_power_that_no_target_has_is_refused(power: str) -> None:
    found = reasons(f"op f(x[T, H]) -> y[T, H]\n  y[t, i] = {power}·x[t, i]", H=4)
    assert "no target has the power" in found["all"]
    assert "write it with √, or with exp and log" in found["all"]


def test_a_single_number_as_result_is_refused() -> None:
    found = reasons("op f(x[H]) -> y[]\n  y[] = Σ_j x[j]", H=40)
    assert found == {"all": "its result is a single number, not an array"}


@pytest.mark.parametrize(("axis", "most"), [("H", 1 << 30), ("2·H", 1 << 29)])
def test_an_axis_longer_than_index_variables_reach_is_refused(axis: str, most: int) -> None:
    text = f"op f(x[T, {axis}]; H: nat) -> y[T, {axis}]\n  y[t, i] = exp(x[t, i])"
    why = "elements is longer than index variables of kernels reach: 1073741824"
    assert why in reasons(text, H=most + 1)["all"]
    assert kernel_of(text, H=most).schedule_name == "pointwise"


@pytest.mark.parametrize(("range_", "value"), [
    ("Σ_j", "Σ_{j < N} x[t, j % H]·w[i, j % H]"),
    ("Π_j", "x[t, i]·Π_{j < N} w[i, j % H]"),
    ("Max_j", "Max_{j < N} x[t, j % H]·w[i, 0]"),
    ("Σ_j", "Σ_{j < N | x[t, j % H] > 0} x[t, j % H]·w[i, 0]"),
    ("Σ_j", "if t > 2 then Σ_{j < N} x[t, j % H]·w[i, 0] else 0"),
    ("Σ_l", "Σ_{j < 3} x[t, j]·Σ_{l < N} w[i, (j + l) % H]"),
])  # fmt: skip
def test_a_range_longer_than_index_variables_reach_is_refused(range_: str, value: str) -> None:
    op = f"op f(x[T, H], w[M, H]; N: nat, M: nat) -> y[T, M]\n  y[t, i] = {value}"
    why = f"the range of `{range_}`, 8589934592 long, is longer than index variables of kernels reach: 1073741824"
    assert reasons(op, N=1 << 33, H=40, M=40) == {"all": why}
    with suppress(NoSchedule):
        kernel_of(op, N=1 << 30, H=40, M=40)


@pytest.mark.parametrize("axis", ["a", "b"])
def test_a_recurrence_longer_than_index_variables_reach_is_refused(axis: str) -> None:
    extents = {"a": "3", "b": "3"} | {axis: "N"}
    states = f"  rec R[t < T, a < {extents['a']}, b < {extents['b']}] from 0 = R[t-1, a, b] + x[t, a % 3]·x[t, b % 3]\n"
    found = reasons(f"op f(x[T, 3]; N: nat) -> y[T, 3]\n{states}  y[t, i] = R[t, 0, i]", N=1 << 33)
    assert found["all"].startswith(f"the range of `R[{axis}]`, 8589934592 long, is longer")


def test_a_range_that_no_kernel_has_is_not_refused() -> None:
    text = "op f(x[T, H]; N: nat) -> y[T, H]\n  y[t, i] = x[t, i]·Σ_{j < N} 2"
    assert kernel_of(text, N=1 << 33, H=40).schedule_name == "pointwise"


@pytest.mark.parametrize(("most", "op"), [
    (46336, "op f(x[A, A, H]; A: nat) -> y[A, A, H]\n  y[a, e, i] = exp(x[a, e, i])"),
    (46336, "op f(x[A, A, H]; A: nat) -> y[A, A, H]\n  y[a, e, i] = x[a, e, i] / Σ_j x[a, e, j]"),
    (46336, "op f(x[A, A, H], w[N, H]; A: nat, N: nat = 3) -> y[A, A, N]\n  y[a, e, i] = Σ_j x[a, e, j]·w[i, j]"),
    (46336, "op f(x[T, A, A, H]; A: nat) -> y[T, A, A, H]\n  y[t, a, e, i] = exp(x[t, a, e, i])"),
])  # fmt: skip
def test_more_constant_rows_than_a_launch_has_are_refused(most: int, op: str) -> None:
    why = f"{most + 5} · {most + 5} rows are more than a launch can have: 2147418112"
    assert reasons(op, A=most + 5, H=40) == {"all": why}
    assert kernel_of(op, A=most, H=40).reason


ATTENTION = (
    "op f(q[T, N, D], k[L, M, D], v[L, M, E]; N: nat, M: nat, D: nat = 3) -> o[T, N, E]\n"
    "  o[t, h, d] = Σ_l softmax_l(Σ_e q[t, h, e]·k[l, h // (N // M), e])·v[l, h // (N // M), d]"
)
RECURRENCE = (
    "op f(q[T, H, K], k[T, H, K], v[T, H, V]; H: nat = 2, K: nat = 3) -> o[T, H, V]\n"
    "  rec R[t < T, h < H, a < V, i < K] from 0 = R[t - 1, h, a, i] + v[t, h, a]·k[t, h, i]\n"
    "  o[t, h, a] = Σ_i R[t, h, a, i]·q[t, h, i]"
)


@pytest.mark.parametrize(("op", "axis", "rest", "what"), [
    (ATTENTION, "N", {"M": 1, "E": 3}, "heads"), (ATTENTION, "E", {"M": 2, "N": 4}, "columns of values"),
    (RECURRENCE, "V", {}, "values of a state"),
])  # fmt: skip
def test_more_blocks_than_an_axis_of_a_grid_has_are_refused(
    op: str, axis: str, rest: dict[str, int], what: str
) -> None:
    found = reasons(op, **{axis: 65536, **rest})
    assert found == {"all": f"65536 {what} are more than a launch can have: 65535"}
    assert kernel_of(op, **{axis: 65535, **rest}).reason


def test_launch_wrappers_take_as_many_rows_as_lowering_does() -> None:
    text = (shipped("templates") / "cuda" / "specc_launch.cuh").read_text(encoding="utf-8")
    assert f"MOST_ROWS = {MAX_LAUNCHED:#x};" in text


def test_an_index_divided_by_zero_is_refused() -> None:
    found = reasons("op f(x[T, H], w[K]) -> y[T, H]\n  y[t, i] = x[t, i]·w[i // (H // K)]", H=3, K=4)
    assert found == {"all": "an index is divided by 0 in `i // 0`"}


@pytest.mark.parametrize("value", ["i / H", "0·x[t, i]", "cos(i)"])
def test_a_formula_that_comes_out_without_operands_is_refused(value: str) -> None:
    found = reasons(f"op f(x[T, H]) -> y[T, H]\n  y[t, i] = {value}", H=40)
    assert found == {"all": "it reads no operand, so its result depends on none"}
