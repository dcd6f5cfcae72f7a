"""The cases that are committed: of which kernels, what they hold, and what they launch."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

import specc
from specc.kernels import Kernel
from specc.oracle import evaluate
from specc.resources import shipped
from specc.targets.cuda.names import namespace
from tests.shipped import SPECS, kernels

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import gpu_cases  # noqa: E402
import gpu_cuda  # noqa: E402
import gpu_launches  # noqa: E402
import gpu_tasks  # noqa: E402
import make_gpu_cases  # noqa: E402
from gpu_cases import Case  # noqa: E402
from gpu_operands import numpy_operand  # noqa: E402

FILE = ROOT / "bench" / "gpu_cases.npz"
PICKED = (
    ("gemma4", "input_norm"), ("gemma4", "mlp_act"), ("gemma4", "attn_core_sliding_decode"),
    ("qwen3_8_27b", "gdn_core_delta_prefill"),
)  # fmt: skip


@pytest.fixture(scope="module")
def bundle() -> list[Case]:
    return gpu_cases.read_cases(FILE)


@pytest.fixture(scope="module")
def known() -> Mapping[tuple[str, str], Kernel]:
    return {(spec, k.name): k for spec in SPECS for k in kernels(spec)}


def space(spec: str) -> str:
    return namespace(specc.load(shipped("specs") / f"{spec}.spec").model)


def test_every_kernel_of_every_shipped_spec_is_there(
    bundle: list[Case], known: Mapping[tuple[str, str], Kernel]
) -> None:
    assert {(c.spec, c.kernel) for c in bundle} == known.keys()
    assert {(c.spec, c.kernel) for c in bundle if c.timed or c.repeats} == known.keys()
    files = {(c.spec, t, c.kernel) for c in bundle for t in gpu_cases.TARGETS}
    assert all((ROOT / "generated" / s / t / f"{k}.{'py' if t == 'triton' else 'cu'}").is_file() for s, t, k in files)


def test_shapes_are_those_of_the_kernels(bundle: list[Case], known: Mapping[tuple[str, str], Kernel]) -> None:
    for case in bundle:
        kernel = known[case.spec, case.kernel]
        shapes = {o.name: tuple(make_gpu_cases._extent(d, case.sizes) for d in o.dims) for o in kernel.operands}
        assert {o.name: o.shape for o in case.operands} | {r.name: r.shape for r in case.results} == shapes
        assert case.samples.keys() == {r.name for r in case.results}


def test_the_most_telling_come_first_and_the_file_is_small(bundle: list[Case]) -> None:
    first = [c.schedule for c in bundle[:40]]
    assert first == sorted(first, key=gpu_cases.SCHEDULES.index) and not any(c.repeats for c in bundle[:300])
    assert FILE.stat().st_size < 1 << 20


@pytest.mark.parametrize(("spec", "name"), PICKED)
def test_the_bundle_holds_what_the_oracle_says_now(
    bundle: list[Case], known: Mapping[tuple[str, str], Kernel], spec: str, name: str
) -> None:
    case = next(c for c in bundle if (c.spec, c.kernel, c.dtype) == (spec, name, "float32"))
    formula = known[spec, name].formula
    box = {
        q.tensor.name: dict(zip(q.indices, (np.unique(a) for a in case.samples[q.tensor.name][0].T), strict=True))
        for q in formula.equations
    }
    oracle = evaluate(formula, {o.name: numpy_operand(o) for o in case.operands}, {**case.sizes}, box)
    for result, (_, low, high) in case.samples.items():
        exact = oracle[result].ravel()
        assert np.all((low <= exact) & (exact <= high))
        assert np.median((high - low) / np.maximum(np.abs(exact), 1e-3)) < 1e-3


@pytest.mark.parametrize(("spec", "name"), PICKED)
def test_launches_are_those_that_the_wrappers_make_now(
    bundle: list[Case], known: Mapping[tuple[str, str], Kernel], spec: str, name: str
) -> None:
    for case in (c for c in bundle if (c.spec, c.kernel) == (spec, name)):
        integers = next((o.dtype for o in case.operands if o.kind in ("index", "places")), "int64")
        given = gpu_launches.Given(case.dtype, integers, max(o.skew for o in case.operands))
        found, workspace = gpu_launches.launches(known[spec, name], space(spec), case.sizes, given)
        assert tuple(gpu_cases._launch(*one) for one in found) == case.launches and workspace == case.workspace


def test_what_is_launched_stands_in_the_generated_file(bundle: list[Case]) -> None:
    for case in bundle:
        text = (ROOT / "generated" / case.spec / "cuda" / f"{case.kernel}.cu").read_text()
        names = [re.match(r"(\w+)::(\w+)<", one.kernel) for one in case.launches]
        assert names and all(n and f"namespace {n[1]} " in text and f"{n[2]}(" in text for n in names)
        places = {o.name for o in case.operands} | {r.name for r in case.results} | {"workspace", *case.tables}
        used = {a for one in case.launches for a, _ in one.arguments if isinstance(a, str)}
        assert used <= places and {r.name for r in case.results} <= used


def test_every_op_of_every_spec_comes_in_all_instances(bundle: list[Case]) -> None:
    """Those of float16 and of operands that lie askew too, and with integers of both widths."""
    ops = {(c.spec, c.op) for c in bundle if not c.repeats}
    half = {(c.spec, c.op) for c in bundle if any("<__half, 8" in one.kernel for one in c.launches)}
    askew = {(c.spec, c.op) for c in bundle if any("<__nv_bfloat16, 1" in one.kernel for one in c.launches)}
    assert half == ops and askew == ops
    short = {(c.spec, c.op) for c in bundle for o in c.operands if o.dtype == "int32"}
    assert short == {(c.spec, c.op) for c in bundle for o in c.operands if o.kind in ("index", "places")}


def test_nvrtc_compiles_what_is_launched(bundle: list[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_cuda.tempfile, "tempdir", str(tmp_path))
    case = next(c for c in bundle if (c.spec, c.kernel) == ("gemma4", "mlp_act"))
    file = ROOT / "generated" / "gemma4" / "cuda" / "mlp_act.cu"
    symbol, code = gpu_cuda.compiled(file, case.launches[0].kernel, "sm_90")
    assert "mlp_act_kernel" in symbol and code[:4] == b"\x7fELF"
    assert gpu_cuda.compiled(file, case.launches[0].kernel, "sm_90") == (symbol, code)


def test_triton_launchers_are_found(bundle: list[Case]) -> None:
    launchers = gpu_tasks.load_kernels(ROOT / "generated", torch.device("cpu"))
    for case in bundle:
        assert callable(launchers(case, "triton"))
