"""One small input on every executor: the oracle's value, and what each target makes of it within its derived bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import specc
from specc.bounds import Numerics
from specc.bounds.formats import round_to
from specc.evidence.case import Case
from specc.evidence.check import Executor
from specc.evidence.execute import CudaExecutor, TorchExecutor, TritonExecutor
from specc.evidence.judge import VACUOUS, Verdict, judge
from specc.evidence.store import DTYPES, changed, snapshot
from specc.ir import Role
from specc.kernels import Kernel
from specc.lower.lower import Setting, lower_formula
from specc.ops import Sort
from specc.oracle import evaluate
from specc.oracle.sizes import bind
from specc.resources import shipped
from specc.targets.cuda import target as cuda
from specc.targets.triton import target as triton
from tests.oracle.formulas import close

Array = npt.NDArray[Any]
STORAGE = ("float32", "float16", "bfloat16")
TARGETS = ("triton", "torch")
EVERY = (*TARGETS, "cuda")
EXECUTORS: dict[str, Executor] = {"triton": TritonExecutor(), "torch": TorchExecutor(), "cuda": CudaExecutor()}
RUNS = {"triton": triton.run, "cuda": cuda.run}


@cache
def gemma() -> specc.Spec:
    return specc.load(shipped("specs") / "gemma4.spec")


@cache
def kernel(op: str, lead: int = 1, given: tuple[str, ...] = (), **constants: Any) -> Kernel:
    """The kernel of a shipped op. Constants are numbers, or decimals in quotes; weights, caches and indices have the
    roles that a node would give them."""
    formula = close(op, {n: Fraction(c) if isinstance(c, str) else c for n, c in constants.items()}, lead, given)
    roles = {t.name: Role.ACTIVATION for t in (*formula.inputs, *formula.outputs)}
    roles |= {t.name: Role.WEIGHT for t in formula.inputs if t.name in ("w", "wg", "wu", "s")}
    roles |= {t.name: Role.CACHE for t in formula.inputs if t.name in ("k", "v")}
    roles |= {t.name: Role.INDEX for t in formula.inputs if t.sort is Sort.INDEX}
    phase = "decode" if "ecode" in op else "prefill"
    return lower_formula(formula, Setting(op.lower(), phase, (), roles))


def exact(tensors: Mapping[str, Any], dtype: str) -> dict[str, Array]:
    """Operands as they are once stored in `dtype`: reals rounded to it, indices as they are."""
    arrays = {n: np.asarray(t) for n, t in tensors.items()}
    return {n: a.astype(np.int64) if a.dtype.kind in "iu" else round_to(a, dtype) for n, a in arrays.items()}


def stored(array: Array, dtype: str) -> torch.Tensor:
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor if array.dtype.kind in "iu" else tensor.to(DTYPES[dtype])


@dataclass(frozen=True)
class Trial:
    """A kernel on given operands, stored in `dtype`."""

    kernel: Kernel
    tensors: Mapping[str, Array]
    dtype: str
    views: Mapping[str, torch.Tensor] = field(default_factory=dict)

    def stored_as(self, **views: torch.Tensor) -> Trial:
        """With other tensors in memory: the same values where the formula reads them, of any strides, poisoned where it
        does not."""
        return replace(self, views=views)

    def oracle(self) -> Array:
        """The only result, in float64."""
        (value,) = evaluate(self.kernel.formula, self.tensors).values()
        return value

    def outputs(self, target: str) -> dict[str, Array]:
        """What a target returns for results that start as NaN; its operands are as they were."""
        operands = {n: stored(a, self.dtype) for n, a in self.tensors.items()} | dict(self.views)
        before = snapshot(operands)
        if target == "torch":
            return dict(TorchExecutor().run(self.kernel, operands, Case(self.dtype, ())).outputs)
        found = RUNS[target](self.kernel, operands)[0]
        assert changed(before, operands) == []
        return {n: t.to(torch.float64).numpy() for n, t in found.items()}

    def numerics(self, target: str) -> Numerics:
        return EXECUTORS[target].numerics(self.kernel, Case(self.dtype, ()))

    def verdict(self, target: str, outputs: Mapping[str, Array]) -> Verdict:
        sizes = bind(self.kernel.formula, self.tensors, {})
        every = dict.fromkeys(outputs)
        return judge(self.kernel, self.tensors, outputs, every, self.numerics(target), sizes, self.dtype)

    def right(self, targets: Sequence[str] = TARGETS, vacuous: float = VACUOUS) -> Trial:
        """Every target is within its bound, and the bound says something."""
        for target in targets:
            verdict = self.verdict(target, self.outputs(target))
            assert not verdict.count, (target, [m.describe() for m in verdict.mismatches])
            assert verdict.vacuity is None or verdict.vacuity <= vacuous, (target, verdict.vacuity)
        return self

    def refutes(self, wrong: Any, targets: Sequence[str] = TARGETS) -> Trial:
        """The bounds exclude `wrong`, stored in `dtype`, in place of each result."""
        (name,) = (o.name for o in self.kernel.operands if o.output)
        oracle = self.oracle()
        fault = round_to(np.array(np.broadcast_to(np.asarray(wrong, np.float64), oracle.shape)), self.dtype)
        for target in targets:
            assert self.verdict(target, {name: fault}).count, (target, fault, oracle)
        return self


def trial(of: Kernel, dtype: str, **tensors: Any) -> Trial:
    return Trial(of, exact(tensors, dtype), dtype)


def draw(seed: int, *shape: int, scale: float = 1.0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape) * scale
