"""Tasks in processes of their own: a kernel that hangs, or spoils its process for those after it, costs one row."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

Work = Callable[[Any], tuple[Any, bool]]
"""What a task gives, and whether the process is fit for another."""


def spread(
    tasks: Sequence[Any],
    start: Callable[..., Work],
    arguments: Sequence[Any],
    count: int,
    deadline: float,
    patience: float,
) -> Iterator[tuple[Any, Any, str]]:
    """Each task with what `start(*arguments)` makes of it in one of `count` processes, as they are done; or None, and
    what became of it after `patience` seconds or with its process. Ends at `deadline` (of time.monotonic()) at the
    latest."""
    waiting = list(reversed(tasks))
    workers = [_Worker(start, arguments) for _ in range(min(count, len(tasks)))]
    try:
        while waiting or any(w.busy for w in workers):
            for w in workers:
                if waiting and not w.busy:
                    w.give(waiting.pop())
            now = time.monotonic()
            if now >= deadline:
                return
            busy = [w for w in workers if w.busy]
            wait([w.line for w in busy], timeout=min(1.0, deadline - now))
            yield from (found for w in busy if (found := w.answer(patience)) is not None)
    finally:
        for w in workers:
            w.end()


class _Worker:
    """A process, the line to it, and the task that it has."""

    line: Connection

    def __init__(self, start: Callable[..., Work], arguments: Sequence[Any]) -> None:
        self.start, self.arguments = start, arguments
        self.busy, self.task, self.since = False, None, 0.0
        self._begin()

    def _begin(self) -> None:
        context = get_context("spawn")
        self.line, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, self.start, self.arguments), daemon=True)
        self.process.start()
        other.close()

    def give(self, task: Any) -> None:
        self.busy, self.task, self.since = True, task, time.monotonic()
        self.line.send(task)

    def answer(self, patience: float) -> tuple[Any, Any, str] | None:
        """The task and its answer, if there is one. A process that is done for is replaced."""
        task = self.task
        try:
            if self.line.poll():
                found, fit = self.line.recv()
                self._free(fit)
                return task, found, ""
        except (EOFError, OSError):
            self.process.join(5)
            code = self.process.exitcode
            self._free(False)
            return task, None, f"its process ended with {code}"
        if time.monotonic() - self.since > patience:
            self._free(False)
            return task, None, f"not done after {patience:.0f} s"
        return None

    def _free(self, fit: bool) -> None:
        self.busy = False
        if not fit:
            self.end()
            self._begin()

    def end(self) -> None:
        self.line.close()
        self.process.kill()
        self.process.join(5)


def _serve(line: Connection, start: Callable[..., Work], arguments: Sequence[Any]) -> None:
    work = start(*arguments)
    while True:
        try:
            task = line.recv()
        except EOFError:
            return
        line.send(work(task))
