from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import specc
from specc.ir import Model
from specc.lowered import lower_each
from specc.oracle import evaluate
from specc.resources import shipped

BENCH = Path(__file__).parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import gpu_check  # noqa: E402
import make_gpu_cases  # noqa: E402
from gpu_operands import Layout, numpy_operand, torch_operand  # noqa: E402
from gpu_rivals import rival  # noqa: E402

CPU = torch.device("cpu")
PLANS: dict[str, tuple[make_gpu_cases.Plan, ...]] = {
    "post_ffn_norm": (({"T": 5}, "bfloat16", (0,), False), ({"T": 3}, "float32", (0,), False)),
    "mlp.act": (({"T": 5}, "bfloat16", (0,), True),),
    "attn.rope": (({"T": 4}, "float32", (0, 1, 77, 1000), False),),
    "attn.core": (
        ({"B": 2, "S": 40, "T": 5, "L": 40}, "bfloat16", (36, 37, 38, 39, 35), False),
        ({"B": 2, "S": 40, "T": 5, "L": 40}, "float32", (36, 37, 38, 39, 35), False),
    ),
    "lm_head": (({"T": 2}, "bfloat16", (0,), False), ({"T": 9}, "float32", (0,), False)),
}


@pytest.fixture(scope="module")
def model() -> Model:
    spec = specc.load(shipped("specs") / "gemma4.spec")
    return spec.reduced(hidden=96, inter=80, vocab=300, heads=4, kv_heads=2, sliding__D=32, window=20).model


@pytest.fixture(scope="module")
def cases(model: Model, tmp_path_factory: pytest.TempPathFactory) -> list[gpu_check.Case]:
    metas: list[dict[str, Any]] = []
    arrays: dict[str, Any] = {}
    for path, plans in PLANS.items():
        node = model.variants(path)[0]
        for kernel in lower_each(model, [node])[0].kernels:
            for plan in plans:
                meta, found = make_gpu_cases.case(kernel, node, plan)
                arrays |= {f"{len(metas)}.{name}": value for name, value in found.items()}
                metas.append(meta)
    path_ = tmp_path_factory.mktemp("cases") / "cases.npz"
    np.savez(path_, meta=np.array(json.dumps(metas)), **arrays)
    return gpu_check.read_cases(path_)


def stand_in(case: gpu_check.Case, spoil: Callable[[torch.Tensor], torch.Tensor] = lambda y: y) -> gpu_check.Launcher:
    """A launcher made of torch functions in float64, rounded once; `spoil` makes it a wrong one."""
    right = rival(case.op, case.constants)
    assert right is not None

    def launch(*tensors: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        exact = right(*(t.double() if t.is_floating_point() else t for t in tensors))
        return out.copy_(spoil(exact))

    return launch


def operands(case: gpu_check.Case) -> list[torch.Tensor]:
    return [torch_operand(o, case.dtype, CPU) for o in case.operands]


def test_right_results_pass_at_every_sampled_place(cases: list[gpu_check.Case]) -> None:
    assert len(cases) == 10
    for case in cases:
        row = gpu_check.check(case, stand_in(case), operands(case))
        assert (row.wrong, row.note) == (0, ""), (case.kernel, row.note)
        assert row.checked >= 20 and row.used <= 1


@pytest.mark.parametrize("spoil", [lambda y: y * 1.02, lambda y: -y, lambda y: y.roll(1, -1), lambda y: y.roll(1, 0)])
def test_wrong_results_fail(cases: list[gpu_check.Case], spoil: Callable[[torch.Tensor], torch.Tensor]) -> None:
    for case in cases:
        assert gpu_check.check(case, stand_in(case, spoil), operands(case)).wrong, case.kernel


def test_products_in_a_shorter_type_fail_in_float32(cases: list[gpu_check.Case]) -> None:
    found = [c for c in cases if c.dtype == "float32" and c.op in ("lmHead", "slidingGQA", "slidingDecodeGQA")]
    assert len(found) == 3
    for case in found:
        short = [t.bfloat16().to(t.dtype) if t.is_floating_point() else t for t in operands(case)]
        tf32 = [
            (t.view(torch.int32) & ~0x1FFF).view(torch.float32) if t.is_floating_point() else t for t in operands(case)
        ]
        for wrong in (short, tf32):
            row = gpu_check.check(
                case, lambda *_, out, wrong=wrong, case=case: stand_in(case)(*wrong, out=out), operands(case)
            )
            assert row.wrong, case.label


def test_elements_that_are_not_written_fail(cases: list[gpu_check.Case]) -> None:
    case = cases[0]

    def lazy(*tensors: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        right = stand_in(case)(*tensors, out=torch.empty_like(out))
        out[:, 1:] = right[:, 1:]
        return out

    row = gpu_check.check(case, lazy, operands(case))
    assert row.wrong


def test_a_changed_operand_and_an_exception_fail(cases: list[gpu_check.Case]) -> None:
    case = cases[0]

    def in_place(*tensors: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        found = stand_in(case)(*tensors, out=out)
        tensors[0].zero_()
        return found

    def broken(*tensors: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("illegal address")

    assert gpu_check.check(case, in_place, operands(case)).note == "an operand was changed"
    assert gpu_check.check(case, broken, operands(case)).note == "RuntimeError: illegal address"


def test_the_run_prints_one_table_and_its_status(
    cases: list[gpu_check.Case], capsys: pytest.CaptureFixture[str]
) -> None:
    kernels = {c.kernel: c for c in cases}
    right: Callable[[str], gpu_check.Launcher] = lambda name: stand_in(kernels[name])  # noqa: E731
    assert gpu_check.run(cases, right, CPU, deadline=0.0) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == gpu_check.COLUMNS
    assert len(lines) == len(cases) + 2 and lines[-1] == "10 right, 0 wrong"
    wrong: Callable[[str], gpu_check.Launcher] = lambda name: stand_in(kernels[name], lambda y: -y)  # noqa: E731
    assert gpu_check.run(cases, wrong, CPU, deadline=0.0) == 1


@pytest.fixture(scope="module")
def bundle() -> list[gpu_check.Case]:
    """The cases that are committed."""
    return gpu_check.read_cases(BENCH / "gpu_cases.npz")


def test_the_bundle_is_of_the_kernels_that_are_generated(bundle: list[gpu_check.Case]) -> None:
    lowered = lower_each(specc.load(shipped("specs") / "gemma4.spec").model)
    kernels = {k.name: k for x in lowered for k in x.kernels}
    assert {c.kernel for c in bundle} == kernels.keys()
    for case in bundle:
        kernel = kernels[case.kernel]
        sizes = {**case.sizes}
        shapes = {o.name: tuple(make_gpu_cases._extent(d, sizes) for d in o.dims) for o in kernel.operands}
        assert {o.name: o.shape for o in case.operands} | dict(case.results) == shapes
    assert {c.kernel for c in bundle if c.timed} == kernels.keys()


@pytest.mark.parametrize("kernel", ["post_ffn_norm", "mlp_act", "attn_core_sliding_decode", "attn_core_global_prefill"])
def test_the_bundle_holds_what_the_oracle_says_now(bundle: list[gpu_check.Case], kernel: str) -> None:
    case = next(c for c in bundle if c.kernel == kernel and c.dtype == "float32")
    model = specc.load(shipped("specs") / "gemma4.spec").model
    (found,) = [k for x in lower_each(model) for k in x.kernels if k.name == kernel]
    ((name, (at, low, high)),) = case.samples.items()
    box = dict(zip(found.formula.equations[0].indices, (np.unique(a) for a in at.T), strict=True))
    operands = {o.name: numpy_operand(o) for o in case.operands}
    oracle = evaluate(found.formula, operands, {**case.sizes}, {name: box})[name].ravel()
    assert np.all((low <= oracle) & (oracle <= high))
    assert np.median((high - low) / np.maximum(np.abs(oracle), 1e-3)) < 1e-3


@pytest.mark.parametrize(
    "layout",
    [
        Layout("x", (3, 5), "real", 7),
        Layout("x", (3, 5), "real", 7, shift=4),
        Layout("x", (5, 300), "real", 7, bits=20, tail=6),
        Layout("t", (9,), "index", 3, top=262144),
        Layout("p", (5,), "places", 0, places=(1, 262143)),
        Layout("w", (4100, 2100), "real", 9),
        Layout("k", (2, 1100, 16, 256), "real", 9),
    ],
    ids=str,
)
def test_both_sides_have_the_same_operands(layout: Layout) -> None:
    want = numpy_operand(layout)
    for dtype in ("bfloat16", "float32")[layout.bits > 8 :]:
        got = torch_operand(layout, dtype, CPU)
        assert np.array_equal(got.double().numpy(), want.astype(np.float64))
    assert want.std() > 0


def test_the_script_needs_nothing_of_specc() -> None:
    for name in ("gpu_check.py", "gpu_operands.py", "gpu_rivals.py"):
        tree = ast.parse((BENCH / name).read_text())
        modules = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        modules += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
        assert not [m for m in modules if m.split(".")[0] == "specc"]


def test_without_a_gpu_the_script_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        return
    assert gpu_check.main([]) == 2
    assert capsys.readouterr().err == "torch sees no GPU here\n"
