"""The files of a whole model."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from specc import pipeline
from specc.kernels import Kernel
from specc.lowered import all_kernels
from specc.resources import shipped as folder
from specc.targets.base import Target
from specc.targets.text import LIMIT
from specc.targets.triton import target


@cache
def kernels() -> tuple[Kernel, ...]:
    return all_kernels(pipeline.lower(pipeline.load(Path(str(folder("specs"))) / "gemma4.spec")))


@cache
def files() -> Mapping[str, str]:
    return target.emit_all(kernels())


def test_a_model_has_one_file_a_kernel_and_what_they_share() -> None:
    assert list(files()) == sorted(["__init__.py", "launch.py", *(f"{k.name}.py" for k in kernels())])


def test_the_module_is_a_target() -> None:
    module: Target = target
    assert module.name == "triton"


def test_the_same_kernels_give_the_same_bytes() -> None:
    assert target.emit_all(kernels()) == files()


@pytest.mark.parametrize("name", [f"{k.name}.py" for k in kernels()])
def test_a_file_says_what_it_is(name: str) -> None:
    kernel = next(k for k in kernels() if f"{k.name}.py" == name)
    tree = ast.parse(files()[name])
    doc = ast.get_docstring(tree) or ""
    assert all(key in doc for key in kernel.keys)
    assert kernel.schedule_name in doc and kernel.op in doc
    assert all(f"\nTensor    {o.name} [" in doc for o in kernel.operands)
    functions = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
    launcher = functions[kernel.name]
    assert launcher.returns is not None and ast.get_docstring(launcher)
    assert all(a.annotation is not None for a in (*launcher.args.args, *launcher.args.kwonlyargs))
    assert f"{kernel.name}_kernel" in functions


@pytest.mark.parametrize("name", [f"{k.name}.py" for k in kernels()])
def test_masked_loads_always_say_what_is_read_elsewhere(name: str) -> None:
    for node in ast.walk(ast.parse(files()[name])):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.load":
            given = {k.arg for k in node.keywords}
            assert ("mask" in given) == ("other" in given)


def test_generated_files_are_formatted_and_free_of_lint(tmp_path: Path) -> None:
    for name, text in files().items():
        (tmp_path / name).write_text(text)
    ruff = [sys.executable, "-m", "ruff"]
    width = ["--isolated", "--line-length", str(LIMIT), str(tmp_path)]
    formatted = subprocess.run([*ruff, "format", "--diff", *width], capture_output=True, text=True)
    assert formatted.returncode == 0, formatted.stdout
    rules = ["--select", "E,F,I,B,UP,C4,SIM,PIE,RET", "--ignore", "E741"]
    checked = subprocess.run([*ruff, "check", *rules, *width], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_files_are_made_without_torch_or_triton() -> None:
    code = "import sys; sys.modules['torch'] = sys.modules['triton'] = None; import specc.targets.triton.target"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
