"""The report of `specc build --compile`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from specc.ahead import Compiled, compilable, compile_model
from specc.inputs import Options

HEADER = ("kernel", "arch", "rows", "warps", "stages", "registers", "spills", "shared", "128-bit", "tensor core")
WIDTHS = (40, 6, 6, 5, 6, 9, 6, 7, 8, 0)


def compile_all(spec: Path, archs: Sequence[str], options: Options, quiet: bool) -> dict[str, object]:
    """Compiles, prints a line as each launch is done, and gives the report as JSON values. Raises SpecError."""
    done: list[Compiled] = []
    targets = compilable(options)
    if not quiet:
        print(_line(HEADER))
    for one in compile_model(spec, archs, options, targets=targets):
        done.append(one)
        if not quiet:
            print(text(one), flush=True)
    bad = [one for one in done if not one.good]
    if not quiet:
        print(f"{len(done)} launches compiled, {len(bad)} not good")
    return {"ok": not bad, "compiled": [values(one) for one in done]}


def values(one: Compiled) -> dict[str, object]:
    """One launch as JSON values; spills in bytes a thread, shared memory in bytes a block."""
    report = {} if one.report is None else {**asdict(one.report), "accesses": dict(one.report.accesses)}
    fits = None if one.report is None else one.report.fits
    return {
        "file": one.file,
        "arch": one.arch,
        "rows": one.rows,
        "good": one.good,
        "fits": fits,
        "error": one.error,
        **report,
    }


def text(one: Compiled) -> str:
    """One line of the table."""
    r = one.report
    if r is None:
        return f"{one.file} {one.arch} rows {one.rows}: {one.error}"
    name = f"{one.file} {re.sub(f'^{re.escape(one.file)}_|kernel_?', '', r.kernel)}".rstrip()
    note = "" if r.fits else "  does not fit"
    spills, tensor_core = r.spill_stores + r.spill_loads, " ".join(r.tensor_core) or "-"
    cells = (
        name,
        one.arch,
        one.rows,
        r.num_warps,
        r.num_stages,
        r.registers,
        spills,
        r.shared_bytes,
        f"{sum(n for a, n in r.accesses if a.endswith('.128'))}/{sum(n for _, n in r.accesses)}",
        tensor_core + note,
    )
    return _line(cells)


def _line(cells: Sequence[object]) -> str:
    first, *rest = (str(c) for c in cells)
    return " ".join(
        [first.ljust(WIDTHS[0]), *(c.rjust(w) for c, w in zip(rest[:-1], WIDTHS[1:-1], strict=True)), rest[-1]]
    )
