"""Every change of a spec that changes the mathematics is seen: official outputs are kept, only our side is changed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from specc import pipeline
from specc.ir import Phase
from specc.verify.mutate import Mutant, all_mutants, formula_mutants
from tests.verify.models import NAMES, case, reduced
from tests.verify.sensitivity import REASONS, judge_mutants

SAMPLE = 29
"""Of the changes one in so many is judged in each run; all of them in the slow suite."""


def mutants(name: str) -> Iterator[Mutant]:
    spec = reduced(name).spec
    library = pipeline.libraries(spec.path, spec.syntax)
    counter = iter(range(1 << 30))
    return all_mutants(spec.model, spec.syntax, library, lambda text: next(counter) % SAMPLE == 0)


def every_mutant(name: str) -> Iterator[Mutant]:
    spec = reduced(name).spec
    return all_mutants(spec.model, spec.syntax, pipeline.libraries(spec.path, spec.syntax))


@pytest.mark.parametrize("name", ["gemma4", "granite_3_3_8b"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_sample_of_changes_is_seen(name: str) -> None:
    found = judge_mutants(mutants(name), case(name))
    assert found.missed == []
    assert found.seen.total() >= 5


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_sample_of_changes_of_a_decode_step_is_seen() -> None:
    spec = reduced("granite_3_3_8b").spec
    every = list(formula_mutants(spec.model, Phase.DECODE))
    found = judge_mutants(every[::5], case("granite_3_3_8b"), Phase.DECODE)
    assert found.missed == []
    assert found.seen.total() >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_change_is_seen_or_is_none(name: str) -> None:
    found = judge_mutants(every_mutant(name), case(name))
    print(f"\n{name}: seen {dict(found.seen)}, refused {dict(found.refused)}, no change {len(found.unseen)}")
    assert found.missed == []
    assert found.seen.total() >= 100
    assert {"constant", "op", "order", "pieces", "term", "wire"} <= found.seen.keys()
    for text, reason in found.unseen:
        print(f"  {text}: {reason}")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_change_of_a_decode_step_is_seen_or_is_none(name: str) -> None:
    found = judge_mutants(formula_mutants(reduced(name).spec.model, Phase.DECODE), case(name), Phase.DECODE)
    print(f"\n{name}, decode: seen {dict(found.seen)}, refused {dict(found.refused)}, no change {len(found.unseen)}")
    for text, reason in found.unseen:
        print(f"  {text}: {reason}")
    assert found.missed == []
    assert found.seen.total() >= 10


@pytest.mark.slow
def test_every_reason_is_that_of_some_change() -> None:
    texts: list[str] = []
    for name in NAMES:
        spec = reduced(name).spec
        library = pipeline.libraries(spec.path, spec.syntax)
        texts += map(str, all_mutants(spec.model, spec.syntax, library, _has_reason))
    assert [p for p, _ in REASONS if not any(re.match(p, text) for text in texts)] == []


def _has_reason(text: str) -> bool:
    return any(re.match(pattern, text) for pattern, _ in REASONS)
