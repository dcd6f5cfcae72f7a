from __future__ import annotations

import ast
import os
import subprocess
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
import gpu_rows  # noqa: E402
import gpu_tasks  # noqa: E402
import make_gpu_cases  # noqa: E402
from gpu_cases import Case  # noqa: E402
from gpu_operands import Layout, numpy_operand, torch_operand  # noqa: E402
from gpu_rivals import rival  # noqa: E402
from gpu_rows import Row  # noqa: E402
from gpu_workers import Work  # noqa: E402
from make_gpu_cases import Plan  # noqa: E402

SPACE = "few"
CPU = torch.device("cpu")
PLANS: dict[str, tuple[Plan, ...]] = {
    "post_ffn_norm": (Plan({"T": 5}, "bfloat16", (0,)), Plan({"T": 3}, "float32", (0,))),
    "mlp.act": (
        Plan({"T": 5}, "bfloat16", (0,), True),
        Plan({"T": 5}, "float16", (0,)),
        Plan({"T": 5}, "bfloat16", (0,), skew=1),
    ),
    "attn.rope": (
        Plan({"T": 4}, "float32", (0, 1, 77, 1000)),
        Plan({"T": 4}, "float16", (0, 1, 77, 1000), integers="int32"),
    ),
    "attn.core": (
        Plan({"B": 2, "S": 40, "T": 5, "L": 40}, "bfloat16", (36, 37, 38, 39, 35)),
        Plan({"B": 2, "S": 40, "T": 5, "L": 40}, "float32", (36, 37, 38, 39, 35)),
    ),
    "lm_head": (Plan({"T": 2}, "bfloat16", (0,)), Plan({"T": 9}, "float32", (0,))),
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


def stand_in(case: Case, spoil: Callable[[torch.Tensor], torch.Tensor] = lambda y: y) -> gpu_tasks.Launcher:
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
    assert len(cases) == 13
    for case in cases:
        row = gpu_tasks.check(case, stand_in(case), operands(case))
        assert (row.wrong, row.note) == (0, ""), (case.kernel, row.note)
        assert row.checked >= 20 and row.used <= 1


@pytest.mark.parametrize("spoil", [lambda y: y * 1.02, lambda y: -y, lambda y: y.roll(1, -1), lambda y: y.roll(1, 0)])
def test_wrong_results_fail(cases: list[Case], spoil: Callable[[torch.Tensor], torch.Tensor]) -> None:
    for case in cases:
        assert gpu_tasks.check(case, stand_in(case, spoil), operands(case)).wrong, case.kernel


def test_products_in_a_shorter_type_fail_in_float32(cases: list[Case]) -> None:
    found = [c for c in cases if c.dtype == "float32" and c.op in ("lmHead", "slidingGQA", "slidingDecodeGQA")]
    assert len(found) == 3
    for case in found:
        short = [t.bfloat16().to(t.dtype) if t.is_floating_point() else t for t in operands(case)]
        tf32 = [
            (t.view(torch.int32) & ~0x1FFF).view(torch.float32) if t.is_floating_point() else t for t in operands(case)
        ]
        for wrong in (short, tf32):
            row = gpu_tasks.check(
                case, lambda *_, out, wrong=wrong, case=case: stand_in(case)(*wrong, out=out), operands(case)
            )
            assert row.wrong, case.label


def test_elements_that_are_not_written_fail(cases: list[Case]) -> None:
    case = cases[0]

    def lazy(*tensors: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        right = stand_in(case)(*tensors, out=torch.empty_like(out))
        out[:, 1:] = right[:, 1:]
        return out

    row = gpu_tasks.check(case, lazy, operands(case))
    assert row.wrong


def test_a_changed_operand_and_an_exception_fail(cases: list[Case]) -> None:
    case = cases[0]

    def in_place(*tensors: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        found = stand_in(case)(*tensors, out=out)
        tensors[0].zero_()
        return found

    def broken(*tensors: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("illegal address")

    assert gpu_tasks.check(case, in_place, operands(case)).note == "an operand was changed"
    assert gpu_tasks.check(case, broken, operands(case)).note == "RuntimeError: illegal address"


def right_worker(path: Path, wrong: str = "") -> Work:
    """Checks launchers made of torch functions, on the CPU; that of the kernel `wrong` is wrong in CUDA."""
    known = gpu_cases.read_cases(path)

    def launcher(case: Case, target: str) -> gpu_tasks.Launcher:
        return stand_in(case, (lambda y: -y) if (case.kernel, target) == (wrong, "cuda") else (lambda y: y))

    return lambda task: gpu_tasks.try_task(known, launcher, CPU, task)


def tasks(cases: list[Case]) -> list[gpu_rows.Task]:
    return [(n, target) for n in range(len(cases)) for target in gpu_cases.TARGETS]


@pytest.mark.parametrize("wrong", ["", "post_ffn_norm"])
def test_the_run_prints_one_table_and_its_status(
    cases: list[Case], bundled: Path, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: gpu_check.Rows = {}
    gpu_check.check_all(tasks(cases), cases, rows, right_worker, (bundled, wrong), 1, time.monotonic() + 120)
    bad = sum(c.kernel == wrong for c in cases)
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said] == [rows[t].name for t in tasks(cases)]
    assert sum(": WRONG: " in line for line in said) == bad
    status = gpu_check.finish(cases, tasks(cases), rows)
    lines = capsys.readouterr().out.splitlines()
    table = lines[1 : 1 + 2 * len(cases)]
    assert lines[0].split() == gpu_rows.COLUMNS and len(lines) == 2 * len(cases) + 2 + bad
    assert (status, lines[-1]) == (int(bad > 0), f"{26 - bad} right, {bad} wrong, 0 not checked")
    assert {line.split()[2] for line in table if " 0  " not in line} == ({"cuda"} if wrong else set())
    assert all(line.startswith(f"wrong: gemma4 {wrong} cuda") for line in lines[1 + 2 * len(cases) : -1])


def test_what_time_did_not_allow_is_named(cases: list[Case], capsys: pytest.CaptureFixture[str]) -> None:
    call = stand_in(cases[0])
    rows = {(0, "triton"): gpu_tasks.check(cases[0], call, operands(cases[0]))}
    assert gpu_check.finish(cases, tasks(cases[:1]), rows) == 3
    assert f"not checked: gemma4 {cases[0].kernel} cuda {cases[0].label}" in capsys.readouterr().out


def timing_worker(path: Path, fate: str) -> Work:
    """Times launchers made of torch functions, on the CPU. `fate`: what becomes of those in CUDA."""
    known = gpu_cases.read_cases(path)
    torch.compile, torch.compiler.reset = lambda run, **_: run, lambda: None
    lost = [False]

    def answers(device: torch.device) -> None:
        if lost[0]:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def launcher(case: Case, target: str) -> gpu_tasks.Launcher:
        def call(*given: torch.Tensor) -> torch.Tensor:
            assert not lost[0]
            if (target, fate) == ("cuda", "memory"):
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 3 GiB")
            if (target, fate) == ("cuda", "illegal"):
                lost[0] = True
                answers(CPU)
            if (target, fate) == ("cuda", "dies"):
                os._exit(7)
            return stand_in(case)(*given, out=torch.empty(case.results[0].shape))

        return call

    gpu_tasks.synchronize = answers
    return lambda task: gpu_tasks.try_timing(known, launcher, CPU, task)


@pytest.mark.parametrize(
    ("fate", "told"),
    [
        ("memory", "OutOfMemoryError: CUDA out of memory. Tried to allocate 3 GiB"),
        ("illegal", "no longer answers this process, which is replaced"),
        ("dies", "its process ended with 7"),
    ],
)
def test_a_kernel_that_cannot_be_timed_costs_no_other_time(
    cases: list[Case], bundled: Path, fate: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {task: Row(cases[task[0]], task[1]) for task in tasks(cases)}
    gpu_check.time_all(cases, rows, timing_worker, (bundled, fate), time.monotonic() + 120)
    said = capsys.readouterr().out.splitlines()
    assert [line.split(", ")[1].split(":")[0] for line in said] == ["triton", "cuda", "torch eager", "torch compiled"]
    number = next(n for n, c in enumerate(cases) if c.timed)
    triton, cuda = (rows[number, t] for t in gpu_cases.TARGETS)
    assert triton.times.keys() == {"specc", "eager", "compiled"} and gpu_rows.line(triton)[7] != "-"
    assert "specc" not in cuda.times and told in cuda.untimed and told in said[1]
    assert gpu_check.finish(cases, tasks(cases), rows) == 4
    assert f"not timed: {cuda.name}: {cuda.untimed}" in capsys.readouterr().out


def test_nothing_is_timed_after_the_deadline(cases: list[Case], bundled: Path) -> None:
    rows = {task: Row(cases[task[0]], task[1]) for task in tasks(cases)}
    gpu_check.time_all(cases, rows, timing_worker, (bundled, ""), time.monotonic())
    assert not any(r.times for r in rows.values())


def test_operands_that_do_not_fit_are_a_row(cases: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(gpu_tasks, "torch_operand", full)
    row, fit = gpu_tasks.try_task(cases, lambda case, _: stand_in(case), CPU, (0, "cuda"))
    assert (row.wrong, row.note, fit) == (1, "OutOfMemoryError: CUDA out of memory", True)


def test_after_an_illegal_access_the_process_is_given_up(cases: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(_: torch.device) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nCompile with TORCH_USE_CUDA_DSA")

    monkeypatch.setattr(gpu_tasks, "synchronize", lost)
    row, fit = gpu_tasks.try_task(cases, lambda case, _: stand_in(case), CPU, (0, "cuda"))
    assert row.wrong and not fit
    assert "illegal memory access" in row.note and "no longer answers this process" in row.note


def test_a_long_error_is_told_by_its_ends() -> None:
    assert gpu_rows.told(ValueError("a\n  b")) == "ValueError: a b"
    long = gpu_rows.told(ValueError("first " + "x" * 1000 + " last"))
    assert long.startswith("ValueError: first") and long.endswith(" last") and len(long) < 330


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
        Layout("x", (3, 5), "real", 7, skew=1),
        Layout("w", (4100, 2100), "real", 9, skew=1),
        Layout("t", (9,), "index", 3, top=262144, dtype="int32"),
        Layout("p", (5,), "places", 0, places=(1, 262143), dtype="int32"),
    ],
    ids=str,
)
def test_both_sides_have_the_same_operands(layout: Layout) -> None:
    want = numpy_operand(layout)
    for dtype in ("bfloat16", "float16", "float32")[2 * (layout.bits > 8) :]:
        got = torch_operand(layout, dtype, CPU)
        assert got.is_contiguous() and got.dtype == getattr(torch, layout.stored(dtype))
        assert got.data_ptr() % 16 == layout.skew * got.element_size()
        assert np.array_equal(got.double().numpy(), want.astype(np.float64))
    assert want.std() > 0


def test_the_script_needs_nothing_of_specc() -> None:
    for name in ("check", "cases", "cuda", "operands", "rivals", "rows", "tasks", "workers"):
        tree = ast.parse((BENCH / f"gpu_{name}.py").read_text())
        modules = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        modules += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
        assert not [m for m in modules if m.split(".")[0] == "specc"]


@pytest.fixture(scope="module")
def small_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cases of a kernel as it is shipped."""
    lowered = lower_each(specc.load(shipped("specs") / "gemma3_270m.spec").model)
    kernel, node = next((k, x.node) for x in lowered for k in x.kernels if k.name == "input_norm")
    plans = (Plan({"T": 2}, "float16", (0,), True), Plan({"T": 3}, "float16", (0,), skew=1))
    metas = [make_gpu_cases.case("gemma3_270m", "gemma_3_270m", kernel, node, p) for p in plans]
    samples = [make_gpu_cases.intervals(kernel, meta) for meta in metas]
    more = [{"repeats": False, "plan": n, "tables": {}, "samples": n} for n in range(len(plans))]
    path = tmp_path_factory.mktemp("small") / "cases.npz"
    gpu_cases.write_cases(path, [{**m, **o} for m, o in zip(metas, more, strict=True)], samples, [])
    return path


def script(bundle: Path, *options: str, interpret: bool = True) -> subprocess.CompletedProcess[str]:
    """The script as a user runs it, on the CPU, where what is generated for Triton runs by its interpreter."""
    command = [sys.executable, str(BENCH / "gpu_check.py"), "--device", "cpu", "--cases", str(bundle), *options]
    given = ["--generated", str(BENCH.parent / "generated")]
    environment = {n: v for n, v in os.environ.items() if n not in ("TRITON_INTERPRET", "PYTHONPATH")}
    environment |= {"TRITON_INTERPRET": "1"} if interpret else {}
    return subprocess.run([*command, *given], env=environment, capture_output=True, text=True, timeout=300, cwd="/")


def test_the_script_runs_from_end_to_end(small_bundle: Path) -> None:
    done = script(small_bundle, "--only", "triton")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[1].startswith("gemma3_270m input_norm triton T=2 float16: right")
    assert lines[2].startswith("gemma3_270m input_norm triton T=3 float16 askew: right")
    assert lines[-1] == "2 right, 0 wrong, 0 not checked"
    assert any(
        line.startswith("gemma3_270m input_norm T=2 float16, triton: ") and line.endswith("µs") for line in lines
    )


def test_where_nothing_can_run_the_script_says_why_and_fails(small_bundle: Path) -> None:
    done = script(small_bundle, interpret=False)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 right, 4 wrong, 0 not checked"


def test_a_script_that_hangs_is_stopped_with_its_table(small_bundle: Path, tmp_path: Path) -> None:
    """Where the main process itself hangs, with what is known by then."""
    driver = tmp_path / "hanging.py"
    driver.write_text(
        f"import sys, time\nsys.path.insert(0, {str(BENCH)!r})\nimport gpu_check\n"
        "if __name__ == '__main__':\n"
        "    gpu_check.check_all = lambda tasks, cases, rows, *_: (\n"
        "        rows.update({tasks[0]: gpu_check.Row(cases[0])}), time.sleep(600))\n"
        f"    gpu_check.main(['--device', 'cpu', '--seconds', '2', '--cases', {str(small_bundle)!r}])\n"
    )
    done = subprocess.run([sys.executable, driver], capture_output=True, text=True, timeout=120)
    assert done.returncode == 5
    lines = done.stdout.splitlines()
    assert "stopped after 2 s, at:" in lines and lines[-1] == "1 right, 0 wrong, 3 not checked"
    assert "most recent call first" in done.stderr and "in run" in done.stderr


def stillborn(*_: object) -> Work:
    os._exit(9)


def test_where_no_process_starts_the_table_comes_all_the_same(
    small_bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_check, "start_checking", stillborn)
    assert gpu_check.main(["--device", "cpu", "--cases", str(small_bundle)]) == 5
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == "0 right, 0 wrong, 4 not checked"
    assert "no process becomes ready: its process ended with 9" in said.err


def test_without_a_gpu_the_script_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        return
    assert gpu_check.main([]) == 2
    assert capsys.readouterr().err == "torch sees no GPU here\n"
