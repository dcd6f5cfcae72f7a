from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from gpu_workers import spread  # noqa: E402


def begin(factor: int) -> Callable[[object], tuple[object, bool]]:
    """Multiplies; some tasks end the process, hang, or leave it unfit for more."""
    spoiled = []

    def work(task: object) -> tuple[object, bool]:
        assert not spoiled
        if task == "die":
            os._exit(7)
        if task == "hang":
            time.sleep(600)
        if task == "spoil":
            spoiled.append(task)
            return "spoiled", False
        assert isinstance(task, int)
        return factor * task, True

    return work


def test_a_task_that_ends_its_process_or_hangs_costs_no_other() -> None:
    tasks = [1, "die", 2, "spoil", 3, "hang", 4]
    found = list(spread(tasks, begin, (10,), 1, time.monotonic() + 300, 5.0))
    assert [task for task, _, _ in found] == tasks
    assert [answer for _, answer, _ in found] == [10, None, 20, "spoiled", 30, None, 40]
    assert [note for _, _, note in found if note] == ["its process ended with 7", "not done after 5 s"]


def test_two_processes_do_all_tasks() -> None:
    found = list(spread(range(9), begin, (2,), 2, time.monotonic() + 300, 60.0))
    assert sorted((task, answer) for task, answer, _ in found) == [(n, 2 * n) for n in range(9)]


def stillborn(factor: int) -> Callable[[object], tuple[object, bool]]:
    os._exit(factor)


def test_where_no_process_becomes_ready_it_says_so() -> None:
    with pytest.raises(RuntimeError, match="no process becomes ready: its process ended with 9"):
        list(spread([1, 2, 3], stillborn, (9,), 1, time.monotonic() + 300, 60.0))


def test_at_the_deadline_it_ends_whatever_is_not_done() -> None:
    start = time.monotonic()
    found = list(spread(["hang", 1], begin, (2,), 1, start + 3, 60.0))
    assert found == [] and time.monotonic() - start < 60
