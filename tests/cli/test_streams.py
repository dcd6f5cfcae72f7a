"""What is printed can be printed: whatever the encoding of the terminal, and whatever is in a name."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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
