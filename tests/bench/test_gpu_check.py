from __future__ import annotations

import ast
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import specc
from specc.ir import Model, NodeVariant
from specc.kernels import Kernel
from specc.lowered import lower_each
from specc.resources import shipped

BENCH = Path(__file__).parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import gpu_cases  # noqa: E402
import gpu_check  # noqa: E402
import make_gpu_cases  # noqa: E402
from gpu_cases import Case  # noqa: E402
from gpu_operands import Layout, numpy_operand, torch_operand  # noqa: E402
from gpu_rivals import rival  # noqa: E402

SPACE = "few"
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
def kernels(model: Model) -> dict[str, tuple[Kernel, NodeVariant]]:
    nodes = [model.variants(path)[0] for path in PLANS]
    return {k.name: (k, x.node) for x in lower_each(model, nodes) for k in x.kernels}


@pytest.fixture(scope="module")
def bundled(kernels: dict[str, tuple[Kernel, NodeVariant]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cases") / "cases.npz"
    metas, samples, tables = [], [], []
    for kernel, node in kernels.values():
        own = make_gpu_cases.tables(kernel, SPACE)
        for n, plan in enumerate(PLANS[node.path]):
            places = {name: len(tables) + at for at, name in enumerate(own)}
            more = {"repeats": False, "plan": n, "tables": places, "samples": len(samples)}
            metas.append({**make_gpu_cases.case("gemma4", SPACE, kernel, node, plan), **more})
            samples.append(make_gpu_cases.intervals(kernel, metas[-1]))
        tables += own.values()
    gpu_cases.write_cases(path, metas, samples, tables)
    return path


@pytest.fixture(scope="module")
def cases(bundled: Path) -> list[Case]:
    return gpu_cases.read_cases(bundled)


def stand_in(case: Case, spoil: Callable[[torch.Tensor], torch.Tensor] = lambda y: y) -> gpu_check.Launcher:
    """A launcher made of torch functions in float64, rounded once; `spoil` makes it a wrong one."""
    right = rival(case.op, case.constants)
    assert right is not None

    def launch(*tensors: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        exact = right(*(t.double() if t.is_floating_point() else t for t in tensors))
        return out.copy_(spoil(exact))

    return launch


def operands(case: Case) -> list[torch.Tensor]:
    return [torch_operand(o, case.dtype, CPU) for o in case.operands]


def test_right_results_pass_at_every_sampled_place(cases: list[Case]) -> None:
    assert len(cases) == 10
    for case in cases:
        row = gpu_check.check(case, stand_in(case), operands(case))
        assert (row.wrong, row.note) == (0, ""), (case.kernel, row.note)
        assert row.checked >= 20 and row.used <= 1


@pytest.mark.parametrize("spoil", [lambda y: y * 1.02, lambda y: -y, lambda y: y.roll(1, -1), lambda y: y.roll(1, 0)])
def test_wrong_results_fail(cases: list[Case], spoil: Callable[[torch.Tensor], torch.Tensor]) -> None:
    for case in cases:
        assert gpu_check.check(case, stand_in(case, spoil), operands(case)).wrong, case.kernel


def test_products_in_a_shorter_type_fail_in_float32(cases: list[Case]) -> None:
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


def test_elements_that_are_not_written_fail(cases: list[Case]) -> None:
    case = cases[0]

    def lazy(*tensors: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        right = stand_in(case)(*tensors, out=torch.empty_like(out))
        out[:, 1:] = right[:, 1:]
        return out

    row = gpu_check.check(case, lazy, operands(case))
    assert row.wrong


def test_a_changed_operand_and_an_exception_fail(cases: list[Case]) -> None:
    case = cases[0]

    def in_place(*tensors: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        found = stand_in(case)(*tensors, out=out)
        tensors[0].zero_()
        return found

    def broken(*tensors: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("illegal address")

    assert gpu_check.check(case, in_place, operands(case)).note == "an operand was changed"
    assert gpu_check.check(case, broken, operands(case)).note == "RuntimeError: illegal address"


def right_worker(path: Path, wrong: str = "") -> gpu_check.Work:
    """Checks launchers made of torch functions, on the CPU; that of the kernel `wrong` is wrong in CUDA."""
    known = gpu_cases.read_cases(path)

    def launcher(case: Case, target: str) -> gpu_check.Launcher:
        return stand_in(case, (lambda y: -y) if (case.kernel, target) == (wrong, "cuda") else (lambda y: y))

    return lambda task: gpu_check.try_task(known, launcher, CPU, task)


@pytest.mark.parametrize("wrong", ["", "post_ffn_norm"])
def test_the_run_prints_one_table_and_its_status(
    cases: list[Case], bundled: Path, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = gpu_check.check_all(cases, right_worker, (bundled, wrong), 1, time.monotonic() + 120)
    status = gpu_check.finish(cases, rows)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == gpu_check.COLUMNS and len(lines) == 2 * len(cases) + 2
    bad = sum(c.kernel == wrong for c in cases)
    assert (status, lines[-1]) == (int(bad > 0), f"{20 - bad} right, {bad} wrong, 0 not checked")
    assert {line.split()[2] for line in lines[1:-1] if " 0  " not in line} == ({"cuda"} if wrong else set())


def test_what_time_did_not_allow_is_named(cases: list[Case], capsys: pytest.CaptureFixture[str]) -> None:
    call = stand_in(cases[0])
    rows = {(0, "triton"): gpu_check.check(cases[0], call, operands(cases[0]))}
    assert gpu_check.finish(cases[:1], rows) == 3
    assert f"not checked: gemma4 {cases[0].kernel} cuda {cases[0].label}" in capsys.readouterr().out


def test_right_ones_are_timed_with_torch_beside_them(cases: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda run, **_: run)
    (number, case) = next((n, c) for n, c in enumerate(cases) if c.timed)
    rows = {(number, t): gpu_check.Row(case, t) for t in gpu_cases.TARGETS}
    launcher = lambda case, target: lambda *given: stand_in(case)(*given, out=torch.empty(case.results[0].shape))  # noqa: E731
    gpu_check.time_all(rows, launcher, CPU, time.monotonic())
    assert not any(r.times for r in rows.values())
    gpu_check.time_all(rows, launcher, CPU, time.monotonic() + 0.2)
    assert all({"specc", "eager"} <= r.times.keys() for r in rows.values())
    assert gpu_check.line(rows[number, "cuda"])[7] != "-"


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
    for name in ("check", "cases", "cuda", "operands", "rivals", "workers"):
        tree = ast.parse((BENCH / f"gpu_{name}.py").read_text())
        modules = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        modules += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
        assert not [m for m in modules if m.split(".")[0] == "specc"]


def test_without_a_gpu_the_script_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        return
    assert gpu_check.main([]) == 2
    assert capsys.readouterr().err == "torch sees no GPU here\n"
