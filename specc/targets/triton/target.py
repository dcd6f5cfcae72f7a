"""The `triton` target: one file a kernel, and the runtime that their launchers share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specc.diagnostics import Diagnostic, SpecError
from specc.ir import Model
from specc.kernels import Kernel
from specc.lowered import Lowered, all_kernels
from specc.targets.triton.emit import emit, emit_runtime
from specc.targets.triton.tiles import TileTable, load_tiles

if TYPE_CHECKING:
    import torch

    from specc.targets.triton.interpret import Sampler, Trace

name = "triton"
PACKAGE = '"""Triton kernels: one module for each node, phase and variant; its launcher has the module\'s name."""\n'


def emit_model(model: Model, lowered: Sequence[Lowered], tiles: Path | None = None) -> Mapping[str, str]:
    """The files of a model. Raises SpecError: E401 for a node without kernel, and as `emit_all`."""
    return emit_all(all_kernels(lowered), tiles)


def emit_all(kernels: Sequence[Kernel], tiles: Path | None = None) -> Mapping[str, str]:
    """Texts by path below the target's folder: `__init__.py`, `launch.py`, and `NAME.py` for each kernel. Rows of the
    table `tiles` come before the shipped ones.

    Raises SpecError for a malformed table, where it has no tiles for a kernel, and where two files would have one name
    (E229); OSError for an unreadable table.
    """
    table = load_tiles(tiles)
    files = {"__init__.py": PACKAGE, "launch.py": emit_runtime()}
    for k in kernels:
        path = f"{k.name}.py"
        if path in files:
            message = f"two files would be called `{path}`; the second is the kernel of {', '.join(k.keys) or k.op}"
            raise SpecError([Diagnostic("E229", message, None, "rename its node")])
        files[path] = emit(k, table)
    return dict(sorted(files.items()))


def run(
    kernel: Kernel,
    tensors: Mapping[str, torch.Tensor],
    programs: Sampler | None = None,
    widen: bool = False,
    text: str | None = None,
    table: TileTable | None = None,
) -> tuple[dict[str, torch.Tensor], Trace]:
    """Runs the launcher of `text` (what `emit` prints with the tiles of `table`, if None) in the interpreter; see
    `run.run_text`."""
    from specc.targets.triton.run import run_text

    return run_text(kernel, emit(kernel, table) if text is None else text, tensors, programs, widen)
