"""A command that is kept ends as it does alone, and nothing that it started outlives it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specc.verify.user import KEEPER

ESCAPE = """
import ctypes, pathlib, os, sys, time
libc = ctypes.CDLL(None)
if libc.fork() == 0:
    libc.setsid()
    if libc.fork() == 0:
        pathlib.Path(sys.argv[1] + ".part").write_text(str(os.getpid()))
        os.rename(sys.argv[1] + ".part", sys.argv[1])
        time.sleep(60)
    time.sleep(60)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
"""


def keep(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*KEEPER, sys.executable, "-I", "-S", "-c", *command])


@pytest.mark.parametrize("status", [0, 7, -signal.SIGSEGV, -signal.SIGTERM, -signal.SIGPIPE, -signal.SIGKILL])
def test_the_status_is_that_of_the_command(status: int) -> None:
    end = f"os._exit({status})" if status >= 0 else f"os.kill(os.getpid(), {-status})"
    as_usual = f"{status} in (0, 7, -9) or signal.signal({-status}, signal.SIG_DFL)"
    assert keep(f"import os, signal; {as_usual}; {end}").wait() == status


@pytest.mark.parametrize("rest", ["", "time.sleep(60)"])
def test_what_left_the_session_is_ended_too(rest: str, tmp_path: Path) -> None:
    """`rest`: the command is still running when it is told to end."""
    before, written = time.monotonic(), tmp_path / "pid"
    process = keep(ESCAPE + rest, str(written))
    while not written.exists() and process.poll() is None:
        time.sleep(0.01)
    if rest:
        process.terminate()
    assert process.wait() == 0
    assert not Path("/proc", written.read_text()).exists()
    assert time.monotonic() - before < 60
