"""`docs/diagnostics.md`, made of the examples. `python -m tests.diagnostics.page` writes it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from specc.codes import CODES
from tests.diagnostics.examples import Example, all_examples
from tests.typecheck.mini import MINI

PAGE = Path(__file__).parents[2] / "docs" / "diagnostics.md"
INTRO = """\
# Diagnostics

Every mistake that specc finds is printed with its place, a code, the line, and what to do about it. All mistakes of a
stage come at once, in the order of the text. A code never changes its meaning. This page is made from the examples in
`tests/diagnostics`; most of them are edits of [one small spec](#the-small-spec).
"""


def page() -> str:
    parts = [INTRO, *(f"## {code}\n\n{meaning}\n\n{_example(shown()[code])}" for code, meaning in CODES.items())]
    return "\n".join([*parts, f"## The small spec\n\n```text\n{MINI}```\n"])


@cache
def shown() -> dict[str, Example]:
    """The example of each code: the first that begins with it, or has it; of op libraries, one with a repaired form."""
    found: dict[str, Example] = {}
    fit = [e for e in all_examples() if not e.is_library or e.repaired]
    for example in fit:
        found.setdefault(example.codes[0], example)
    for example in fit:
        for code in example.codes:
            found.setdefault(code, example)
    return found


def _example(example: Example) -> str:
    parts = [f"`{name}`:\n\n```text\n{text}```\n" for name, text in example.files.items()]
    parts.append(f"```text\n{example.bad}\n{example.printed}\n```\n".replace("\n\n", "\n"))
    parts.append(f"Instead:\n\n```diff\n{_diff(example)}```\n")
    return "\n".join(parts)


def _edit(old: str, new: str) -> str:
    return "".join(f"{sign} {line}\n" for sign, text in (("-", old), ("+", new)) if text for line in text.split("\n"))


def _diff(example: Example) -> str:
    """From the wrong text or command to the right one."""
    parts = [_edit(new, old) for old, new in example.edits]
    parts += [_edit(example.files[name].rstrip("\n"), text.rstrip("\n")) for name, text in example.repaired.items()]
    if example.good and example.good != example.bad:
        parts.append(_edit(example.bad, example.good))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
