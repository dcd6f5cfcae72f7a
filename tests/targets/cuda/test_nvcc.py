"""Launch wrappers as a C++ engine takes them: compiled by nvcc, linked by way of the generated header, and called."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from specc import build
from specc.resources import shipped
from tests.targets.cuda.engine import engine, functions

MODELS = sorted(shipped("specs").glob("*.spec"))
STRICT = ("-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror")
KERNEL = ("-std=c++17", "-arch=compute_80", *STRICT)
"""Kernels stay PTX here: machine code is NVRTC's part, see test_aot.py."""
COMMANDS = {
    "C": ("gcc", "-x", "c", "-std=c11", "-pedantic"),
    "C++": ("g++", "-x", "c++", "-std=c++17", "-pedantic"),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The CUDA files of every shipped spec."""
    out = tmp_path_factory.mktemp("engine")
    return {spec.stem: build(spec, out, ["cuda"]).folder / "cuda" for spec in MODELS}


def nvcc(arguments: Sequence[str], folder: Path) -> str:
    """What nvcc of the wheel prints; nothing where all is well. Nothing else of CUDA is in its sight."""
    root = os.environ.get("SPECC_NVCC")
    assert root, "`make test-slow` installs it and says where it is"
    command = [str(Path(root).resolve() / "nvidia" / "cu13" / "bin" / "nvcc"), *arguments]
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    printed = done.stdout + done.stderr
    return printed or (f"nvcc ended with {done.returncode}" if done.returncode else "")


@pytest.mark.parametrize("language", COMMANDS)
def test_the_headers_of_all_models_stand_beside_each_other(
    folders: dict[str, Path], language: str, tmp_path: Path
) -> None:
    if shutil.which(COMMANDS[language][0]) is None:
        pytest.skip(f"{COMMANDS[language][0]} is not installed")
    headers = [next(folder.glob("*.h")) for folder in folders.values()]
    program = tmp_path / "all"
    program.write_text("".join(f'#include "{h}"\n' for h in headers) + "int main(void) { return 0; }\n")
    command = [*COMMANDS[language], "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("spec", MODELS, ids=lambda path: path.stem)
def test_a_header_declares_what_the_files_define(folders: dict[str, Path], spec: Path) -> None:
    files = sorted(folders[spec.stem].glob("*.cu"))
    (header,) = folders[spec.stem].glob("*.h")
    declared = [name for _, name, _ in functions(header.read_text())]
    defined = [line.split("(")[0].split()[-1] for f in files for line in _external(f.read_text())]
    assert sorted(declared) == sorted(defined) and len(declared) >= len(files) > 0


def _external(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith('extern "C"')]


@pytest.mark.slow
@pytest.mark.parametrize("spec", MODELS, ids=lambda path: path.stem)
def test_an_engine_links_the_wrappers_of_a_model_and_calls_them(folders: dict[str, Path], spec: Path) -> None:
    folder = folders[spec.stem]
    (header,) = folder.glob("*.h")
    (folder / "engine.cpp").write_text(engine(header.read_text(), header.name))
    files = [f.name for f in sorted(folder.glob("*.cu"))]
    with ThreadPoolExecutor(2) as pool:
        printed = pool.map(lambda f: nvcc([*KERNEL, "-c", f, "-o", f"{f}.o"], folder), files)
        assert {f: text for f, text in zip(files, printed, strict=True) if text} == {}
    objects = [f"{f}.o" for f in files]
    assert nvcc(["-std=c++17", *STRICT, "engine.cpp", *objects, "-o", "engine"], folder) == ""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([folder / "engine"], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.stderr, done.returncode) == ("", 0)
