"""Comparing what a target returned with the oracle, element by element, within the derived bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from specc.bounds import Numerics, bound
from specc.bounds.formats import accepts, store_error, store_interval, usage, vacuity
from specc.evidence.integers import extent
from specc.kernels import Kernel, Pointwise
from specc.oracle import evaluate, evaluate_within, uncertainty

Array = npt.NDArray[np.float64]
Written = npt.NDArray[np.int64]

EXACT = 1e-12
"""Bound over the largest result below which the oracle's own float64 error counts too."""
VACUOUS = 0.05
"""Bound over signal above which a comparison is no evidence by itself."""


@dataclass(frozen=True)
class Mismatch:
    """One element outside its interval."""

    output: str
    index: tuple[int, ...]
    got: float
    want: float
    low: float
    high: float

    def describe(self) -> str:
        place = ", ".join(map(str, self.index))
        interval = f"from {self.low:.9g} to {self.high:.9g}"
        return f"{self.output}[{place}] is {self.got:.9g}, expected {self.want:.9g} ({interval})"


@dataclass(frozen=True)
class Verdict:
    """`used`: worst error over bound. `vacuity`: rms of the bound over rms of the oracle, None for an all-zero one."""

    compared: int
    used: float
    vacuity: float | None
    mismatches: tuple[Mismatch, ...]
    count: int
    """Number of elements outside their interval; `mismatches` holds the first few."""
    finite: bool = True
    """Whether every element and its bound are finite, so that nothing overflowed on the way."""


def judge(
    kernel: Kernel,
    exact: Mapping[str, npt.NDArray[np.generic]],
    outputs: Mapping[str, Array],
    written: Mapping[str, Written | None],
    numerics: Numerics,
    sizes: Mapping[str, int],
    dtype: str,
    spoiled: bool = False,
) -> Verdict:
    """Compares the written elements (`written[name]` lists their indices; None: all). `spoiled`: a result may be NaN or
    infinite where the oracle is either."""
    _require_shapes(kernel, outputs, sizes)
    boxes = {n: _box(outputs[n].shape, written.get(n)) for n in outputs}
    at = {q.tensor.name: dict(zip(q.indices, boxes[q.tensor.name], strict=True)) for q in kernel.formula.equations}
    with np.errstate(invalid="ignore" if spoiled else "warn"):
        oracle, errors = expected(kernel, exact, numerics, sizes, at)
    types = {n: kernel.operand(n).stored(dtype) for n in outputs}
    parts = [
        _compare(n, outputs[n], boxes[n], written.get(n), oracle[n], errors[n], types[n], spoiled) for n in outputs
    ]
    vacuities = [p.vacuity for p in parts if p.vacuity is not None]
    return Verdict(
        sum(p.compared for p in parts),
        max((p.used for p in parts), default=0.0),
        max(vacuities, default=None) if vacuities else None,
        tuple(m for p in parts for m in p.mismatches),
        sum(p.count for p in parts),
        all(bool(np.all(np.isfinite(oracle[n]) & np.isfinite(errors[n]))) for n in outputs),
    )


def expected(
    kernel: Kernel,
    exact: Mapping[str, npt.NDArray[np.generic]],
    numerics: Numerics,
    sizes: Mapping[str, int],
    at: Mapping[str, Mapping[str, npt.NDArray[np.int64]]] | None = None,
) -> tuple[Mapping[str, Array], Mapping[str, Array]]:
    """Values of the results, and how far those of a target may be off before they are stored. `at`: positions of each
    index of each result (all, if None)."""
    operands = {t.name: exact[t.name] for t in kernel.formula.inputs if t.name in exact}
    oracle = evaluate(kernel.formula, operands, sizes, at)
    tables = _tables(kernel)
    limits = bound(kernel.lowered, {**operands, **tables}, numerics, sizes, at, tables=tables.keys())
    errors = {n: np.asarray(found.error) for n, found in limits.items()}
    if isinstance(kernel.schedule, Pointwise):  # a definition may cancel where the kernel's form does not
        within = evaluate_within(kernel.formula, operands, errors, sizes, at)
        oracle, errors = within.values, {n: errors[n] + within.uncertainty[n] for n in limits}
    elif any(np.any(errors[n] <= EXACT * np.max(np.abs(oracle[n]), initial=0.0)) for n in limits):
        own = uncertainty(kernel.formula, operands, sizes, at)
        errors = {n: errors[n] + own[n] for n in limits}
    return oracle, errors


class WrongShape(Exception):
    """A result is missing, or has other axes than the formula gives it."""


def _require_shapes(kernel: Kernel, outputs: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
    for t in kernel.formula.outputs:
        expected = tuple(extent(d, sizes) for d in t.dims)
        found = outputs[t.name].shape if t.name in outputs else None
        if found != expected:
            raise WrongShape(f"{t.name} has shape {found}, its formula gives {expected}")


def _tables(kernel: Kernel) -> dict[str, Array]:
    from specc.evidence.tables import table_values

    return {t.name: table_values(t) for t in kernel.tables}


def _box(shape: tuple[int, ...], written: Written | None) -> tuple[npt.NDArray[np.int64], ...]:
    """Positions per axis whose box holds every written element."""
    if written is None:
        return tuple(np.arange(n) for n in shape)
    return tuple(np.unique(written[:, axis]) for axis in range(len(shape)))


def _compare(
    name: str,
    output: Array,
    box: tuple[npt.NDArray[np.int64], ...],
    written: Written | None,
    oracle: Array,
    error: Array,
    dtype: str,
    spoiled: bool,
) -> Verdict:
    got = output[np.ix_(*box)] if box else output
    chosen = np.ones(got.shape, dtype=bool) if written is None else _mask(box, written)
    lost = ~np.isfinite(oracle) & spoiled
    good = np.where(lost, ~np.isfinite(got), accepts(got, oracle, error, dtype)) | ~chosen
    low, high = store_interval(oracle, error, dtype)
    bad = np.argwhere(~good)
    mismatches = tuple(
        Mismatch(name, tuple(int(b[i]) for b, i in zip(box, where, strict=True)),
                 *(float(a[tuple(where)]) for a in (got, oracle, low, high)))
        for where in bad[:3]
    )  # fmt: skip
    total, chosen = store_error(oracle, error, dtype), chosen & ~lost
    share = vacuity(total[chosen], oracle[chosen]) if np.any(oracle[chosen]) else None
    used = usage(got[chosen], oracle[chosen], error[chosen], dtype) if chosen.any() else 0.0
    return Verdict(int(chosen.sum()), used, share, mismatches, len(bad))


def _mask(box: tuple[npt.NDArray[np.int64], ...], written: Written) -> npt.NDArray[np.bool_]:
    mask = np.zeros(tuple(len(b) for b in box), dtype=bool)
    mask[tuple(np.searchsorted(b, written[:, axis]) for axis, b in enumerate(box))] = True
    return mask
