"""A node that runs in several threads at once gives what it gives alone, on every target."""

from __future__ import annotations

import subprocess
import sys

import pytest

from specc.inputs import TARGETS
from specc.resources import shipped

SCRIPT = """
import sys, threading
import numpy as np, specc

spec, target = sys.argv[1:]
sys.setswitchinterval(1e-5)
reduced = specc.load(spec).reduced(hidden=48)
nodes = [reduced.node("layers[*].input_norm"), reduced.node("final_norm")]
given = {"x": np.random.default_rng(0).standard_normal((16, 48)), "w": np.ones(48)}
found = []

def work():
    try:
        for _ in range(4):
            for n in nodes:
                found.append((n.path, n.run(target, **given)["y"]))
    except BaseException as error:
        found.append(("error", repr(error)))

threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
alone = {n.path: n.run(target, **given)["y"] for n in nodes}
wrong = [y if path == "error" else path for path, y in found if path == "error" or not np.array_equal(y, alone[path])]
print(len(found), wrong)
"""


@pytest.mark.parametrize("target", TARGETS)
def test_threads_do_not_disturb_each_other(target: str) -> None:
    command = [sys.executable, "-c", SCRIPT, str(shipped("specs") / "gemma3_270m.spec"), target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "32 []\n"), done.stderr
