"""Builds killed at any moment: no file is torn, `--check` says so, the next build ends where a clean one does."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from specc import pipeline
from specc.inputs import Options
from tests.builds.runs import command, environment, gemma, specc, tiny, tree, whole

Make = Callable[..., Path]
PAUSE = 0.05
"""Seconds before each file: a build of some twenty changed files is in the middle of writing for a second."""


class Case:
    """An old build, and what a new one would leave."""

    def __init__(self, make: Make, tmp_path: Path) -> None:
        self.make, self.folder = make, tmp_path
        self.out, self.clean = tmp_path / "out", tmp_path / "clean"
        make(tmp_path, edited=True)
        self.spec = self.built(self.out)
        self.old = tree(self.out)
        make(tmp_path)
        start = time.perf_counter()
        assert specc("build", self.spec, "--out", self.clean).returncode == 0
        self.seconds = time.perf_counter() - start
        self.new = tree(self.clean)

    def built(self, out: Path) -> Path:
        spec = next(self.folder.glob("*.spec"))
        pipeline.build(spec, out, Options())
        return spec

    def killed(self, moment: float, how: int, pause: float | None) -> bool:
        """Builds and sends a signal after `moment` seconds; whether the build ended by it."""
        process = subprocess.Popen(
            command("build", self.spec, "--out", self.out, pause=pause),
            env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        if pause is not None:
            self.wait_for_first_file(process)
        time.sleep(moment)
        process.send_signal(how)
        _, errors = process.communicate(timeout=60)
        assert b"Traceback" not in errors
        return process.returncode != 0

    def wait_for_first_file(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None and not any(self.out.rglob(".specc-journal")):
            time.sleep(0.002)

    def check(self) -> set[str]:
        return {str(d.state) for d in pipeline.drift(self.spec, self.out, Options())}

    def goes_on(self) -> set[str]:
        """What holds after a kill: whole files, a check that says what is wrong, a build that repairs it."""
        whole(self.out, self.old, self.new)
        named = self.check()
        assert bool(named) is (tree(self.out) != self.new)
        self.built(self.out)
        assert tree(self.out) == self.new
        assert not self.check()
        return named

    def goes_back(self) -> None:
        self.make(self.folder, edited=True)
        self.built(self.out)
        assert tree(self.out) == self.old
        self.make(self.folder)


def kills(case: Case, count: int, seed: int) -> None:
    """Half of them anywhere in a build, half of them while it writes."""
    chance = random.Random(seed)
    states: set[str] = set()
    for n in range(count):
        middle = n % 2 == 0
        moment = chance.uniform(0, PAUSE * 12 if middle else case.seconds)
        ended = case.killed(moment, signal.SIGKILL, PAUSE if middle else None)
        found = case.goes_on() if ended else set()
        states |= found
        case.goes_back()
    assert {"a build was interrupted", "stale"} <= states


def test_a_killed_build_of_a_small_spec_is_whole_and_repaired(tmp_path: Path) -> None:
    kills(Case(tiny, tmp_path), 12, seed=1)


@pytest.mark.slow
def test_30_killed_builds_are_whole_and_repaired(tmp_path: Path) -> None:
    kills(Case(gemma, tmp_path), 30, seed=2)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_build_that_is_told_to_stop_leaves_whole_files(how: int, tmp_path: Path) -> None:
    case = Case(tiny, tmp_path)
    assert case.killed(PAUSE * 4, how, PAUSE)
    assert "a build was interrupted" in case.goes_on()


def test_builds_at_once_with_other_options_do_not_mix(tmp_path: Path) -> None:
    case = Case(tiny, tmp_path)
    for target in ("torch", "triton"):
        pipeline.build(case.spec, tmp_path / target, Options(targets=(target,)))
    builds = [
        subprocess.Popen(
            command("build", case.spec, "--out", case.out, "--target", target, pause=0.01),
            env=environment(), stderr=subprocess.PIPE,
        )
        for target in ("torch", "triton", "torch")
    ]  # fmt: skip
    assert [b.wait(60) for b in builds] == [0] * len(builds), [b.communicate() for b in builds]
    assert tree(case.out) in (tree(tmp_path / "torch"), tree(tmp_path / "triton"))
