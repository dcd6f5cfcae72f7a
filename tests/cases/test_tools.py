"""What tools get wrong in silence."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from specc.ahead import Compiled, compile_job, jobs
from specc.diagnostics import SpecError
from specc.evidence.check import check_kernel
from specc.inputs import Options
from specc.parse import parse_ops
from specc.parse_spec import parse_spec
from specc.resources import shipped
from specc.source import Source
from specc.targets.triton.emit import emit
from specc.targets.triton.load import load_module
from tests.cases.support import EXECUTORS, gemma, kernel

GEMMA = shipped("specs") / "gemma4.spec"


@cache
def files() -> dict[str, str]:
    """The text of every generated kernel of the shipped spec."""
    return {k.name: emit(k) for node in gemma().nodes for k in (node.kernel(phase) for phase in node.phases)}


def test_every_masked_load_says_what_masked_lanes_read() -> None:
    loads = 0
    for name, text in files().items():
        for call in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)):
            if ast.unparse(call.func) == "tl.load":
                loads += 1
                keywords = {k.arg for k in call.keywords}
                assert "mask" not in keywords or "other" in keywords, (name, ast.unparse(call))
                assert len(call.args) == 1, (name, ast.unparse(call))
    assert loads > 50


def test_every_launch_says_whether_multiply_and_add_are_fused() -> None:
    for name, text in files().items():
        configs = [c for widths in load_module(text).CONFIGS.values() for found in widths.values() for c in found]
        assert all(c.options()["enable_fp_fusion"] is True for c in configs), name
        calls = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call))
        launches = [ast.unparse(n) for n in calls if isinstance(n.func, ast.Subscript)]
        assert launches and all("_kernel" in n and "**config.options(" in n for n in launches), (name, launches)


def test_a_product_of_float32_asks_for_full_precision() -> None:
    dots = 0
    for name, text in files().items():
        for call in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)):
            if ast.unparse(call.func) == "tl.dot":
                dots += 1
                assert {k.arg: ast.unparse(k.value) for k in call.keywords}["input_precision"] == "'ieee'", name
    assert dots > 5


@pytest.mark.parametrize("number", ["1" * 5000, "0." + "1" * 5000, "1e99999999", "1e-99999999"])
@pytest.mark.parametrize("where", ["spec", "ops"])
def test_a_number_that_python_cannot_convert_is_a_message(number: str, where: str) -> None:
    with pytest.raises(SpecError) as caught:
        if where == "spec":
            text = GEMMA.read_text(encoding="utf-8").replace("vocab = 262144", f"vocab = {number}")
            parse_spec(Source("x.spec", text))
        else:
            parse_ops(Source("x.ops", f"def f(x) = {number}·x\n"))
    assert [d.code for d in caught.value.diagnostics] == ["E103"]


def test_a_verdict_says_what_it_rests_on() -> None:
    of = kernel("residual", H=8)
    rests = {t: check_kernel(of, e, examples=0, dtypes=("float32",)).evidence for t, e in EXECUTORS.items()}
    assert rests == {"triton": "interpreter", "torch": "run on the CPU", "cuda": "run on the CPU"}


@cache
def compiled() -> dict[str, Compiled]:
    chosen = [j for j in jobs(Path(str(GEMMA)), ["sm_90"], Options()) if j.kernel.name in ("input_norm", "mlp_act")]
    return {j.kernel.name: compile_job(j)[-1] for j in chosen}


@pytest.mark.parametrize("name", ["input_norm", "mlp_act"])
def test_wide_rows_are_read_and_written_16_bytes_at_a_time_without_spills(name: str) -> None:
    report = compiled()[name].report
    assert report is not None and compiled()[name].good
    assert report.accesses and all(access.endswith(".128") for access, _ in report.accesses)
    assert report.spill_stores == report.spill_loads == report.stack == 0


def test_no_lane_of_a_gated_unit_of_21504_idles() -> None:
    configs = load_module(files()["mlp_act"]).CONFIGS["sm_90"][2]
    assert all(21504 % c.tiles["BLOCK"] == 0 for c in configs)
