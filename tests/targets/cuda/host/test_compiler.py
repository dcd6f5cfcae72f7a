"""Which compiler builds kernels for the CPU, and what a machine without one is told."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import specc
from specc.cli import run
from specc.diagnostics import SpecError
from specc.resources import shipped
from specc.targets.cuda import host
from specc.targets.cuda.emit import emit
from tests.targets.cuda.generated import shipped as op

NORM = op("rmsnorm", H=64, eps=1)
HELP = "install g++ or clang++, or pip install 'specc[cuda]'"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without CXX, compilers and ziglang."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(host, "_has_zig", lambda: False)
    return monkeypatch


def test_cxx_comes_first_then_the_system_then_ziglang(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(host, "_has_zig", lambda: True)
    assert host.command()[1:] == ("-m", "ziglang", "c++")
    bare.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in ("c++", "g++-13") else None)
    assert host.command() == ("/usr/bin/c++",)
    bare.setenv("CXX", "g++-13 -m64")
    assert host.command() == ("g++-13", "-m64")


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


@pytest.mark.parametrize(("cxx", "said"), [
    ("false", "it ends with status 1 and says nothing"), ("true", "it writes no library"),
    ("g++ -include no-such-header.h", r"(?i)error: .*no-such-header\.h"),
])  # fmt: skip
def test_a_cxx_that_compiles_nothing_is_not_the_fault_of_a_kernel(
    cxx: str, said: str, bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare.undo()
    bare.setenv("CXX", cxx)
    spec = str(shipped("specs") / "gemma3_270m.spec")
    assert run(["check", spec, "--target", "cuda", "--node", "input_norm", "--examples", "0"]) == 2
    printed = capsys.readouterr()
    start = f"error[E509]: this needs a C++20 compiler, and `{cxx}` does not compile a small program: "
    assert printed.err.startswith(start) and printed.err.endswith(f"\n  help: {HELP}\n")
    assert re.search(said, printed.err) and "REFUTED" not in printed.out


@pytest.fixture
def junk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that takes everything, as one for another machine does, and a cache of its own."""
    monkeypatch.setenv("SPECC_CACHE", str(tmp_path / "cache"))
    script = tmp_path / "cross"
    script.write_text('#!/bin/sh\nfor a; do [ "$o" = -o ] && echo junk > "$a"; o=$a; done; echo cross 1.0\n')
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    return tmp_path / "cache"


def test_a_cxx_whose_output_does_not_load_is_not_the_fault_of_a_kernel(
    junk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = str(shipped("specs") / "gemma3_270m.spec")
    assert run(["check", spec, "--target", "cuda", "--node", "input_norm", "--examples", "0"]) == 2
    printed = capsys.readouterr()
    assert re.match(r"error\[E509\]: .*cross` makes a library that does not load: .*too short\n  help: ", printed.err)
    assert "REFUTED" not in printed.out and not list(junk.rglob("*.so"))


def test_a_library_that_does_not_load_leaves_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECC_CACHE", str(tmp_path))
    text = emit(NORM)
    path = host.build_wrapper(text)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(SpecError, match=r"E509.*does not load: .*\n  help: it is no longer in the cache"):
        host.load(path)
    assert host.load(host.build_wrapper(text))


def test_a_kernel_that_calls_what_nothing_defines_is_wrong_itself() -> None:
    path = host.build_wrapper("void gone();\nvoid entry() { gone(); }\n")
    with pytest.raises(host.HostCompileError, match="undefined symbol: .*gone"):
        host.load(path)


@pytest.mark.parametrize("variable", ["SPECC_CACHE", "XDG_CACHE_HOME"])
def test_a_cache_that_cannot_be_written_is_not_the_fault_of_a_kernel(
    variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SPECC_CACHE", raising=False)
    monkeypatch.setenv(variable, "/dev/null/x")
    spec = str(shipped("specs") / "gemma3_270m.spec")
    assert run(["check", spec, "--target", "cuda", "--node", "input_norm", "--examples", "0"]) == 2
    printed = capsys.readouterr()
    assert re.match(r"error\[E502\]: cannot write `/dev/null.*\n  help: `SPECC_CACHE` ", printed.err)
    assert "REFUTED" not in printed.out


def test_without_a_home_folder_the_cache_has_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPECC_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(SpecError, match="E502.*cannot write `~/.cache`: there is no home folder"):
        host.build_wrapper("")


def test_a_compiler_without_room_is_not_one_that_does_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "full"
    script.write_text("#!/bin/sh\necho 'fatal error: error writing to x.s: No space left on device' >&2; exit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("SPECC_CACHE", str(tmp_path))
    with pytest.raises(SpecError, match="E502.*: No space left on device\n  help: "):
        host.build_wrapper("")


def test_a_compiler_is_tried_once() -> None:
    host._try.cache_clear()
    assert host.compiler() == host.compiler()
    assert host._try.cache_info().misses == 1


def test_what_does_not_compile_is_told_by_its_first_error() -> None:
    text = emit(NORM).replace("[&](auto element) {", "[&](auto element) { first_wrong(); second_wrong();")
    line = next(n for n, own in enumerate(text.splitlines(), 1) if "first_wrong" in own)
    with pytest.raises(host.HostCompileError, match=rf"^kernel\.cu:{line}:\d+: error: .*first_wrong") as raised:
        host.build_wrapper(text)
    assert "\n" not in str(raised.value) and "second_wrong" in raised.value.log


def test_a_target_that_fails_is_told_in_one_line(bare: pytest.MonkeyPatch) -> None:
    bare.undo()
    module = "specc.targets.cuda.target.emit"
    bare.setattr(
        module, lambda *a, **k: emit(*a, **k).replace("    const int lane", "    first_wrong();\n    const int lane")
    )
    node = specc.load(shipped("specs") / "gemma3_270m.spec").reduced(hidden=48).node("layers[*].input_norm")
    with pytest.raises(SpecError, match=r"HostCompileError: kernel\.cu:\d+:\d+: error: .*first_wrong") as raised:
        node.run("cuda", x=np.ones((2, 48)), w=np.ones(48))
    assert "\\n" not in str(raised.value)
