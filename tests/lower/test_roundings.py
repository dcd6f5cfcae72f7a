"""The places where a profile rounds reach the slots and the lowered formula."""

from __future__ import annotations

from typing import Any

import pytest

from specc.ir import Role
from specc.kernels import Attention, Contraction, Kernel, Pointwise, RowReduction
from specc.lower.lower import Setting, lower_formula
from specc.ops import Bin, Expr, Rounded, Softmax, Sort, Var, walk
from specc.passes import Rounds
from tests.lower.cases import Case, constant


def lowered(case: Case, *rounds: tuple[str, str, str]) -> Kernel:
    return lower_formula(case.formula(), Setting("f", rounds=tuple(rounds)))


def schedule(kernel: Kernel, kind: type[Any]) -> Any:
    assert isinstance(kernel.schedule, kind)
    return kernel.schedule


def roundings(kernel: Kernel) -> list[tuple[str, Expr]]:
    return [(n.role, n.expr) for q in kernel.lowered.equations for n in walk(q.expr) if isinstance(n, Rounded)]


NORM = Case("rmsnorm", "row_reduction", {"H": 8, "eps": 1}, lead=1)


def test_a_norm_is_rounded_before_its_weight() -> None:
    found = schedule(lowered(NORM, ("rmsnorm", "n", "activation")), RowReduction)
    rounded = Rounded(Bin("·", Var("x", Sort.REAL), Var("r1", Sort.REAL), Sort.REAL), "activation")
    assert found.stores[0].value == Bin("·", rounded, Var("w", Sort.REAL), Sort.REAL)


def test_roundings_of_other_ops_do_not_matter() -> None:
    assert lowered(NORM, ("rmsnormUnit", "n", "activation"), ("softmax", "", "cache")) == lowered(NORM)


def test_the_scale_of_an_embedding_is_rounded_as_a_constant() -> None:
    case = Case("embed", "gather", {"V": 7, "H": 4, "mul": 3.3}, lead=1)
    found = schedule(lowered(case, ("embed", "mul", "weight")), Pointwise)
    value = found.strips[0].stores[0].value
    assert isinstance(value, Bin) and value.left == Rounded(constant(3.3), "weight")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rounds", "role"),
    [((), "cache"), ((("softmax", "", "cache"),), "cache"), ((("softmax", "", "activation"),), "activation")],
)
def test_softmax_weights_are_rounded_for_the_product_with_values(rounds: Rounds, role: str) -> None:
    constants = {"D": 4, "heads": 2, "kv_heads": 1, "scale": 1}
    kernel = lowered(Case("causalGQA", "attention_prefill", constants), *rounds)
    found = schedule(kernel, Attention)
    assert found.round_probabilities and found.probability_role == Role(role)
    ((given, what),) = roundings(kernel)
    assert given == role and isinstance(what, Softmax)


def test_what_a_contraction_computes_of_its_operands_is_rounded_to_storage() -> None:
    kernel = lowered(Case("gateUp", "contraction", {"K": 4, "I": 3}, lead=1))
    found = schedule(kernel, Contraction)
    assert found.a == Var("x", Sort.REAL)
    assert isinstance(found.b, Rounded) and found.b.role == Role.WEIGHT
    assert [role for role, _ in roundings(kernel)] == ["weight"]


def test_a_plain_operand_of_a_contraction_is_not_rounded_again() -> None:
    assert roundings(lowered(Case("linear", "contraction", {"K": 4, "N": 3}, lead=1))) == []


def test_a_rounded_let_inside_a_sum_stays_inside() -> None:
    text = (
        "op f(x[T, H], g[T, H]; H: nat) -> y[T, H]\n  let a[i] = x[t, i]·silu(g[t, i])\n  y[t, i] = a[i] / Σ_j a[j]²\n"
    )
    rounds: Rounds = (("f", "a", "activation"),)
    kernel = lower_formula(Case("", "", {"H": 4}, text).formula(), Setting("f", rounds=rounds))
    found = schedule(kernel, RowReduction)
    (stage,) = found.stages
    assert isinstance(stage.map, Bin) and isinstance(stage.map.left, Rounded)
    assert len(roundings(kernel)) == 2
