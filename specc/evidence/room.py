"""Whether memory suffices for the operands and results of a case."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from specc.evidence.case import Case
from specc.evidence.integers import extent
from specc.evidence.operands import inputs, overlaps, sizes_of
from specc.kernels import Kernel

COPIES = 4
"""Arrays of float64 that an operand or result takes at once: its values, while they are made, stored and compared."""


class NoRoom(MemoryError):
    """Memory does not suffice for a case: the message says for what, and how large that is."""


@contextmanager
def memory_of(kernel: Kernel, case: Case) -> Iterator[None]:
    """A MemoryError, and what stands for one, becomes NoRoom."""
    try:
        yield
    except NoRoom:
        raise
    except Exception as error:  # the class is NumPy's, torch's or the interpreter's; `is_lack` reads what it says
        if not is_lack(error):
            raise
        said = " ".join(str(error).split()) or "nothing is left"
        raise NoRoom(f"{said}; the largest operand or result is {_largest(kernel, case)}") from error


def is_lack(error: Exception) -> bool:
    """Whether an error says that memory does not suffice, in the words of NumPy, torch or the system."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def require_room(kernel: Kernel, case: Case) -> None:
    """Raises NoRoom where the machine has not the memory for all operands and results of a case."""
    needed = COPIES * sum(8 * math.prod(s) for s in _shapes(kernel, case).values())
    if needed > _memory():
        all_of_them = f"operands, results and their copies take {_told(needed)} of {_told(_memory())}"
        raise NoRoom(f"{all_of_them}; the largest is {_largest(kernel, case)}")


def _largest(kernel: Kernel, case: Case) -> str:
    name, shape = max(_shapes(kernel, case).items(), key=lambda item: math.prod(item[1]))
    return f"`{name}` of {list(map(int, shape))}, {_told(8 * math.prod(shape))} in float64"


def _shapes(kernel: Kernel, case: Case) -> dict[str, tuple[int, ...]]:
    """The shapes of all that is held for a case, as far as its elements do not overlap."""
    sizes = sizes_of(kernel, case)
    operands = {**inputs(kernel), **{o.name: o for o in kernel.operands if o.output}}
    shapes = {n: tuple(extent(d, sizes) for d in o.dims) for n, o in operands.items()}
    found = {n: s for n, s in shapes.items() if not overlaps(operands[n], s)}
    return found | {t.name: (t.extent,) for t in kernel.tables}


def _told(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} PiB"


@cache
def _memory() -> int:
    """Bytes of memory that this process may take at most."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return found
