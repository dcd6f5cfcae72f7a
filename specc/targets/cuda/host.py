"""Kernels on the CPU: the generated files, built by a C++20 compiler against the host header, and run as fibers."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import RLock

from specc.diagnostics import Diagnostic, SpecError, writing
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


TRIAL = """#include <cmath>
template <typename T> requires(sizeof(T) == 4) T half(T x) { return std::ldexp(x, -1); }
float trial(float x) { return half(x); }
"""
"""A program that every C++20 compiler takes."""
LOADING = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"


class HostCompileError(RuntimeError):
    """A kernel file does not compile on the CPU: the first error. `log`: all that the compiler said."""

    def __init__(self, log: str) -> None:
        self.log = log.strip()
        super().__init__(first_error(self.log))


PLACES = "`SPECC_CACHE` and `TMPDIR` name other folders for built kernels and temporary files"


@writing("what is built", PLACES)
def compiler() -> tuple[str, ...]:
    """The command of a C++20 compiler that works. Raises SpecError (E502, E509)."""
    own = command()
    _try(own)
    return own


@cache
def _try(own: tuple[str, ...]) -> None:
    """Raises SpecError (E509) where the compiler does not compile a small program to a library that loads, and OSError
    where there is no room for that."""
    said = f"this needs a C++20 compiler, and `{visible(' '.join(own))}`"
    with tempfile.TemporaryDirectory(prefix="specc-cuda-") as name:
        try:
            _make({"trial.cpp": TRIAL}, (*COMMON, *flags()), Path(name), own)
            plain = _make({"trial.cpp": TRIAL}, COMMON, Path(name), own)
        except (HostCompileError, OSError) as error:
            if isinstance(error, OSError) and error.errno in FULL:
                raise
            raise _no_compiler(f"{said} does not compile a small program: {error}") from error
        try:
            _call([sys.executable, "-I", "-S", "-c", LOADING, str(plain)], Path(name))
        except HostCompileError as error:
            raise _no_compiler(f"{said} makes a library that does not load: {error}", FITTING) from error


FITTING = "let CXX name a compiler for this machine"


def command() -> tuple[str, ...]:
    """The command of a compiler, working or not: CXX, else the system's, else that of the `ziglang` package.

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


INSTALL = "install g++ or clang++, or pip install 'specc[cuda]'"


def _no_compiler(message: str, help: str = INSTALL) -> SpecError:
    return SpecError([Diagnostic("E509", message, None, help)])


def _has_zig() -> bool:
    from importlib.util import find_spec

    return find_spec("ziglang") is not None


@cache
def _version(own: tuple[str, ...]) -> str:
    try:
        done = subprocess.run([*own, "--version"], capture_output=True, text=True, errors="replace", check=False)
    except OSError:
        return " ".join(own)
    return done.stdout.splitlines()[0] if done.stdout else " ".join(own)


def cache_folder() -> Path:
    """Where built kernels stay from run to run. Raises OSError where there is no place for them."""
    base = os.environ.get("SPECC_CACHE") or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if base.startswith("~"):
        raise FileNotFoundError(errno.ENOENT, "there is no home folder", base)
    return Path(base) / "specc" / "cuda-host"


@cache
def _header_text() -> str:
    root = shipped("templates") / "cuda"
    return "".join((root / name).read_text(encoding="utf-8") for name in (*HEADERS, *RUNTIME, "host/specc_runtime.h"))


def flags() -> tuple[str, ...]:
    """Arguments for a kernel file."""
    # Clang keeps local arrays in registers, where the NaN of a fiber's stack does not reach.
    own = ("-ftrivial-auto-var-init=pattern",) if "clang" in _version(command()) else GNU_ONLY
    return (*INSTRUMENTED, *own)


def build(text: str, wide: bool = False) -> Path:
    """The library of a kernel file, built once for each text. `wide`: everything in float64.

    Raises SpecError (E509) where there is no compiler and (E502) where nothing can be written, and HostCompileError."""
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


@writing("what is built", PLACES)
def _built(sources: Mapping[str, str], arguments: Sequence[str]) -> Path:
    """The library of `sources` in the cache. It is linked apart, without what instrumentation would bring along."""
    key = "\0".join([_version(command()), *arguments, _header_text(), *sources.values()])
    target = cache_folder() / f"{sha256(key.encode()).hexdigest()[:32]}.so"
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(prefix="specc-cuda-") as name:
        library = _make(sources, arguments, Path(name), compiler())
        replace_file(target, library.read_bytes())
    return target


def _make(sources: Mapping[str, str], arguments: Sequence[str], folder: Path, own: Sequence[str]) -> Path:
    """The library of `sources`, in `folder`. Raises HostCompileError, and OSError where there is no such program or no
    room."""
    include = shipped("templates") / "cuda"
    for file, text in sources.items():
        (folder / file).write_text(text, encoding="utf-8")
        _call([*own, *arguments, f"-I{include}", f"-I{include / 'host'}", "-c", file, "-o", f"{file}.o"], folder)
    _call([*own, "-shared", "-Wl,-Bsymbolic", *(f"{file}.o" for file in sources), "-o", "library.so"], folder)
    if not (folder / "library.so").is_file():
        raise HostCompileError("it writes no library")
    return folder / "library.so"


def _call(arguments: Sequence[str], folder: Path) -> None:
    english = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(
        arguments, capture_output=True, text=True, errors="replace", check=False, cwd=folder, env=english
    )
    if done.returncode:
        said = (done.stderr + done.stdout).strip()
        lacking = next((n for n in FULL if os.strerror(n) in said), None)
        if lacking is not None:
            raise OSError(lacking, os.strerror(lacking), str(folder))
        raise HostCompileError(said or f"it ends with status {done.returncode} and says nothing")


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)
"""What a compiler, too, may say of the place that it writes to."""


def first_error(log: str) -> str:
    """Of what a compiler said: its first error, with file and line, and the text there where the log shows it."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    found = next((n for n, line in enumerate(lines) if _ERROR.search(line)), None)
    if found is None:
        return lines[-1] if lines else log
    shown = _SHOWN.match(lines[found + 1]) if found + 1 < len(lines) else None
    return f"{lines[found]}: `{shown['text']}`" if shown else lines[found]


_ERROR = re.compile(r"\berror\b|undefined (reference|symbol)", re.IGNORECASE)
_SHOWN = re.compile(r"\d+ \| *(?P<text>.*\S)")


RUNTIME_LOCK = RLock()
"""Held as long as the runtime, which has one state for the whole process, is loaded or used. ctypes lets other threads
run meanwhile."""


@cache
def runtime() -> ctypes.CDLL:
    """The runtime that all kernels share. Raises SpecError (E509) where there is no compiler, or what it makes does not
    load, and HostCompileError."""
    root = shipped("templates") / "cuda"
    sources = {Path(name).name: (root / name).read_text(encoding="utf-8") for name in RUNTIME}
    with RUNTIME_LOCK:
        library = _opened(_built(sources, (*COMMON, "-O2")), ctypes.RTLD_GLOBAL)
    library.specc_host_failure.restype = ctypes.c_char_p
    library.specc_host_writes.restype = ctypes.c_void_p
    library.specc_host_slow_blocks.restype = ctypes.c_uint64
    return library


@cache
def load(path: Path) -> ctypes.CDLL:
    """A built kernel file. Raises as `runtime`, and HostCompileError for one that calls what is nowhere defined."""
    with RUNTIME_LOCK:
        runtime()
        return _opened(path, ctypes.RTLD_LOCAL)


def _opened(path: Path, mode: int) -> ctypes.CDLL:
    """A library in the cache, which keeps none that does not load."""
    try:
        return ctypes.CDLL(str(path), mode=mode)
    except OSError as error:
        with suppress(OSError):
            path.unlink()
        if _UNDEFINED.search(str(error)):
            raise HostCompileError(str(error)) from error
        said = f"a kernel that `{visible(' '.join(command()))}` has built does not load: {error}"
        raise _no_compiler(said, "it is no longer in the cache, and is built anew next time") from error


_UNDEFINED = re.compile(r"undefined symbol: (?!__)")
"""Names that begin with `__` are those of a compiler's own runtime."""


def build_all(texts: Iterable[tuple[str, bool]], workers: int = 2) -> None:
    """Builds several kernel files at once. Raises as `build`."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda item: build(*item), texts))
