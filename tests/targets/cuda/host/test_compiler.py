"""Which compiler builds kernels for the CPU, and what a machine without one is told."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from specc.cli import run
from specc.diagnostics import SpecError
from specc.resources import shipped
from specc.targets.cuda import host

HELP = "install g++ or clang++, or pip install 'specc[cuda]'"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """What a process found earlier counts neither here nor afterwards."""
    yield
    host.compiler.cache_clear()
    host._version.cache_clear()


@pytest.fixture
def bare(fresh: None, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without CXX, compilers and ziglang."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(host, "_has_zig", lambda: False)
    host.compiler.cache_clear()
    host._version.cache_clear()
    return monkeypatch


def test_cxx_comes_first_then_the_system_then_ziglang(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(host, "_has_zig", lambda: True)
    assert host.compiler.__wrapped__()[1:] == ("-m", "ziglang", "c++")
    bare.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in ("c++", "g++-13") else None)
    assert host.compiler.__wrapped__() == ("/usr/bin/c++",)
    bare.setenv("CXX", "g++-13 -m64")
    assert host.compiler.__wrapped__() == ("g++-13", "-m64")


def test_a_machine_without_a_compiler_is_told_what_to_install(
    bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = str(shipped("specs") / "gemma3_270m.spec")
    assert run(["check", spec, "--target", "cuda", "--node", "input_norm", "--examples", "0"]) == 2
    printed = capsys.readouterr()
    assert printed.err == f"error[E509]: this needs a C++20 compiler\n  help: {HELP}\n"
    assert "REFUTED" not in printed.out


def test_a_cxx_that_is_not_there_is_named(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("CXX", "no-such-compiler -O1")
    with pytest.raises(SpecError, match="this needs a C\\+\\+20 compiler, and CXX names `no-such-compiler`, which is"):
        host.build("")
