"""`specc build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from specc import pipeline
from specc.cli.options import Json, Tiles
from specc.cli.output import BAD_INPUT, FAILED, count, diagnostic_values, print_json, print_warnings
from specc.diagnostics import Collector, Diagnostic, SpecError, nearest
from specc.echo import visible
from specc.emit import Drift
from specc.inputs import TARGETS, Options
from specc.models import find_model
from specc.pipeline import Build

Specs = Annotated[
    list[str], typer.Argument(metavar="SPEC…", help="Model Specs: specs/gemma4.spec, google/gemma-4-31B.")
]


def build(
    names: Specs,
    target: Annotated[list[str], typer.Option(help="triton, torch or cuda; again for more; none means all.")] = [],  # noqa: B006
    out: Annotated[Path, typer.Option(help="Where the folder of the model goes.")] = Path("generated"),
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if a build would.")] = False,
    compile: Annotated[
        list[str], typer.Option(metavar="ARCH", help="Also compile for sm_80, sm_90, sm_100; no GPU is needed.")
    ] = [],  # noqa: B006
    tiles: Tiles = None,
    dump_stage: Annotated[str | None, typer.Option(help="Print syntax, model, kernels or files, and stop.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Build again on every save, until Ctrl-C.")] = False,
    json: Json = False,
) -> None:
    """Write the kernels, the reference model and the page of Model Specs."""
    options, specs = Options(chosen_targets(target), tiles), chosen_specs(names, out)
    if compile:
        from specc.ahead import check_archs

        check_archs(compile)
    if watch or dump_stage is not None:
        if len(specs) > 1:
            raise typer.BadParameter("--watch and --dump-stage take one spec")
        if watch and (check or compile or dump_stage is not None or json):
            raise typer.BadParameter("--watch goes with --target, --out and --tiles only")
        _follow(specs[0], out, options, dump_stage)
        return
    reports: list[dict[str, object]] = []
    faults = Collector()
    for spec in specs:
        try:
            reports.append(_one(spec, out, options, check, tuple(dict.fromkeys(compile)), json))
        except SpecError as error:
            faults.take(error)
    if reports and faults.found and json:
        errors = [diagnostic_values(d) for d in SpecError(faults.found).diagnostics]
        print_json({"ok": False, "errors": errors, "specs": reports})
        raise typer.Exit(BAD_INPUT)
    faults.finish()
    ok = all(report["ok"] for report in reports)
    if json:
        print_json(reports[0] if len(reports) == 1 else {"ok": ok, "specs": reports})
    if not ok:
        raise typer.Exit(FAILED)


def chosen_specs(names: list[str], out: Path) -> tuple[Path, ...]:
    """The specs that `names` mean, each once. Raises SpecError; E503 where two would be built into one folder."""
    folders: dict[Path, Path] = {}
    for spec in dict.fromkeys(map(find_model, names)):
        folder = pipeline.folder_of(spec, out)
        other = folders.setdefault(folder, spec)
        if other != spec and not _same_file(other, spec):
            message = f"`{other}` and `{spec}` would both be built into `{folder}`"
            raise SpecError([Diagnostic("E503", message, None, "give one of them another name")])
    return tuple(folders.values())


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one that is not there, or cannot be reached
        return False


def _follow(spec: Path, out: Path, options: Options, dump_stage: str | None) -> None:
    if dump_stage is not None:
        print(pipeline.dump(spec, dump_stage, options), end="")
        return
    from specc.cli.watch import watch as build_on_save

    build_on_save(spec, out, options)


def _one(
    spec: Path, out: Path, options: Options, check: bool, archs: tuple[str, ...], quiet: bool
) -> dict[str, object]:
    report = _check(spec, out, options, quiet) if check else _build(spec, out, options, quiet)
    if not archs:
        return report
    from specc.cli.compile import compile_all

    compiled = compile_all(spec, archs, options, quiet)
    return {**report, **compiled, "ok": report["ok"] and compiled["ok"]}


def chosen_targets(names: list[str]) -> tuple[str, ...]:
    """The named targets, all when none is named. Raises SpecError (E505)."""
    unknown = [n for n in names if n not in TARGETS]
    if unknown:
        raise SpecError([Diagnostic("E505", f"there is no target `{n}`", None, nearest(n, TARGETS)) for n in unknown])
    return tuple(sorted(set(names))) or TARGETS


def _build(spec: Path, out: Path, options: Options, quiet: bool) -> dict[str, object]:
    done = pipeline.build(spec, out, options)
    print_warnings(done.warnings)
    if not quiet:
        print("\n".join([build_text(done), *kept_lines(done)]))
    return {"ok": True, **build_values(done)}


def build_values(done: Build) -> dict[str, object]:
    written = done.written
    return {
        "folder": str(done.folder),
        "files": list(done.files),
        "wrote": list(written.wrote) if written else [],
        "removed": list(written.removed) if written else [],
        "kept": list(written.kept) if written else [],
    }


def build_text(done: Build) -> str:
    """One line about a build."""
    head = f"{visible(str(done.folder))}: {count(len(done.files), 'file')}"
    if done.written is None or not (done.written.wrote or done.written.removed):
        return f"{head}, up to date"
    removed = f", {len(done.written.removed)} removed" if done.written.removed else ""
    return f"{head}, {len(done.written.wrote)} written{removed}"


def kept_lines(done: Build) -> list[str]:
    kept = done.written.kept if done.written else ()
    return [f"  kept {name}: its node is gone, but it was edited by hand" for name in kept]


def _check(spec: Path, out: Path, options: Options, quiet: bool) -> dict[str, object]:
    found = pipeline.drift(spec, out, options)
    folder = pipeline.folder_of(spec, out)
    if not quiet:
        print("\n".join([*map(_drift_text, found), _verdict(folder, found)]))
    return {"ok": not found, "folder": str(folder), "drift": [_drift_values(d) for d in found]}


def _drift_values(drift: Drift) -> dict[str, object]:
    return {"file": drift.name, "state": str(drift.state), "diff": drift.diff, "refused": drift.refused}


def _drift_text(drift: Drift) -> str:
    return f"{visible(drift.name)}: {drift.state}" + (f"\n{drift.diff}" if drift.diff else "")


def _verdict(folder: Path, found: tuple[Drift, ...]) -> str:
    place = visible(str(folder))
    if not found:
        return f"{place}: as built"
    head, refused = f"{place}: {count(len(found), 'file')} not as built", sum(drift.refused for drift in found)
    if not refused:
        return f"{head}; `specc build` repairs it"
    return (
        f"{head}; `specc build` would not replace {count(refused, 'file')}: move away what is there, or choose `--out`"
    )
