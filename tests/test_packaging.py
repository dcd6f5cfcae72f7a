from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from specc import build

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        ".",
    ]
    subprocess.run(command, cwd=ROOT, check=True, timeout=180)
    (found,) = folder.glob("specc-*.whl")
    return found


def test_the_wheel_holds_the_package_and_its_data_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"specc/_data/specs/gemma4.spec", "specc/_data/specs/ops/norms.ops", "specc/grammar/spec.lark"} <= set(names)
    assert any(n.startswith("specc/_data/templates/triton/") for n in names)
    assert {n.split("/")[0].split("-")[0] for n in names} == {"specc"}
    assert not [n for n in names if "__pycache__" in n]


def test_an_installed_wheel_builds_the_same_bytes_from_any_folder(wheel: Path, tmp_path: Path) -> None:
    site, work = tmp_path / "site", tmp_path / "work"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True, timeout=180)
    work.mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONPATH": str(site)}
    (work / "gemma4.spec").write_bytes((ROOT / "specs" / "gemma4.spec").read_bytes())
    for arguments in (["build", "gemma4.spec"], ["show", "google/gemma-4-31B"]):
        code = "import sys, specc, specc.cli; assert sys.argv.pop(1) in specc.__file__; specc.cli.main()"
        command = [sys.executable, "-c", code, str(site), *arguments]
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    here = build(ROOT / "specs" / "gemma4.spec", tmp_path / "here").folder
    assert tree(work / "generated" / "gemma4") == tree(here)


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_every_pin_is_exact_and_every_dependency_is_pinned() -> None:
    lines = [x for x in (ROOT / "constraints.txt").read_text().splitlines() if x and not x.startswith("#")]
    pins = dict(x.lower().replace("_", "-").split("==") for x in lines)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
    names = {d.split(">=")[0].lower() for d in wanted if not d.startswith("specc[")}
    assert names - pins.keys() == set()
    assert (pins["torch"], pins["triton"]) == ("2.13.0", "3.9.0")


COMPILED = re.compile(r"\d+ launches compiled, 0 not good$", re.MULTILINE)
CHECK = ("check", "google/gemma-3-270m", "--target", "cuda", "--node", "input_norm", "--examples", "1")


@pytest.mark.slow
def test_a_clean_machine_builds_compiles_and_checks_cuda(wheel: Path, tmp_path: Path) -> None:
    """A new environment with `specc[cuda]` and nothing else: no toolkit and no nvcc in sight, at last no compiler."""
    environment, bin_ = {"HOME": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}, tmp_path / "venv" / "bin"
    system, alone = f"{bin_}:/usr/bin:/bin", str(bin_)
    subprocess.run([sys.executable, "-m", "venv", str(bin_.parent)], check=True, timeout=180)
    pip = [str(bin_ / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "-c", str(ROOT / "constraints.txt"), f"{wheel}[cuda]"], check=True, timeout=1800)

    def specc(*arguments: str, path: str) -> subprocess.CompletedProcess[str]:
        command = [str(bin_ / "specc"), *arguments]
        here = {**environment, "PATH": path}
        return subprocess.run(command, cwd=tmp_path, env=here, capture_output=True, text=True, timeout=1200)

    built = specc("build", "google/gemma-3-270m", "--target", "cuda", "--compile", "sm_90", path=system)
    assert built.returncode == 0 and COMPILED.search(built.stdout), built.stdout + built.stderr
    for path in (system, alone):  # the system's compiler, and that of ziglang
        checked = specc(*CHECK, path=path)
        assert checked.returncode == 0 and checked.stdout.endswith("\n1 VERIFIED\n"), checked.stdout + checked.stderr
    subprocess.run([*pip, "uninstall", "-y", "ziglang"], check=True, timeout=180)
    refused = specc(*CHECK, path=alone)
    assert refused.returncode == 2 and "install g++ or clang++, or pip install 'specc[cuda]'" in refused.stderr
