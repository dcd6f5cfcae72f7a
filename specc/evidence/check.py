"""Running the property suite of one kernel on one target, and what it found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings

from specc.bounds import NotSupported, Numerics
from specc.diagnostics import SpecError, cannot_write
from specc.evidence.case import Case
from specc.evidence.detour import stays_finite
from specc.evidence.draw import draw
from specc.evidence.judge import VACUOUS, Verdict, WrongShape, judge
from specc.evidence.room import NoRoom, is_lack, memory_of
from specc.evidence.store import changed, exact_values, snapshot, stored
from specc.evidence.strategy import DTYPES, cases, pinned
from specc.kernels import Kernel

Array = npt.NDArray[np.float64]

SHRINK_SECONDS = 30.0
"""How long a counterexample may be made smaller."""


@dataclass(frozen=True)
class Ran:
    """What a target returned: `written` lists the indices of elements that were stored, or None for all. `detour`: what
    is said of programs that gave up the fast way through the kernel, as only data which is not finite calls for."""

    outputs: Mapping[str, Array]
    written: Mapping[str, npt.NDArray[np.int64] | None]
    detour: str = ""


class Executor(Protocol):
    """A target that the suite can run."""

    @property
    def name(self) -> str: ...

    @property
    def evidence(self) -> str:
        """What a verdict of this executor rests on."""
        ...

    def run(self, kernel: Kernel, tensors: Mapping[str, torch.Tensor], case: Case) -> Ran: ...

    def numerics(self, kernel: Kernel, case: Case) -> Numerics: ...


class Status(StrEnum):
    VERIFIED = "VERIFIED"
    REFUTED = "REFUTED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class Outcome:
    """One case: a verdict, or a fault that stopped it."""

    case: Case
    verdict: Verdict | None
    fault: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.fault) or self.verdict is None or bool(self.verdict.count)

    def describe(self) -> str:
        if self.fault or self.verdict is None:
            return self.fault
        wrong = "; ".join(m.describe() for m in self.verdict.mismatches)
        return f"{self.verdict.count} of {self.verdict.compared} elements are outside their bound: {wrong}"


@dataclass
class Report:
    """All outcomes of one kernel on one target."""

    kernel: Kernel
    target: str
    evidence: str
    outcomes: list[Outcome] = field(default_factory=list)
    counterexample: Outcome | None = None
    untold: str = ""
    """Why nothing is said: no bound is derived, or memory does not suffice."""
    shared: str = ""
    """Name of the kernel whose outcomes these are, when it is the same but for its name."""

    @property
    def status(self) -> Status:
        if self.counterexample is not None:
            return Status.REFUTED
        return Status.VERIFIED if not self.reason else Status.UNKNOWN

    @property
    def reason(self) -> str:
        """Why nothing can be said: no bound, no memory, or not a single sharp comparison in a storage type."""
        if self.untold:
            return self.untold
        dull = [d for d in self.dtypes if not self._sharp(d)]
        return f"every bound is above {VACUOUS} of the signal in {', '.join(dull)}" if dull else ""

    def _sharp(self, dtype: str) -> bool:
        found = [o.verdict.vacuity for o in self.outcomes if o.case.dtype == dtype and o.verdict]
        return any(v is not None and v <= VACUOUS for v in found)

    @property
    def dtypes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(o.case.dtype for o in self.outcomes))

    @property
    def used(self) -> float:
        """Worst error over bound."""
        return max((o.verdict.used for o in self.outcomes if o.verdict), default=0.0)

    @property
    def vacuity(self) -> float | None:
        """Median over the cases of rms(bound) / rms(oracle)."""
        found = sorted(o.verdict.vacuity for o in self.outcomes if o.verdict and o.verdict.vacuity is not None)
        return found[len(found) // 2] if found else None


def try_case(kernel: Kernel, executor: Executor, case: Case) -> Outcome:
    """Runs one case. Whatever the target raises is a fault of the target, reported and not raised, but for what the
    machine lacks: ModuleNotFoundError, SpecError (E502, E509) and NoRoom. Raises NotSupported where no bound is
    derived."""
    with memory_of(kernel, case):
        return _tried(kernel, executor, case)


def _tried(kernel: Kernel, executor: Executor, case: Case) -> Outcome:
    drawn = draw(kernel, case)
    tensors = stored(kernel, drawn, case)
    before = snapshot(tensors)
    try:
        ran = executor.run(kernel, tensors, case)
    except (ModuleNotFoundError, SpecError):
        raise
    except Exception as error:  # a target may fail in any way, and any way is a finding
        if is_lack(error):
            raise
        if isinstance(error, OSError):
            raise cannot_write(error, f"what {executor.name} needs") from error
        return Outcome(case, None, f"{type(error).__name__}: {error}")
    touched = changed(before, tensors)
    if touched:
        return Outcome(case, None, f"inputs were changed: {', '.join(touched)}")
    sizes = dict(case.sizes)
    numerics = executor.numerics(kernel, case)
    try:
        spoiled = case.family == "spoiled"
        verdict = judge(kernel, exact_values(drawn), ran.outputs, ran.written, numerics, sizes, case.dtype, spoiled)
    except WrongShape as error:
        return Outcome(case, None, str(error))
    if ran.detour and verdict.finite and not verdict.count and stays_finite(kernel, drawn, case):
        return Outcome(case, verdict, f"{ran.detour}, though every operand is finite and nothing overflows")
    return Outcome(case, verdict)


class Refuted(Exception):
    """Carries a failing outcome out of hypothesis."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(outcome.describe())


def check_kernel(
    kernel: Kernel,
    executor: Executor,
    examples: int = 10,
    number: int = 0,
    dtypes: Sequence[str] = DTYPES,
    progress: Callable[[Outcome], None] | None = None,
) -> Report:
    """The pinned cases, then `examples` drawn ones with seed `number`, until one fails; that one is made smaller. Of a
    case that no bound is derived for, or no memory suffices for, nothing is said, nor of those after it."""
    report = Report(kernel, executor.name, executor.evidence)
    trial = _Trial(kernel, executor, report, progress)
    try:
        for case in pinned(kernel, dtypes):
            if trial.outcome(case).failed:
                break
        if examples and not any(o.failed for o in report.outcomes):
            _search(kernel, trial, examples, number, dtypes)
    except NotSupported as unsupported:
        report.untold = f"no bound is derived for {unsupported}"
    except NoRoom as lack:
        report.untold = f"memory does not suffice: {lack}"
    report.counterexample = next((o for o in report.outcomes if o.failed), None)
    if report.counterexample is not None:
        with suppress(NotSupported, NoRoom):
            report.counterexample = _shrink(kernel, trial, report.counterexample)
    return report


class _Trial:
    def __init__(
        self, kernel: Kernel, executor: Executor, report: Report, progress: Callable[[Outcome], None] | None
    ) -> None:
        self.kernel, self.executor, self.report, self.progress = kernel, executor, report, progress
        self.known: dict[Case, Outcome] = {}

    def outcome(self, case: Case) -> Outcome:
        if case not in self.known:
            self.known[case] = try_case(self.kernel, self.executor, case)
            self.report.outcomes.append(self.known[case])
            if self.progress:
                self.progress(self.known[case])
        return self.known[case]


def _search(kernel: Kernel, trial: _Trial, examples: int, number: int, dtypes: Sequence[str]) -> None:
    options = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )

    @seed(number)
    @options
    @given(cases(kernel, dtypes))
    def attempt(case: Case) -> None:
        outcome = trial.outcome(case)
        if outcome.failed:
            raise Refuted(outcome)

    try:
        attempt()
    except Refuted:
        return


def _shrink(kernel: Kernel, trial: _Trial, outcome: Outcome) -> Outcome:
    """A smaller failing case: each field in turn is set to a simpler value as long as the case still fails."""
    from specc.evidence.shrink import simpler

    start, best = monotonic(), outcome
    progress = True
    while progress and monotonic() - start < SHRINK_SECONDS:
        progress = False
        for case in simpler(kernel, best.case):
            if monotonic() - start > SHRINK_SECONDS:
                break
            found = try_case(kernel, trial.executor, case)
            if found.failed:
                best, progress = found, True
                break
    return best
