"""How far the results of Triton and CUDA are apart, against the sum of their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from specc.bounds.formats import store_error
from specc.evidence.case import Case
from specc.evidence.check import Executor, Ran
from specc.evidence.draw import draw
from specc.evidence.execute import CudaExecutor, TritonExecutor
from specc.evidence.judge import expected
from specc.evidence.store import exact_values, stored
from specc.evidence.strategy import pinned
from specc.kernels import Kernel
from specc.targets.cuda.emit import emit
from specc.targets.cuda.tiles import CPU
from tests.targets.cuda.storage import single

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Agreement:
    """`compared` elements; `worst` distance of two results over the sum of their bounds, both after the store."""

    compared: int
    worst: float


def agreement(kernel: Kernel, dtype: str) -> Agreement:
    """Of the results that both targets wrote (programs of large launches are sampled), on normally distributed
    operands stored in `dtype`."""
    case = next(c for c in pinned(kernel, (dtype,)) if c.family == "normal")
    cuda = CudaExecutor({kernel.name: single(emit(kernel, arch=CPU), dtype)})
    drawn = draw(kernel, case)
    executors: tuple[Executor, ...] = (cuda, TritonExecutor())
    ran = [e.run(kernel, stored(kernel, drawn, case), case) for e in executors]
    places = {n: _common(n, ran) for n in ran[0].outputs}
    bounds = [_bounds(kernel, exact_values(drawn), e, case, places) for e in executors]
    found = [_ratios(n, at, ran, bounds) for n, at in places.items()]
    assert all(ratios.size for ratios in found), "no element was written by both"
    return Agreement(sum(r.size for r in found), max(float(np.max(r)) for r in found))


def _common(name: str, ran: list[Ran]) -> Places:
    """Indices of the elements of a result that all have written."""
    shape = ran[0].outputs[name].shape
    flat = [np.ravel_multi_index(tuple(w.T), shape) for r in ran if (w := r.written[name]) is not None]
    return np.stack(np.unravel_index(np.array(sorted(set.intersection(*map(set, flat))), np.int64), shape), axis=1)


def _bounds(
    kernel: Kernel,
    exact: Mapping[str, npt.NDArray[np.generic]],
    executor: Executor,
    case: Case,
    places: Mapping[str, Places],
) -> dict[str, Array]:
    """How far a stored result may lie from the oracle, at `places`."""
    boxes = {n: [np.unique(column) for column in at.T] for n, at in places.items()}
    at = {q.tensor.name: dict(zip(q.indices, boxes[q.tensor.name], strict=True)) for q in kernel.formula.equations}
    values, errors = expected(kernel, exact, executor.numerics(kernel, case), dict(case.sizes), at)
    allowed = {n: store_error(values[n], errors[n], kernel.operand(n).stored(case.dtype)) for n in places}
    inside = {n: [np.searchsorted(b, c) for b, c in zip(boxes[n], p.T, strict=True)] for n, p in places.items()}
    return {n: allowed[n][tuple(inside[n])] for n in places}


def _ratios(name: str, at: Places, ran: list[Ran], bounds: list[dict[str, Array]]) -> Array:
    ours, theirs = (r.outputs[name][tuple(at.T)] for r in ran)
    distance, allowed = np.abs(ours - theirs), bounds[0][name] + bounds[1][name]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(distance == 0, 0.0, distance / allowed)
