"""The `cuda` target: one CUDA C++ file a kernel, what they include, and a header of their launch wrappers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specc.diagnostics import Diagnostic, SpecError
from specc.ir import Model
from specc.kernels import Kernel
from specc.lowered import Lowered, all_kernels
from specc.targets.cuda.emit import RUNTIME, SPACE, emit, emit_runtime
from specc.targets.cuda.emit_recurrence import chunk_sizes
from specc.targets.cuda.emit_row_reduction import lanes
from specc.targets.cuda.header import declared, header
from specc.targets.cuda.names import namespace
from specc.targets.cuda.symbols import check_symbols, kernel_functions
from specc.targets.cuda.tiles import load_tiles, on_host
from specc.targets.tile_table import TileTable

if TYPE_CHECKING:
    import torch

    from specc.targets.cuda.session import Sampler, Trace

__all__ = ["chunk_sizes", "emit_model", "lanes", "name", "run"]

name = "cuda"


def emit_model(model: Model, lowered: Sequence[Lowered], tiles: Path | None = None) -> Mapping[str, str]:
    """The files of a model. Raises SpecError: E401 for a node without kernel, E229 where two kernels have a function of
    one name, and as `emit_all`."""
    kernels, space = all_kernels(lowered), namespace(model)
    check_symbols(lowered, lambda k: declared(k, space))
    files = emit_all(kernels, space, tiles)
    check_symbols(lowered, lambda k: kernel_functions(files[f"{k.name}.cu"]))
    return files


def emit_all(kernels: Sequence[Kernel], space: str = SPACE, tiles: Path | None = None) -> dict[str, str]:
    """Texts by path below the target's folder: `NAME.cu` for each kernel, `SPACE.h`, and what kernels include.

    Raises SpecError: E229 where two files would have one name, E901 and E902 for mistakes in `tiles`."""
    table = load_tiles(tiles)
    files = {name: emit_runtime(name) for name in RUNTIME}
    files[f"{space}.h"] = header(kernels, space)
    for k in kernels:
        path = f"{k.name}.cu"
        if path in files:
            message = f"two files would be called `{path}`; the second is the kernel of {', '.join(k.keys) or k.op}"
            raise SpecError([Diagnostic("E229", message, None, "rename its node")])
        files[path] = emit(k, space, table=table)
    return dict(sorted(files.items()))


def run(
    kernel: Kernel,
    tensors: Mapping[str, torch.Tensor],
    programs: Sampler | None = None,
    seed: int = 0,
    widen: bool = False,
    text: str | None = None,
    pitch: int | None = None,
    table: TileTable | None = None,
) -> tuple[dict[str, torch.Tensor], Trace]:
    """Runs `text` (what `emit` prints with the tiles of `table`, if None) on the CPU, with the tiles for CPUs where the
    table is not of one GPU; see `run.run_text`."""
    from specc.targets.cuda.run import run_text

    return run_text(
        kernel,
        emit(kernel, arch=on_host(table), table=table) if text is None else text,
        tensors,
        programs,
        seed,
        widen,
        pitch=pitch,
    )
