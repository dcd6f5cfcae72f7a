"""Generated texts as modules: kernels are jitted from the very files that a user gets."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import RLock
from types import ModuleType

from specc.diagnostics import writing
from specc.targets.triton.emit import emit_runtime


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where the files lie as long as the process lives: Triton reads a kernel's source from its file."""
    return tempfile.TemporaryDirectory(prefix="specc-triton-")


_LOADING = RLock()
"""Modules of one name are made by one thread at a time."""


@cache
def load_module(text: str, variant: str = "") -> ModuleType:
    """A kernel's file as a module, made once for each text. Modules of different `variant` share nothing, so that one
    can be changed. Raises SpecError (E502) where the file cannot be written."""
    with _LOADING:
        return _loaded(text, variant)


def _loaded(text: str, variant: str) -> ModuleType:
    digest = sha256(f"{variant}\n{text}\n{emit_runtime()}".encode()).hexdigest()[:16]
    package = f"specc_triton_{digest}"
    with writing("a temporary file", "`TMPDIR` names another folder for temporary files"):
        home = Path(_folder().name) / package
        home.mkdir(exist_ok=True)
        for name, content in (("__init__", ""), ("launch", emit_runtime()), ("kernel", text)):
            (home / f"{name}.py").write_text(content, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(package, home / "__init__.py", submodule_search_locations=[str(home)])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[package] = module
    spec.loader.exec_module(module)
    return importlib.import_module(f"{package}.kernel")


def runtime_of(module: ModuleType) -> ModuleType:
    """The `launch` module that a loaded kernel module uses."""
    return importlib.import_module(f"{module.__package__}.launch")
