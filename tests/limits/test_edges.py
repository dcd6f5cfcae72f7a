"""What is just within the limits goes through every stage."""

from __future__ import annotations

from pathlib import Path

import pytest

from specc import pipeline
from specc.diagnostics import SpecError
from specc.inputs import Options
from specc.limits import MAX_DEPTH, MAX_FORMULA, MAX_SHOWN
from tests.limits.attacks import ROW, F, edited, library
from tests.limits.test_attacks import laid_out

DEEP = MAX_DEPTH - 12
"""Levels that are written, so that those around them still fit."""

FORMULAS = {
    "sums": "+".join(["x[.., i]"] * DEEP),
    "signs": "-" * (DEEP - 5) + "x[.., i]",
    "roots": "√(" * (DEEP - 5) + "x[.., i]" + ")" * (DEEP - 5),
    "functions": "g(" * (DEEP // 3) + "x[.., i]" + ")" * (DEEP // 3),
    "choices": "if i < 1 then x[.., i] else " * (DEEP - 5) + "x[.., i]",
    "indices": "x[.., " * (DEEP // 2 - 4) + "i" + "]" * (DEEP // 2 - 4),
    "quotients": "x[.., i]/" * (DEEP - 8) + "eps",
    "powers": "(" * 3 + "x[.., i]" + "^20)" * 3,
    "width": "·".join(["(" + "+".join(["x[.., i]"] * 12) + ")"] * (MAX_FORMULA // 50)),
}


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
def test_a_formula_as_deep_or_wide_as_is_allowed_is_built_or_refused(formula: str, tmp_path: Path) -> None:
    text = "def g(x) = x + 1\n" + F + f"  y[.., i] = w[i]·eps·({formula})\n"
    laid_out(library("edge", "", text, ROW).files, tmp_path)
    try:
        assert pipeline.compile_files(tmp_path / "x.spec", Options())[0]
    except SpecError as error:
        assert {d.code for d in error.diagnostics} <= {"E310", "E401", "E410"}


def test_lets_as_deep_as_is_allowed_are_built(tmp_path: Path) -> None:
    lets = "  let a0[i] = x[.., i]·w[i]·eps\n"
    lets += "".join(f"  let a{n}[i] = a{n - 1}[i] + 1\n" for n in range(1, MAX_DEPTH // 2 - 8))
    laid_out(library("edge", "", F + lets + f"  y[.., i] = a{MAX_DEPTH // 2 - 9}[i]\n", ROW).files, tmp_path)
    assert pipeline.compile_files(tmp_path / "x.spec", Options())[0]


def test_functions_as_deep_as_is_allowed_are_built(tmp_path: Path) -> None:
    chain = "def f0(x) = x + 1\n" + "".join(f"def f{n}(x) = f{n - 1}(x) + 1\n" for n in range(1, 45))
    laid_out(library("edge", "", chain + F + "  y[.., i] = f44(x[.., i])·w[i]·eps\n", ROW).files, tmp_path)
    assert pipeline.compile_files(tmp_path / "x.spec", Options())[0]


def test_sizes_as_deep_as_is_allowed_have_values(tmp_path: Path) -> None:
    chain = "".join(f"  a{n} = a{n + 1} + 1\n" for n in range(MAX_DEPTH // 2 - 2)) + f"  a{MAX_DEPTH // 2 - 2} = 1\n"
    laid_out(edited("edge", "", ("  vocab = 11\n", "  vocab = 11\n" + chain)).files, tmp_path)
    assert dict(pipeline.load(tmp_path / "x.spec").sizes)["a0"] == MAX_DEPTH // 2 - 1


def test_the_mistakes_that_are_printed_are_counted(tmp_path: Path) -> None:
    laid_out(edited("edge", "", ("  vocab = 11\n", "  vocab = 11\n" + "  a = = 1\n" * 30)).files, tmp_path)
    with pytest.raises(SpecError) as caught:
        pipeline.load(tmp_path / "x.spec")
    assert len(caught.value.diagnostics) == 30
    assert str(caught.value).count("error[E101]") == MAX_SHOWN
    assert str(caught.value).endswith(f"… and {30 - MAX_SHOWN} more")
