"""Runs a command, and ends all that it leaves behind: `python -I -S keeper.py COMMAND…`, on Linux.

Processes that have left the command's session fall to this one, which ends them before it ends itself, as the command
did. So does SIGTERM, and the end of the process that started it. It imports nothing of specc: it starts at once.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

SET_PARENT_DEATH_SIGNAL, SET_CHILD_SUBREAPER = 1, 36
PRCTL = ctypes.CDLL(None).prctl


def children() -> list[int]:
    """The processes that this one started, or that fell to it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            _, parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            if int(parent) == os.getpid():
                found.append(int(folder.name))
    return found


def sweep() -> None:
    """Ends all children, and those of theirs that fall to this process by that, until there are none."""
    while True:
        for pid in children():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def main() -> None:
    """Ends as the command did: with its status, or by its signal."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    PRCTL(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    PRCTL(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        status = subprocess.Popen(
            sys.argv[1:],
            start_new_session=True,
            preexec_fn=lambda: PRCTL(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0),
        ).wait()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sweep()
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # SIGKILL has no other way
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main()
