"""Names of a formula in a generated file."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

import pytest

from specc.resources import shipped as folder
from specc.targets.triton.emit import emit
from specc.targets.triton.names import Names, launcher_name, legal, legal_name
from tests.oracle.formulas import close
from tests.targets.triton.generated import assert_right, custom, kernel_of, operands, shipped


def test_a_kernel_with_good_names_stays_as_it_is() -> None:
    kernel = shipped("rmsnorm", H=64, eps=1)
    assert legal(kernel) is kernel


def test_a_taken_name_gets_a_number() -> None:
    names = Names(["x"])
    assert [names.fresh("x"), names.fresh("x"), names.fresh("y")] == ["x_2", "x_3", "y"]


@pytest.mark.parametrize("name", ["lambda", "print", "tl", "torch", "x_ptr", "t1", "BLOCK", "out", "sizes", "config"])
def test_operands_may_have_any_name(name: str) -> None:
    kernel = custom(f"op m({name}[T, H], w[H]; H: nat) -> y[T, H]\n  y[t, i] = {name}[t, i] · w[i]\n", H=20)
    ready = legal(kernel)
    assert not any(keyword.iskeyword(o.name) for o in ready.operands)
    assert_right(kernel, operands(kernel, {"T": 3}))


@pytest.mark.parametrize("name", ["acc", "pid", "tl", "i_in", "x_row", "grid", "first", "T2"])
def test_index_variables_and_results_may_have_any_name(name: str) -> None:
    kernel = custom(f"op m(x[T, H]; H: nat) -> {name}[T, H]\n  {name}[{name}, i] = 2 · x[{name}, i]\n", H=20)
    assert_right(kernel, operands(kernel, {"T": 3}))


def test_a_stage_keeps_its_raw_value_under_a_new_name() -> None:
    text = "op m(r1[T, H]; H: nat) -> y[T, H]\n  y[t, i] = r1[t, i] / (1 + Σ_j r1[t, j]²)\n"
    kernel = custom(text, H=20)
    assert_right(kernel, operands(kernel, {"T": 3}))


def test_launchers_are_named_after_their_node() -> None:
    text = emit(shipped("geluMul", I=64))
    assert "def node(gu: torch.Tensor" in text
    assert "def node_kernel(" in text


def test_a_node_may_have_the_name_of_a_function_that_it_calls() -> None:
    kernel = kernel_of(close("siluMul", {"I": 20}, 1), name="silu")
    assert_right(kernel, operands(kernel, {"R0": 3}))


@pytest.mark.parametrize("name", ["range", "tl", "torch", "pick", "CONFIGS", "larger"])
def test_a_node_may_have_the_name_of_something_in_the_file(name: str) -> None:
    kernel = kernel_of(close("rmsnorm", {"H": 20, "eps": 1}, 1), name=name)
    assert launcher_name(kernel) == f"{name}_"
    assert_right(kernel, operands(kernel, {"R0": 3}))


@pytest.mark.parametrize(
    ("function", "parameter"), [("tl", "x"), ("f", "tl"), ("x", "x"), ("larger", "t1"), ("y", "f")]
)
def test_functions_and_their_parameters_may_have_any_name(function: str, parameter: str) -> None:
    text = f"def {function}({parameter}) = exp({parameter}) + exp({parameter})²\n"
    text += f"op m(x[T, H]; H: nat) -> y[T, H]\n  y[t, i] = {function}(x[t, i]) - Max_j x[t, j]\n"
    kernel = custom(text, H=20)
    assert_right(kernel, operands(kernel, {"T": 3}))


def test_names_written_in_templates_are_kept_from_formulas() -> None:
    words: set[str] = set()
    for path in sorted(Path(str(folder("templates"))).glob("triton/*.j2")):
        if path.name != "launch.py.j2":
            text = re.sub(r'\{[{%].*?[%}]\}|""".*?"""|"[^"]*"|#[^\n]*|\.\w+', " ", path.read_text(), flags=re.DOTALL)
            words |= set(re.findall(r"[A-Za-z]\w*", text))
    keywords, endings = {"dtype", "input_precision", "mask", "other"}, {"by_key"}
    assert not [w for w in sorted(words - keywords - endings) if legal_name(w) == w]
