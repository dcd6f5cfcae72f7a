"""Tasks in processes of their own: a kernel that hangs, or spoils its process for those after it, costs one row."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

Work = Callable[[Any], tuple[Any, bool]]
"""What a task gives, and whether the process is fit for another."""
Answer = tuple[Any, Any, str]
"""A task, what it gave, and else what became of it."""

READY = "ready"
STARTING = 120.0
"""Seconds that a process may take until it is ready for its first task."""
FRUITLESS = 3
"""Processes in a row that may end before they are ready; then no more are started."""


def spread(
    tasks: Sequence[Any],
    start: Callable[..., Work],
    arguments: Sequence[Any],
    count: int,
    deadline: float,
    patience: float,
) -> Iterator[Answer]:
    """Each task with what `start(*arguments)` makes of it in one of `count` processes, as they are done; or None, and
    what became of it after `patience` seconds or with its process. Ends at `deadline` (of time.monotonic()) at the
    latest, or with RuntimeError where no process becomes ready."""
    waiting = list(reversed(tasks))
    workers = [_Worker(start, arguments) for _ in range(min(count, len(tasks)))]
    try:
        while waiting or any(w.busy for w in workers):
            for w in workers:
                if waiting and w.ready and not w.busy:
                    w.give(waiting.pop())
            now = time.monotonic()
            if now >= deadline:
                return
            wait([w.line for w in workers], timeout=min(1.0, deadline - now))
            yield from (found for w in workers if (found := w.answer(patience)) is not None)
            if all(w.fruitless >= FRUITLESS for w in workers):
                raise RuntimeError(f"no process becomes ready: {workers[0].why}")
    finally:
        for w in workers:
            w.kill()
        for w in workers:
            w.end()


class _Worker:
    """A process, the line to it, and the task that it has."""

    line: Connection

    def __init__(self, start: Callable[..., Work], arguments: Sequence[Any]) -> None:
        self.start, self.arguments = start, arguments
        self.fruitless, self.why = 0, ""
        self._begin()

    def _begin(self) -> None:
        context = get_context("spawn")
        self.line, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, self.start, self.arguments), daemon=True)
        self.process.start()
        other.close()
        self.ready, self.busy, self.task, self.since = False, False, None, time.monotonic()

    def give(self, task: Any) -> None:
        self.busy, self.task, self.since = True, task, time.monotonic()
        with suppress(OSError):  # where the process has ended, `answer` sees it
            self.line.send(task)

    def answer(self, patience: float) -> Answer | None:
        """The task and its answer, if there is one. A process that is done for is replaced."""
        task, since = self.task, time.monotonic() - self.since
        try:
            if self.line.poll():
                return self._told(self.line.recv())
        except (EOFError, OSError):
            self.process.join(5)
            return self._replaced(task, f"its process ended with {self.process.exitcode}")
        if self.busy and since > patience:
            return self._replaced(task, f"not done after {patience:.0f} s")
        if not self.ready and since > STARTING:
            return self._replaced(task, f"not ready after {STARTING:.0f} s")
        return None

    def _told(self, message: Any) -> Answer | None:
        if message == READY:
            self.ready, self.fruitless = True, 0
            return None
        task, (found, fit) = self.task, message
        self.busy = False
        if not fit:
            self._restart()
        return task, found, ""

    def _replaced(self, task: Any, why: str) -> Answer | None:
        had_task = self.busy
        self.fruitless, self.why = self.fruitless + (not self.ready), why
        self._restart()
        return (task, None, why) if had_task else None

    def _restart(self) -> None:
        self.kill()
        self.end()
        self._begin()

    def kill(self) -> None:
        self.line.close()
        self.process.kill()

    def end(self) -> None:
        """A process that the driver does not let go is left behind."""
        self.process.join(5)


def _serve(line: Connection, start: Callable[..., Work], arguments: Sequence[Any]) -> None:
    work = start(*arguments)
    line.send(READY)
    while True:
        try:
            task = line.recv()
        except EOFError:
            return
        line.send(work(task))
