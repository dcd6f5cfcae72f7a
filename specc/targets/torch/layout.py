"""Bracketed Python over one or more lines, the way `ruff format` lays it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LINE = 110
STEP = "    "


@dataclass(frozen=True)
class Group:
    """`open`, items, `close`: a call, a tuple, a list or a dict whose items carry their own keys."""

    open: str
    items: tuple[Item, ...]
    close: str

    @property
    def flat(self) -> str:
        """The whole on one line."""
        texts = [i if isinstance(i, str) else i.flat for i in self.items]
        single = "," if self.open == "(" and len(texts) == 1 else ""
        return self.open + ", ".join(texts) + single + self.close


Item = str | Group


def lines(prefix: str, item: Item, suffix: str = "", indent: str = "") -> list[str]:
    """`prefix item suffix`, broken at brackets, outermost first, where it is longer than a line."""
    flat = item if isinstance(item, str) else item.flat
    if isinstance(item, str) or len(indent + prefix + flat + suffix) <= LINE:
        return [indent + prefix + flat + suffix]
    body = [line for i in item.items for line in lines("", i, ",", indent + STEP)]
    return [indent + prefix + item.open, *body, indent + item.close + suffix]


def call_lines(prefix: str, function: str, args: Sequence[str], indent: str = "") -> list[str]:
    """`prefix function(args)`; long ones with their arguments on a line of their own, or on one each."""
    one = f"{indent}{prefix}{function}({', '.join(args)})"
    if len(one) <= LINE:
        return [one]
    inner = f"{indent}{STEP}{', '.join(args)}"
    middle = [inner] if len(inner) <= LINE else [f"{indent}{STEP}{a}," for a in args]
    return [f"{indent}{prefix}{function}(", *middle, f"{indent})"]


def tuple_of(items: Sequence[Item]) -> Group:
    return Group("(", tuple(items), ")")


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def in_docstring(text: str) -> str:
    """`text` so that it neither ends a docstring nor means something else in it."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
