"""Drawing words that a regular expression takes."""

from __future__ import annotations

import re
from functools import cache
from random import Random
from typing import Any

parser: Any = re._parser  # type: ignore[attr-defined]

ODD = "é中\u0301ﬁｘΩ𝟙"
"""Letters that a class of `\\w` or `.` takes and a programmer does not think of."""


@cache
def _tree(pattern: str) -> Any:
    return parser.parse(pattern)


def draw_word(pattern: str, rng: Random) -> str:
    """A word of `pattern`; what must stand before or after it (anchors, lookaheads) is not looked at."""
    return "".join(_draw(item, rng) for item in _tree(pattern))


def _draw(item: tuple[Any, Any], rng: Random) -> str:
    kind, value = item
    match str(kind):
        case "LITERAL":
            return chr(value)
        case "NOT_LITERAL":
            return rng.choice([c for c in "az09 -" if ord(c) != value])
        case "ANY":
            return rng.choice("az09 -" + ODD)
        case "IN":
            return _member(value, rng)
        case "MAX_REPEAT" | "MIN_REPEAT":
            low, high, inner = value
            count = rng.randint(low, min(int(high), low + rng.choice((1, 1, 2, 2, 6))))
            return "".join(_draw(part, rng) for _ in range(count) for part in inner)
        case "BRANCH":
            return "".join(_draw(part, rng) for part in rng.choice(value[1]))
        case "SUBPATTERN":
            return "".join(_draw(part, rng) for part in value[-1])
        case "AT" | "ASSERT" | "ASSERT_NOT":
            return ""
    raise NotImplementedError(f"{kind} in a terminal")


def _member(parts: list[tuple[Any, Any]], rng: Random) -> str:
    kind, value = parts[0]
    if str(kind) == "NEGATE":
        shut = re.compile("[" + "".join(_text(p) for p in parts[1:]) + "]")
        return rng.choice([c for c in "az09 -#|\t" + ODD if not shut.match(c)])
    kind, value = rng.choice(parts)
    match str(kind):
        case "LITERAL":
            return chr(value)
        case "RANGE":
            return chr(rng.randint(*value))
    return rng.choice({"CATEGORY_SPACE": " \t", "CATEGORY_DIGIT": "059"}.get(str(value), "ab9"))


def _text(part: tuple[Any, Any]) -> str:
    kind, value = part
    match str(kind):
        case "LITERAL":
            return re.escape(chr(value))
        case "RANGE":
            return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    raise NotImplementedError(f"{kind} in a class")
