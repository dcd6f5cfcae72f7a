"""Planned launches of the CUDA target against those of the wrapper, and its kernels on the CPU against the cases."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import specc
from specc.kernels import Kernel
from specc.lowered import lower_each
from specc.resources import shipped
from specc.targets.cuda.device import prepare
from specc.targets.cuda.emit import emit
from specc.targets.cuda.run import run_text
from tests.shipped import REDUCED

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import gpu_cases  # noqa: E402
import gpu_cuda  # noqa: E402
import gpu_tasks  # noqa: E402
import make_gpu_cases  # noqa: E402
from gpu_cases import Case  # noqa: E402
from gpu_operands import torch_operand  # noqa: E402
from make_gpu_cases import Plan  # noqa: E402

CPU, SPACE = torch.device("cpu"), "few"
ROPE, DECODE = ("gemma4", "attn_rope_sliding"), ("gemma4", "attn_core_sliding_decode")
PLANS = (
    (*ROPE, Plan({"T": 4}, "bfloat16", (0, 1, 77, 1000))),
    (*ROPE, Plan({"T": 4}, "float16", (0, 1, 77, 1000), integers="int32")),
    (*DECODE, Plan({"B": 2, "S": 40}, "bfloat16", (36, 0))),
    (*DECODE, Plan({"B": 2, "S": 40}, "bfloat16", (36, 0), skew=1)),
    ("qwen3_8_27b", "gdn_core_delta_prefill", Plan({"T": 7}, "float32", (0,))),
    ("qwen3_8_27b", "gdn_core_delta_prefill", Plan({"T": 7}, "float16", (0,), skew=1)),
)


@pytest.fixture(scope="module", params=PLANS, ids=lambda one: f"{one[1]}-{one[2].dtype}-{one[2].skew}")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Kernel, Case]:
    spec, name, plan = request.param
    model = specc.load(shipped("specs") / f"{spec}.spec").reduced(**REDUCED[spec])
    kernel, node = next((k, x.node) for x in lower_each(model.model) for k in x.kernels if k.name == name)
    own = make_gpu_cases.tables(kernel, SPACE)
    meta = make_gpu_cases.case(spec, SPACE, kernel, node, plan)
    more = {"repeats": False, "plan": 0, "tables": {n: at for at, n in enumerate(own)}, "samples": 0}
    path = tmp_path_factory.mktemp("cases") / "cases.npz"
    gpu_cases.write_cases(path, [{**meta, **more}], [make_gpu_cases.intervals(kernel, meta)], list(own.values()))
    (case,) = gpu_cases.read_cases(path)
    return kernel, case


def tensors(case: Case) -> list[torch.Tensor]:
    return [torch_operand(o, case.dtype, CPU) for o in case.operands]


def test_planned_launches_are_those_of_the_wrapper(made: tuple[Kernel, Case]) -> None:
    kernel, case = made
    given = tensors(case)
    named = dict(zip((o.name for o in case.operands), given, strict=True))
    outputs, launches, kept = prepare(kernel, emit(kernel, SPACE), named, SPACE)
    more = gpu_cuda.kept(case, CPU)
    assert [(t.shape, t.dtype) for t in more.values()] == [(t.shape, t.dtype) for t in kept]
    places = gpu_cuda.addresses(case, given, list(outputs.values()), dict(zip(more, kept, strict=True)))
    for planned, wanted in zip(case.launches, launches, strict=True):
        shape = (planned.kernel, planned.grid, planned.block, planned.shared_bytes)
        assert shape == (wanted.kernel, wanted.grid, wanted.block, wanted.shared_bytes)
        assert [bytes(gpu_cuda.argument(*a, places)) for a in planned.arguments] == list(wanted.arguments)


def test_the_instance_is_that_of_the_plan(made: tuple[Kernel, Case]) -> None:
    _, case = made
    element = {"bfloat16": "__nv_bfloat16", "float16": "__half", "float32": "float"}[case.dtype]
    vector = 1 if case.operands[0].skew else {"float": 4}.get(element, 8)
    assert all(f"_kernel<{element}, {vector}" in one.kernel for one in case.launches)


def test_tables_hold_what_their_formula_says(made: tuple[Kernel, Case]) -> None:
    from specc.evidence.tables import table_values

    kernel, case = made
    for own, table in zip(case.tables.values(), kernel.tables, strict=True):
        assert own == pytest.approx(table_values(table), rel=1e-15)


def launcher(kernel: Kernel, text: str) -> gpu_tasks.Launcher:
    """A launcher that runs the text of a CUDA file on the CPU."""

    def run(*given: torch.Tensor, out: Any) -> None:
        names = [o.name for o in kernel.operands if not o.output]
        found, _ = run_text(kernel, text, dict(zip(names, given, strict=True)))
        for place, value in zip(out if isinstance(out, tuple) else (out,), found.values(), strict=True):
            place.copy_(value)

    return run


def test_the_kernel_passes_and_one_with_a_fault_fails(made: tuple[Kernel, Case]) -> None:
    kernel, case = made
    text = emit(kernel, arch="cpu")
    row = gpu_tasks.check(case, launcher(kernel, text), tensors(case), "cuda")
    assert (row.wrong, row.note, row.target) == (0, "", "cuda") and row.checked >= 20
    wrong = text.replace("specc::round_to<Element>(", "specc::round_to<Element>(real(1.0625) * ")
    assert wrong != text
    assert gpu_tasks.check(case, launcher(kernel, wrong), tensors(case), "cuda").wrong
