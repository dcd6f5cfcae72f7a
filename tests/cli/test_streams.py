"""What is printed can be printed: whatever the encoding of the terminal, and whatever is in a name."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from specc.cli import check, run
from specc.cli.output import print_json
from specc.cli.watch import Watch
from specc.inputs import Options

ROOT = Path(__file__).parents[2]
MODEL = "google/gemma-4-31B"


def specc(encoding: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    return subprocess.run([sys.executable, "-m", "specc", *arguments], capture_output=True, env=environment, timeout=60)


@pytest.mark.parametrize("encoding", ["ascii", "utf-8:strict"])
def test_a_page_is_printed_in_every_encoding(encoding: str) -> None:
    done = specc(encoding, "show", f"{MODEL}@1.0:layers[0].input_norm")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"rmsnorm" in done.stdout


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_name_that_is_no_unicode_is_spelt_out(option: list[str]) -> None:
    done = specc("utf-8", "show", "\udcff.spec", *option)
    assert done.returncode == 2 and b"Traceback" not in done.stderr
    if option:
        assert "\udcff.spec" in json.loads(done.stdout)["errors"][0]["message"]
    else:
        assert b"udcff.spec" in done.stderr


def test_a_number_that_json_has_no_form_for_is_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"found": [float("nan"), 1.5, (float("-inf"), 3)]})
    assert json.loads(capsys.readouterr().out) == {"found": ["nan", 1.5, ["-inf", 3]]}


COMMANDS = {
    "show": ["show", MODEL],
    "version": ["--version"],
    "build": ["build", MODEL, "--out", "out", "--target", "torch"],
    "watch": ["build", "tiny.spec", "--out", "out", "--target", "torch", "--watch"],
    "json": ["show", "none", "--json"],
}


def shell(folder: Path, redirect: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`specc ARGUMENTS REDIRECT`, run in `folder`."""
    command = f"{shlex.join([sys.executable, '-m', 'specc', *arguments])} {redirect}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A folder with the small example."""
    for name in ("tiny.spec", "own.ops"):
        (tmp_path / name).write_text((ROOT / "docs" / "examples" / name).read_text())
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_under_the_report_is_a_message(tiny: Path, command: str) -> None:
    done = shell(tiny, "> /dev/full", *COMMANDS[command])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error[E502]: cannot write the report: No space left on device\n"


@pytest.mark.parametrize("redirect", ["2> /dev/full", "> /dev/full 2> /dev/full", "> /dev/full 2>&-", "2>&-"])
def test_a_message_that_cannot_be_written_changes_no_status(tiny: Path, redirect: str) -> None:
    done = shell(tiny, redirect, "show", "none.spec")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


@pytest.mark.parametrize(("command", "status"), [("show", 0), ("version", 0), ("build", 0), ("json", 2)])
def test_a_closed_output_is_nothing_to_write_to(tiny: Path, command: str, status: int) -> None:
    done = shell(tiny, ">&-", *COMMANDS[command])
    assert (done.returncode, done.stderr) == (status, "")


SLOW = """
import builtins, os, runpy, signal, sys
real, name, entry = builtins.__import__, sys.argv[1], sys.argv[2]

def interrupted(wanted, *rest, **named):
    if wanted == name:
        os.kill(os.getpid(), signal.SIGINT)
    return real(wanted, *rest, **named)

builtins.__import__ = interrupted
sys.argv = ["specc", "show", "google/gemma-4-31B"]
if entry == "module":
    runpy.run_module("specc", run_name="__main__")
else:
    from importlib.metadata import EntryPoint
    EntryPoint("specc", entry, "console_scripts").load()()
"""
"""`specc`, interrupted when it is about to import a module."""
ENTRY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["specc"]


@pytest.mark.parametrize("entry", ["module", ENTRY])
@pytest.mark.parametrize("moment", ["specc.cli", "typer", "specc.page", "specc.lowered"])
def test_an_interrupt_ends_the_command_without_a_word(entry: str, moment: str) -> None:
    done = subprocess.run([sys.executable, "-c", SLOW, moment, entry], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


HOSTILE = "a\x1b[31m\nb\u202e"
SHOWN = "a\\x1b[31m\\nb\\u202e"


@pytest.fixture
def hostile(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small example in a folder whose name a terminal would obey, which is the current one's."""
    monkeypatch.chdir(tiny)
    folder = tiny / HOSTILE
    folder.mkdir()
    for name in ("tiny.spec", "own.ops"):
        (tiny / name).rename(folder / name)
    return Path(HOSTILE)


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("fmt {}/tiny.spec", 0),
        ("fmt --check {}/tiny.spec", 1),
        ("build {}/tiny.spec --target torch --out {}/out", 0),
        ("build {}/tiny.spec --target torch --out {}/out --check", 1),
        ("check {}/tiny.spec --node add1 --target torch --examples 0 --seed 1", 0),
        ("show {}/tiny.spec", 0),
    ],
)
def test_a_report_shows_names_without_what_a_terminal_obeys(
    hostile: Path, capsys: pytest.CaptureFixture[str], command: str, status: int
) -> None:
    spec = hostile / "tiny.spec"
    if "fmt" in command:
        spec.write_text(spec.read_text().replace("hidden = 96", "hidden   = 96"))
    scrap = hostile / "out" / "tiny" / f".{HOSTILE}.specc-new"
    if "--check" in command:
        scrap.parent.mkdir(parents=True)
        scrap.write_text("half")
    assert run([word.format(hostile, hostile) for word in command.split(" ")]) == status
    out, err = capsys.readouterr()
    assert err == "" and all(c.isprintable() or c in "\n\t" for c in out)
    assert "show" in command or "check {}" in command or SHOWN in out
    assert HOSTILE.splitlines()[1] not in out


def test_the_list_of_models_shows_paths_without_what_a_terminal_obeys(
    hostile: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (hostile / "tiny.spec").rename(f"{HOSTILE}.spec")
    assert run(["list"]) == 0
    assert f"  example/tiny@1.0  {SHOWN}.spec\n" in capsys.readouterr().out


def test_a_watch_names_its_files_without_what_a_terminal_obeys(
    hostile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Watch(hostile / "tiny.spec", hostile / "out", Options(("torch",)), sleep=stop).run()
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith(f"watching {SHOWN}/tiny.spec, {SHOWN}/own.ops")


def test_the_command_that_replays_a_counterexample_is_shown_without_what_a_terminal_obeys() -> None:
    case = SimpleNamespace(describe=lambda: "case", dtype="float32")
    worst = SimpleNamespace(case=case, describe=lambda: "worst")
    kernel = SimpleNamespace(name="add1", phase="decode")
    report: Any = SimpleNamespace(
        status="REFUTED", target="torch", kernel=kernel, outcomes=(), used=2.0, vacuity=None, shared="", reason="",
        dtypes=("float32",), evidence="run", counterexample=worst,
    )  # fmt: skip
    text = check.line(report, Path(HOSTILE, "add1.npz"), f"{HOSTILE}/tiny.spec:add1")
    assert f"'{SHOWN}/tiny.spec:add1'" in text and f"'{SHOWN}/add1.npz'" in text
    assert all(c.isprintable() or c == "\n" for c in text)
