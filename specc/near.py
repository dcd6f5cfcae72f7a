"""Which known name was meant by a misspelt one, found with a bounded amount of work."""

from __future__ import annotations

import difflib
import os.path
import re
from collections.abc import Iterable, Sequence

from specc.limits import MAX_NAME, MAX_NEAR

REDUCTION = re.compile(r"(?!(?:Sum|Prod|Max)_)(?:[A-Z][a-z]+|sum|prod|max|min|mean|avg)_([A-Za-z]\w*)")
OVERHEAD = 30
"""What an option costs beside the pairs of letters that are compared."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that differs in case only, else that takes the fewest edits to be `name`, else one that shares
    most of its letters, if any. Of very many long names only so many are compared as MAX_NEAR allows."""
    if len(name) > MAX_NAME:
        return None
    options = sorted(o for o in dict.fromkeys(known) if len(o) <= MAX_NAME and o != name)
    if len(options) * (OVERHEAD + len(name)) > MAX_NEAR:
        options = [o for o in options if o[:2] == name[:2]]
    alike = [o for o in options if o.casefold() == name.casefold()]
    if len(alike) == 1:
        return alike[0]
    return _misspelt(name, options) or (_resembling(name, options) if len(name) > 2 else None)


def _misspelt(name: str, options: Sequence[str]) -> str | None:
    """The option fewest edits away, at most one for three letters. Among equals a letter in place of a letter is the
    likeliest mistake, one in place of a digit the unlikeliest; of short names that are equal in this too, none."""
    found: list[tuple[int, int, str]] = []
    work = 0
    for option in options:
        work += OVERHEAD
        most = min(max(len(name), len(option)) // 3 or 1, len(name) - 1)
        apart = abs(len(name) - len(option))
        if apart <= most:
            a, b = _apart(name, option)
            work += len(a) * len(b)
            unlike = max(len({*a} - {*b}), len({*b} - {*a}))
            if work <= MAX_NEAR and unlike <= most and (distance := edits(a, b)) <= most:
                other = sum(x.isalpha() != y.isalpha() for x, y in zip(a, b, strict=False))
                found.append((distance, apart + 2 * other, option))
        if work > MAX_NEAR:
            break
    found.sort()
    doubtful = len(name) < 3 and len(found) > 1 and found[0][:2] == found[1][:2]
    return found[0][-1] if found and not doubtful else None


def _apart(a: str, b: str) -> tuple[str, str]:
    """Both without the letters with which they begin alike, and end alike."""
    same = len(os.path.commonprefix([a, b]))
    a, b = a[same:], b[same:]
    same = len(os.path.commonprefix([a[::-1], b[::-1]]))
    return a[: len(a) - same], b[: len(b) - same]


def edits(a: str, b: str) -> int:
    """How many letters to put in, leave out, replace or swap with the next lead from `a` to `b`."""
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            best = min(last[j] + 1, row[-1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        before, last = last, row
    return last[-1]


def _resembling(name: str, options: Sequence[str]) -> str | None:
    """The option that shares most of its letters with `name` (`rmsnorm` for `norm`)."""
    work = 0
    kept = []
    for option in options:
        work += OVERHEAD + 2 * len(name) * len(option)
        if work > MAX_NEAR:
            break
        kept.append(option)
    return next(iter(difflib.get_close_matches(name, kept, n=1, cutoff=0.6)), None)


def meant_reduction(word: str) -> tuple[str, str] | None:
    """The index that `word`, such as `Mean_j`, was to bind, and what to write instead."""
    found = REDUCTION.fullmatch(word)
    return None if found is None else (found[1], "write `Σ_{0}`, `Π_{0}` or `Max_{0}`".format(found[1]))
