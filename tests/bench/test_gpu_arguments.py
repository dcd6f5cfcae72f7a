"""Arguments of `bench/gpu_check.py` with which nothing is checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--only typo_zzz", "no case has 'typo_zzz' in its `spec kernel target`"),
        ("--only norm[", "argument --only: 'norm[' is no regular expression: unterminated character set at position 4"),
        ("--cases none.npz", "argument --cases: 'none.npz' is not there"),
        ("--generated none", "argument --generated: 'none' is not there"),
        ("--device cudaa", "device string: cudaa"),
    ],
)
def test_arguments_that_choose_nothing_are_no_success_and_no_wrong_kernel(words: str, told: str) -> None:
    command = [sys.executable, str(BENCH / "gpu_check.py"), "--device", "cpu"]
    done = subprocess.run([*command, *words.split()], capture_output=True, text=True, timeout=120, cwd=BENCH.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"{told}\n") and "Traceback" not in done.stderr
