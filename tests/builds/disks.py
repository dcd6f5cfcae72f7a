"""Disks that are full or read-only, for real: a small file system in memory, in a namespace of its own."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

SPACE = ["unshare", "--mount", "--propagation", "private"]
"""As root."""
OWN_SPACE = ["unshare", "--user", "--map-root-user", "--mount"]
"""As anybody, where the system allows it."""


@cache
def space() -> tuple[str, ...] | None:
    """The command before one that may mount, or None where nobody may."""
    for way in (SPACE, OWN_SPACE):
        try:
            done = subprocess.run([*way, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
        except FileNotFoundError:
            continue
        if done.returncode == 0:
            return tuple(way)
    return None


def on_disk(disk: Path, script: str, size: str = "64k") -> subprocess.CompletedProcess[bytes]:
    """Runs `script` (of a shell) with a file system of `size` mounted at `disk`, which goes with the script."""
    way = space()
    assert way is not None
    mount = f"mount -t tmpfs -o size={size} none '{disk}'"
    return subprocess.run([*way, "sh", "-c", f"set -e; {mount}; {script}"], capture_output=True, timeout=120)


LIMITED = """
import resource, runpy, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.argv[:] = ["specc", *sys.argv[2:]]
runpy.run_module("specc", run_name="__main__")
"""
"""Where nobody may mount: the kernel ends every write past so many bytes of a file, in its middle."""


def limited(most: int, *arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", LIMITED, str(most), *map(str, arguments)]


UNPRIVILEGED = """
import os, runpy, sys
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.argv[:] = ["specc", *sys.argv[1:]]
runpy.run_module("specc", run_name="__main__")
"""
"""A build that modes apply to."""


def unprivileged(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", UNPRIVILEGED, *map(str, arguments)]
