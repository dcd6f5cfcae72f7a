"""What printing a function keeps: values with their axes, the statements so far, the names taken."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from specc.ops import Expr
from specc.targets.torch.code import Code

WIDTH = 92
"""An expression longer than this is given a name first."""
IMPORTED = ("Precision", "Tensor", "cache", "masked_softmax", "math", "rounded", "torch", "weighted_sum")
RESERVED = frozenset(
    (*keyword.kwlist, "__debug__", *IMPORTED, "p", "device", "abs", "float", "int", "max", "min", "range")
)
SPELLING = {"l": "l_", "O": "O_", "I": "I_"}
"""Names that are taken for digits."""


class Kind(Enum):
    """How a value lives in the printed code."""

    CONST = "a Python number"
    INDEX = "a tensor of integers"
    BOOL = "a tensor of truth values"
    EXACT = "a float64 tensor that depends on indices and constants alone"
    DATA = "a tensor in the accumulator's type"


Axes = tuple[str | None, ...]
"""The index variable along each dimension of a value, None for a dimension of size 1."""
Frame = tuple[str, ...]
"""The index variables in whose order values are broadcast against each other, aligned at the last one."""


@dataclass(frozen=True)
class Value:
    """A printed expression. Its axes are aligned with the end of the frame it was lowered in."""

    code: Code
    kind: Kind
    axes: Axes = ()

    @property
    def is_array(self) -> bool:
        return self.kind is not Kind.CONST


def joined(values: Sequence[Value]) -> Axes:
    """The axes of the broadcast of values that are aligned with one frame."""
    rank = max((len(v.axes) for v in values), default=0)
    slots: list[str | None] = [None] * rank
    for v in values:
        for n, name in enumerate(v.axes, start=rank - len(v.axes)):
            slots[n] = name or slots[n]
    return tuple(slots)


def aligned(axes: Axes, frame: Frame) -> bool:
    """Whether a value with `axes` can be broadcast in `frame` as it is."""
    if len(axes) > len(frame):
        return False
    return all(a is None or a == f for a, f in zip(axes, frame[len(frame) - len(axes) :], strict=True))


@dataclass
class Names:
    """Identifiers of one function; each is given once."""

    taken: set[str] = field(default_factory=set)

    def fresh(self, hint: str) -> str:
        """An unused name like `hint`."""
        stem = SPELLING.get(hint, hint)
        name, n = stem, 2
        while name in self.taken or name in RESERVED:
            name, n = f"{stem.rstrip('_')}_{n}", n + 1
        self.taken.add(name)
        return name


@dataclass
class Block:
    """Statements of a function or of a loop in it."""

    names: Names
    lines: list[str] = field(default_factory=list)
    indent: str = ""

    def add(self, statement: str) -> None:
        self.lines.append(self.indent + statement)

    def assign(self, hint: str, code: Code) -> Code:
        """A new local variable."""
        name = self.names.fresh(hint)
        self.add(f"{name} = {code.text}")
        return Code(name)

    def fit(self, *codes: Code, around: int = 4) -> list[Code]:
        """Operands of one expression, each with `around` characters about it; the longest become local variables until
        what is left fits on a line."""
        found = list(codes)
        while sum(len(c.text) + around for c in found) > WIDTH and any(not c.simple for c in found):
            longest = max(range(len(found)), key=lambda n: len(found[n].text) if not found[n].simple else 0)
            found[longest] = self.assign("part", found[longest])
        return found


@dataclass(frozen=True)
class Operand:
    """A tensor parameter of the printed function."""

    code: Code
    dims: tuple[Expr, ...]
    kind: Kind
    cast: bool = False
    """Whether it is still in its storage type, so that what is read of it has to be converted."""
