"""`specc eval`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specc.cli.options import Gpu, Json, Tiles
from specc.cli.output import FAILED, print_errors, print_json
from specc.diagnostics import Diagnostic, SpecError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from specc.api import Node


class Target(StrEnum):
    ORACLE = "oracle"
    TORCH = "torch"
    TRITON = "triton"
    CUDA = "cuda"


def evaluate(
    key: Annotated[str, typer.Argument(metavar="KEY", help="google/gemma-4-31B@1.0:layers[5].attn.core")],
    inputs: Annotated[Path, typer.Option(metavar="IN.npz", help="An array for each operand, by name.")],
    target: Annotated[Target, typer.Option(help="oracle: the definition in float64.")] = Target.ORACLE,
    dtype: Annotated[
        str, typer.Option(help="Storage of the targets: bfloat16, float16, float32; torch also float64.")
    ] = "float32",
    phase: Annotated[str | None, typer.Option(help="prefill or decode; that of the node's op when not given.")] = None,
    output: Annotated[Path | None, typer.Option(metavar="OUT.npz", help="Where the results go.")] = None,
    tiles: Tiles = None,
    gpu: Gpu = None,
    json: Json = False,
) -> None:
    """Compute one node on given operands."""
    from specc.api import checked_tables, load
    from specc.models import split_name

    model, path = split_name(key)
    if path is None:
        raise SpecError([Diagnostic("E280", f"`{key}` names no node", None, "write `MODEL@VERSION:NODE`")])
    node = load(model).node(path)
    arrays = _operands(read_arrays(inputs), node, phase)
    if target is Target.ORACLE:
        checked_tables(target, dtype, tiles, gpu)
        found = node.oracle(arrays, phase=phase)
    else:
        found = _run(node, target, json, arrays, dtype=dtype, phase=phase, tiles=tiles, gpu=gpu)
    if output is not None:
        _save(output, found)
    values = {name: array_values(array) for name, array in found.items()}
    if json:
        print_json({"ok": True, "node": node.key, "target": str(target), "results": values})
    else:
        print("\n".join(_line(name, v) for name, v in values.items()))


def _run(
    node: Node, target: Target, as_json: bool, arrays: Mapping[str, Any], **options: Any
) -> dict[str, npt.NDArray[np.float64]]:
    """Ends the command with FAILED when it is the target that fails: a counterexample can be just that."""
    try:
        return node.run(target, arrays, **options)
    except SpecError as error:
        if any(d.code != "E510" for d in error.diagnostics):
            raise
        print_errors(error, as_json)
        raise typer.Exit(FAILED) from error


def _operands(arrays: dict[str, npt.NDArray[Any]], node: Node, phase: str | None) -> dict[str, npt.NDArray[Any]]:
    """Operands as given, or drawn again from the case of a counterexample. Raises SpecError (E501)."""
    from specc.evidence.counterexample import case_of
    from specc.evidence.draw import draw

    try:
        case = case_of(arrays)
        return arrays if case is None else {name: d.exact for name, d in draw(node.kernel(phase), case).items()}
    except (ValueError, KeyError, TypeError) as error:
        raise SpecError([Diagnostic("E501", f"the case does not fit `{node.path}`: {error}")]) from error


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an .npz file. Raises SpecError (E501)."""
    import zipfile

    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in sorted(found.files)}
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SpecError([Diagnostic("E501", f"cannot read `{path}`: {reason}")]) from error
    except (ValueError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        help_ = "`numpy.savez` writes one, with an array for each operand by its name"
        raise SpecError([Diagnostic("E501", f"`{path}` is no .npz archive of arrays", None, help_)]) from error


def _save(path: Path, arrays: Mapping[str, npt.NDArray[np.float64]]) -> None:
    from specc.archive import write_arrays

    try:
        with path.open("wb") as file:
            write_arrays(file, {name: arrays[name] for name in sorted(arrays)})
    except OSError as error:
        raise SpecError([Diagnostic("E502", f"cannot write `{path}`: {error.strerror}")]) from error


def array_values(array: npt.NDArray[np.float64]) -> dict[str, object]:
    """What a report says of an array."""
    import numpy as np

    finite = array[np.isfinite(array)]
    summary = {"min": finite.min(), "max": finite.max(), "rms": np.sqrt(np.mean(finite**2))} if finite.size else {}
    first = [float(x) if np.isfinite(x) else str(x) for x in array.ravel()[:8]]
    numbers = {name: float(value) for name, value in summary.items()}
    return {"shape": list(array.shape), **numbers, "not_finite": array.size - finite.size, "first": first}


def _line(name: str, values: dict[str, object]) -> str:
    first = values["first"]
    assert isinstance(first, list)
    shown = ", ".join(x if isinstance(x, str) else f"{x:.17g}" for x in first)
    return f"{name} {values['shape']}: {shown}"
