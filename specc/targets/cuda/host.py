"""Kernels on the CPU: the generated files, built by a C++20 compiler against the host header, and run as fibers."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from specc.diagnostics import Diagnostic, SpecError
from specc.echo import visible
from specc.resources import shipped
from specc.storage import replace_file

HEADERS = (
    "specc_device.cuh",
    "specc_launch.cuh",
    "specc_tile.cuh",
    "host/specc_host.h",
    "host/specc_numbers.h",
    "host/specc_matrix.h",
)
RUNTIME = ("host/specc_schedule.cpp", "host/specc_memory.cpp")
COMMON = ("-std=c++20", "-O1", "-fPIC", "-g0", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror")
WATCHED = (
    "-fsanitize=thread", "-fsanitize=signed-integer-overflow,shift,bounds,alignment,integer-divide-by-zero",
)  # fmt: skip
GNU_ONLY = (
    "-fno-gnu-unique", "-fno-thread-jumps", "-fstack-reuse=none", "--param", "tsan-instrument-func-entry-exit=0",
)  # fmt: skip
INSTRUMENTED = ("-x", "c++", *WATCHED, "-Wno-unknown-pragmas")
"""Every memory access is a call of the runtime, and so is integer arithmetic that C++ leaves undefined."""


class HostCompileError(RuntimeError):
    """A kernel file does not compile on the CPU."""


@cache
def compiler() -> tuple[str, ...]:
    """The command of a C++20 compiler: CXX, else the system's, else that of the `ziglang` package.

    Raises SpecError (E509)."""
    own = os.environ.get("CXX", "").split()
    if own and shutil.which(own[0]) is None:
        raise _no_compiler(f"this needs a C++20 compiler, and CXX names `{visible(own[0])}`, which is not there")
    if own:
        return tuple(own)
    for name in ("g++", "c++", "clang++"):
        found = shutil.which(name)
        if found:
            return (found,)
    if _has_zig():
        return (sys.executable, "-m", "ziglang", "c++")
    raise _no_compiler("this needs a C++20 compiler")


def _no_compiler(message: str) -> SpecError:
    return SpecError([Diagnostic("E509", message, None, "install g++ or clang++, or pip install 'specc[cuda]'")])


def _has_zig() -> bool:
    from importlib.util import find_spec

    return find_spec("ziglang") is not None


@cache
def _version() -> str:
    done = subprocess.run([*compiler(), "--version"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else " ".join(compiler())


def cache_folder() -> Path:
    """Where built kernels stay from run to run."""
    base = os.environ.get("SPECC_CACHE") or os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "specc" / "cuda-host"


@cache
def _header_text() -> str:
    root = shipped("templates") / "cuda"
    return "".join((root / name).read_text(encoding="utf-8") for name in (*HEADERS, *RUNTIME, "host/specc_runtime.h"))


def flags() -> tuple[str, ...]:
    """Arguments for a kernel file."""
    # Clang keeps local arrays in registers, where the NaN of a fiber's stack does not reach.
    own = ("-ftrivial-auto-var-init=pattern",) if "clang" in _version() else GNU_ONLY
    return (*INSTRUMENTED, *own)


def build(text: str, wide: bool = False) -> Path:
    """The library of a kernel file, built once for each text. `wide`: everything in float64.

    Raises SpecError (E509) where there is no compiler, and HostCompileError."""
    return _built({"kernel.cu": _bounded(text)}, (*COMMON, "-O1", *flags(), *(("-DSPECC_ACC=double",) if wide else ())))


def _bounded(text: str) -> str:
    """A kernel file in which every kernel with launch bounds holds its launches against them first. No line moves."""
    parts, at = [], 0
    for kernel in _BOUNDS.finditer(text):
        depth, end = 1, kernel.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        body = re.compile(r"\s*\{").match(text, end)
        if body:
            parts += [text[at : body.end()], f" specc_host::check_bounds({kernel['bounds']});"]
            at = body.end()
    return "".join([*parts, text[at:]])


_BOUNDS = re.compile(r"__launch_bounds__\((?P<bounds>(?:[^()]|\([^()]*\))*)\)\s+\w+\(")


def build_wrapper(text: str) -> Path:
    """The library of a kernel file, for its launch wrapper and tables alone: quickly built, and nothing is watched.

    Raises as `build`."""
    return _built({"kernel.cu": text}, (*COMMON, "-O0", *(f for f in flags() if f not in WATCHED)))


def _built(sources: Mapping[str, str], arguments: Sequence[str]) -> Path:
    """The library of `sources` in the cache. It is linked apart, without what instrumentation would bring along."""
    key = "\0".join([_version(), *arguments, _header_text(), *sources.values()])
    target = cache_folder() / f"{sha256(key.encode()).hexdigest()[:32]}.so"
    if target.exists():
        return target
    include = shipped("templates") / "cuda"
    with tempfile.TemporaryDirectory(prefix="specc-cuda-") as name:
        folder = Path(name)
        for file, text in sources.items():
            (folder / file).write_text(text, encoding="utf-8")
            _call([*arguments, f"-I{include}", f"-I{include / 'host'}", "-c", file, "-o", f"{file}.o"], folder)
        _call(["-shared", "-Wl,-Bsymbolic", *(f"{file}.o" for file in sources), "-o", "library.so"], folder)
        replace_file(target, (folder / "library.so").read_bytes())
    return target


def _call(arguments: Sequence[str], folder: Path) -> None:
    done = subprocess.run([*compiler(), *arguments], capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise HostCompileError(done.stderr.strip()[-4000:])


@cache
def runtime() -> ctypes.CDLL:
    """The runtime that all kernels share. Raises SpecError (E509) where there is no compiler, and HostCompileError."""
    root = shipped("templates") / "cuda"
    sources = {Path(name).name: (root / name).read_text(encoding="utf-8") for name in RUNTIME}
    path = _built(sources, (*COMMON, "-O2"))
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    library.specc_host_failure.restype = ctypes.c_char_p
    library.specc_host_writes.restype = ctypes.c_void_p
    library.specc_host_slow_blocks.restype = ctypes.c_uint64
    return library


@cache
def load(path: Path) -> ctypes.CDLL:
    """A built kernel file."""
    runtime()
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)


def build_all(texts: Iterable[tuple[str, bool]], workers: int = 2) -> None:
    """Builds several kernel files at once. Raises as `build`."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda item: build(*item), texts))
