"""Dumps of kernels: one of each schedule, as the shipped spec has it, is kept in `golden/`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from specc.dump_kernel import dump_kernel
from specc.kernels import Kernel
from specc.library import load_library
from specc.lower.lower import lower_model
from specc.parse_spec import parse_spec
from specc.source import Source
from specc.typecheck.model import check_model
from tests.lower.cases import kernel_of

HERE = Path(__file__).parent
SPEC = HERE.parent / "specs" / "gemma4.spec"
GOLDEN = {
    "pointwise": "attn_rope_global",
    "gather": "embed",
    "row_reduction": "attn_qk_norm_sliding",
    "contraction": "lm_head",
    "attention_prefill": "attn_core_sliding_prefill",
    "attention_decode": "attn_core_global_decode",
    "recurrence": "gdn_core_delta_prefill",
}
"""Schedule and a kernel that has it."""


@cache
def kernels() -> dict[str, Kernel]:
    specs = (SPEC, SPEC.with_name("qwen3_8_27b.spec"))
    models = [check_model(parse_spec(Source.read(spec)), load_library()) for spec in specs]
    return {k.name: k for model in reversed(models) for k in lower_model(model)}


def golden(schedule: str) -> Path:
    return HERE / "golden" / f"kernel.{schedule}.txt"


@pytest.mark.parametrize(("schedule", "name"), GOLDEN.items())
def test_a_dump_is_the_golden_one(schedule: str, name: str) -> None:
    kernel = kernels()[name]
    assert kernel.schedule_name == schedule
    assert dump_kernel(kernel) == golden(schedule).read_text(encoding="utf-8")


def test_every_schedule_of_the_shipped_specs_is_shown() -> None:
    assert {k.schedule_name for k in kernels().values()} == set(GOLDEN)


def test_guards_conditions_and_roles_are_shown() -> None:
    text = dump_kernel(
        kernel_of(
            "op f(x[T, H], n[T]: index) -> y[T, H]\n"
            "  y[t, i] = x[t, i] - Σ_{j < H | j < n[t]} (if t ≥ 1 then x[t - 1, j] else 0)",
            H=4,
        )
    )
    assert "  reads x = x[t - 1, i] where t ≥ 1" in text
    assert "stage r1 = r1_raw with r1_raw = Σ of if t ≥ 1 then x else 0 where i < n" in text
    assert "operand n [T]: index, by t" in text


def main() -> None:
    for schedule, name in GOLDEN.items():
        golden(schedule).write_text(dump_kernel(kernels()[name]), encoding="utf-8")


if __name__ == "__main__":
    main()
