"""`specc check`: the property suite, as a table."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specc import pipeline
from specc.cli.options import Gpu, Json, Tiles
from specc.cli.output import FAILED, print_json, print_warnings
from specc.diagnostics import Diagnostic, SpecError, nearest
from specc.echo import visible
from specc.inputs import read_source
from specc.models import find_model

if TYPE_CHECKING:
    from specc.api import Node
    from specc.evidence.check import Report
    from specc.ir import Model
    from specc.kernels import Kernel


def check(
    name: Annotated[str, typer.Argument(metavar="SPEC", help="A Model Spec: specs/gemma4.spec, google/gemma-4-31B.")],
    node: Annotated[list[str], typer.Option(metavar="PATH", help="Only this node; again for more.")] = [],  # noqa: B006
    target: Annotated[
        list[str], typer.Option(help="triton, torch or cuda; again for more. None means all that this machine can run.")
    ] = [],  # noqa: B006
    examples: Annotated[int, typer.Option(min=0, help="Drawn cases beside the pinned ones, per kernel.")] = 10,
    seed: Annotated[int | None, typer.Option(help="Seed of the drawn cases; a new one when not given.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for counterexamples.")] = Path("counterexamples"),
    tiles: Tiles = None,
    gpu: Gpu = None,
    json: Json = False,
) -> None:
    """Hold every kernel and reference function against the formulas, within derived bounds."""
    # The matrices are small: threads of NumPy's BLAS only get into each other's way.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from specc.evidence.counterexample import save
    from specc.evidence.suite import check_kernels

    number = _new_seed() if seed is None else seed
    spec = find_model(name)
    model = pipeline.load(spec)
    print_warnings(model.library.warnings)
    kernels, nodes = _kernels(model, node)
    targets, left_out = _targets(target)
    if tiles is not None:
        read_source(tiles)
        left_out |= {} if gpu else _tiles_left_out(tiles, targets)
    if not json:
        print(f"{model.key}@{model.version}: {len(kernels)} kernels, true constants, seed {number}", flush=True)
    options = [*(["--tiles", str(tiles)] if tiles else []), *(["--gpu", gpu] if gpu else [])]
    reports: list[Report] = []
    files: dict[int, Path] = {}
    for report in check_kernels(model, kernels, targets, examples, number, tiles=tiles, gpu=gpu):
        reports.append(report)
        if report.counterexample is not None and not report.shared:
            files[id(report)] = save(report, report.counterexample, out)
        if not json:
            key = nodes[report.kernel.name].key.partition(":")[2]
            print(line(report, files.get(id(report)), f"{spec}:{key}", options), flush=True)
    bad = [r for r in reports if r.status != "VERIFIED"]
    if json:
        found = [values(r, files.get(id(r)), nodes[r.kernel.name]) for r in reports]
        print_json({"ok": not bad, "seed": number, "not_checked": left_out, "reports": found})
    else:
        print("\n".join([summary(reports), *(f"{t} not checked: {why}" for t, why in left_out.items())]))
    if bad:
        raise typer.Exit(FAILED)


def _targets(names: list[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The targets to check, and why others are not: of those that nobody named, `cuda` needs a C++ compiler. Raises
    SpecError (E505, E509)."""
    from specc.cli.build import chosen_targets
    from specc.targets.cuda.host import compiler

    targets = chosen_targets(names)
    try:
        if "cuda" in targets:
            compiler()
    except SpecError as error:
        if names:
            raise
        (reason,) = error.diagnostics
        return tuple(t for t in targets if t != "cuda"), {"cuda": f"{reason.message}; {reason.help}"}
    return targets, {}


def _tiles_left_out(tiles: Path, targets: Sequence[str]) -> dict[str, str]:
    """Rows of a user's table that are for GPUs whose tiles no kernel has. Raises SpecError."""
    from specc.tiles import left_out

    found = left_out(tiles, targets)
    return {f"{target} tiles for {arch}": f"kernels have them with `--gpu {arch}`" for target, arch in found}


def _new_seed() -> int:
    import secrets

    return secrets.randbelow(2**32)


def _kernels(model: Model, paths: Sequence[str]) -> tuple[tuple[Kernel, ...], dict[str, Node]]:
    """The kernels of the nodes at `paths` (all, when there are none), and the node of each kernel."""
    from specc.api import Node
    from specc.lowered import all_kernels, lower_each

    known = dict.fromkeys(n.path for n in model.nodes)
    unknown = [p for p in paths if p not in known]
    if unknown:
        raise SpecError([Diagnostic("E281", f"there is no node `{p}`", None, nearest(p, known)) for p in unknown])
    lowered = lower_each(model, [n for n in model.nodes if not paths or n.path in paths])
    return all_kernels(lowered), {k.name: Node(model, x.node) for x in lowered for k in x.kernels}


def line(report: Report, file: Path | None, key: str, options: Sequence[str] = ()) -> str:
    """One kernel on one target; a refuted one takes three lines. `options`: those that say what its tiles are."""
    share = "-" if report.vacuity is None else f"{report.vacuity:.1e}"
    cases = f"as {report.shared}" if report.shared else f"{len(report.outcomes)} cases"
    text = (
        f"{report.status:<9}{report.target:<7} {report.kernel.name:<28} {cases:<22} error/bound {report.used:4.2f}  "
        f"bound/rms {share:<8} {'/'.join(report.dtypes)}  {report.evidence}"
    )
    if report.counterexample is not None:
        text += f"\n  counterexample: {report.counterexample.case.describe()}\n  {report.counterexample.describe()}"
    if file is not None:
        dtype = report.counterexample.case.dtype if report.counterexample else "float32"
        words = ["specc", "eval", key, "--phase", report.kernel.phase, "--inputs", str(file)]
        command = shlex.join([*words, "--target", report.target, "--dtype", dtype, *options])
        text += f"\n  replay: {visible(command)}"
    return text + (f"\n  {report.reason}" if report.status == "UNKNOWN" else "")


def values(report: Report, file: Path | None, node: Node) -> dict[str, Any]:
    """The report for a program."""
    from specc.format import format_value

    kernel, worst = report.kernel, report.counterexample
    shapes = sorted({", ".join(f"{n}={v}" for n, v in o.case.sizes) for o in report.outcomes})
    return {
        "kernel": kernel.name,
        "keys": list(kernel.keys),
        "op": kernel.op,
        "phase": kernel.phase,
        "target": report.target,
        "status": str(report.status),
        "reason": report.reason,
        "evidence": report.evidence,
        "same_as": report.shared or None,
        "constants": {name: format_value(value) for name, value in node.constants.items()},
        "reduced": False,
        "tensors": {o.name: _dims(o) for o in kernel.operands},
        "dtypes": list(report.dtypes),
        "shapes": shapes,
        "examples": len(report.outcomes),
        "error_over_bound": report.used,
        "bound_over_rms": report.vacuity,
        "counterexample": None if worst is None else {"case": worst.case.describe(), "found": worst.describe()},
        "file": None if file is None else str(file),
    }


def _dims(operand: Any) -> str:
    from specc.formula_text import dims_text

    return dims_text(operand.dims)


def summary(reports: Sequence[Report]) -> str:
    counts = {s: sum(r.status == s for r in reports) for s in ("VERIFIED", "REFUTED", "UNKNOWN")}
    return ", ".join(f"{n} {s}" for s, n in counts.items() if n) or "no kernels"
