"""Running many cases, and saying what came of them."""

from __future__ import annotations

import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.cases import Case, case
from tests.fuzz.judge import Stage, judge
from tests.fuzz.reduce import reduce_case

STAGES = tuple(stage.name.lower() for stage in Stage)


@dataclass
class Figures:
    """Cases by kind and outcome, and failures by what they have in common."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: dict[str, list[int]] = field(default_factory=dict)

    def reached(self, stage: str) -> int:
        """Cases with files that came as far as `stage`, or farther."""
        far = STAGES[STAGES.index(stage) :]
        return sum(n for (_, outcome), n in self.outcomes.items() if outcome in far)

    def table(self) -> dict[str, int]:
        """Cases by outcome."""
        found: Counter[str] = Counter()
        for (_, outcome), n in self.outcomes.items():
            found[outcome] += n
        return dict(found)

    def text(self) -> str:
        total = self.outcomes.total()
        reached = ", ".join(f"{self.reached(s)} {s}" for s in STAGES)
        exits = Counter({o: n for (_, o), n in self.outcomes.items() if o.startswith("exit")})
        lines = [f"{total} cases: {reached}; commands: " + ", ".join(f"{n} {o}" for o, n in sorted(exits.items()))]
        lines += [f"{len(seeds)} failures like seed {seeds[0]}: {name}" for name, seeds in self.failures.items()]
        return "\n".join(lines)


def added_up(tables: Iterable[Mapping[str, int]]) -> str:
    """The figures of several runs as one, from tables as `Figures.table` gives them."""
    total: Counter[tuple[str, str]] = Counter()
    for table in tables:
        total.update({("", outcome): n for outcome, n in table.items()})
    return Figures(total).text()


def outcome(one: Case) -> str:
    """Where the case ends. Raises what it lets through."""
    with tempfile.TemporaryDirectory() as folder:
        return judge(one, Path(folder))


def run_seeds(seeds: Iterable[int]) -> Figures:
    figures = Figures()
    for seed in seeds:
        one = case(seed)
        try:
            figures.outcomes[one.kind, outcome(one)] += 1
        except Exception as error:  # whatever specc lets through is what the fuzzer looks for
            figures.outcomes[one.kind, "failed"] += 1
            figures.failures.setdefault(signature(error), []).append(seed)
    return figures


def signature(error: BaseException) -> str:
    """What failures with one cause have in common: the error and the place in specc it came from."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f"{Path('specc')}/" in f.filename]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
    text = str(error).split(":")[0].split("\n")[0]
    return f"{type(error).__name__} {place} {text}"[:100]


def smallest(seed: int) -> Case:
    """The case of `seed`, cut down to what fails as it does."""
    one = case(seed)
    wanted = _failure(one)
    return one if wanted is None or one.arguments else reduce_case(one, lambda c: _failure(c) == wanted)


def _failure(one: Case) -> str | None:
    try:
        outcome(one)
    except Exception as error:  # see run_seeds
        return signature(error)
    return None


def report(figures: Figures) -> str:
    """The figures, and for each kind of failure a small input and the command that runs it again."""
    lines = [figures.text()]
    for name, seeds in figures.failures.items():
        small = smallest(seeds[0])
        shown = "\n".join(f"--- {n}\n{d.decode('utf-8', 'backslashreplace')}" for n, d in small.files.items())
        arguments = f" specc {list(small.arguments)}" if small.arguments else ""
        lines.append(f"\nseed {seeds[0]} ({small.kind}): {name}{arguments}\n{shown}")
        lines.append(f"run it again: python -m tests.fuzz {seeds[0]}")
    return "\n".join(lines)
