"""The reference under the rounding profile is no farther from float64 than the official class in the same type."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specc.ir import Role
from specc.verify.report import texts
from specc.verify.rounding import Rounding, compare_roundings
from tests.verify.models import NAMES, SEED, reduced


def roundings(name: str, draws: int) -> list[Rounding]:
    found = [text for draw in range(draws) for text in texts(reduced(name), SEED, draw)]
    return compare_roundings(reduced(name).spec.model, found, SEED)


@pytest.mark.parametrize("name", ["granite_3_3_8b"])
def test_no_layer_is_farther_from_float64_than_the_official_one(name: str) -> None:
    found = roundings(name, 1)
    assert len(found) == reduced(name).spec.model.layer_count
    assert [r for r in found if not r.ok] == []
    assert all(1e-4 < r.ours < 1e-1 and 1e-4 < r.official < 1e-1 for r in found), "bfloat16 has a 2⁻⁸"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_layer_of_any_model_is_farther_from_float64(name: str) -> None:
    found = roundings(name, 2)
    print(f"\n{name}", *(f"{r.layer} {r.kind} {r.ours:.2e} {r.official:.2e} {r.ratio:.2f}" for r in found), sep="\n  ")
    assert [r for r in found if not r.ok] == []


@pytest.mark.parametrize(("ours", "ok"), [(1.1, True), (1.11, False), (float("nan"), False)])
def test_a_reference_that_is_farther_is_refuted(ours: float, ok: bool) -> None:
    assert Rounding("layer", 0, ours, 1.0).ok is ok


def test_a_profile_that_rounds_more_is_seen() -> None:
    """Weights of 4 significant bits, where the class keeps all 8 of bfloat16."""
    model = reduced("qwen3_0_6b").spec.model
    text = next(texts(reduced("qwen3_0_6b"), SEED, 0))
    coarse = dict(model.profile.types) | {Role.WEIGHT: "float8_e4m3fn"}
    worse = replace(model, profile=replace(model.profile, types=tuple(coarse.items())))
    assert [r for r in compare_roundings(worse, [text], SEED) if r.ok] == []
