"""From a case to operands: exact float64 values, and the same values as stored tensors with strides and poison."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from specc.bounds.formats import round_to
from specc.evidence import recurrent
from specc.evidence.case import Case
from specc.evidence.integers import extent
from specc.evidence.operands import inputs, overlaps, sizes_of
from specc.evidence.room import require_room
from specc.evidence.visible import Visible, visible_range
from specc.ir import Role
from specc.kernels import Attention, Kernel, Operand, Recurrent, RowReduction
from specc.lower.lower import accesses
from specc.ops import Num, Sort, walk

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

ROW_STEP = 8
"""Elements between rows of a weight that overlap."""


@dataclass(frozen=True)
class Drawn:
    """`exact`: the values as float64 (integers: int64), perhaps overlapping rows of `buffer`. `unused`: where the
    formula reads nothing, so that stored tensors hold NaN there."""

    exact: npt.NDArray[np.generic]
    buffer: Array | None = None
    unused: npt.NDArray[np.bool_] | None = None


def draw(kernel: Kernel, case: Case) -> dict[str, Drawn]:
    """Values of every operand that the kernel reads, and of every input that only the formula has. Raises NoRoom."""
    require_room(kernel, case)
    operands, sizes = inputs(kernel), sizes_of(kernel, case)
    shapes = {n: tuple(extent(d, sizes) for d in o.dims) for n, o in operands.items()}
    drawn = {n: _indices(kernel, o, shapes[n], case) for n, o in operands.items() if o.sort is Sort.INDEX}
    places = {n: d.exact.astype(np.int64) for n, d in drawn.items()}
    seen = visible_range(kernel, places, case) if isinstance(kernel.schedule, Attention) else None
    for name, operand in operands.items():
        if name not in drawn:
            drawn[name] = _real(kernel, operand, shapes[name], case, seen)
    return {n: drawn[n] for n in operands}


def _rng(case: Case, name: str) -> np.random.Generator:
    return np.random.default_rng([case.seed, zlib.crc32(name.encode())])


def _indices(kernel: Kernel, operand: Operand, shape: tuple[int, ...], case: Case) -> Drawn:
    top = gathered_extent(kernel, operand.name)
    if top is not None:
        ids = _rng(case, operand.name).integers(0, top, size=shape)
        flat = ids.reshape(-1)
        flat[:1], flat[-1:] = 0, top - 1
        return Drawn(ids)
    count = int(np.prod(shape))
    return Drawn(np.resize(np.array(case.places, dtype=np.int64), count).reshape(shape))


def gathered_extent(kernel: Kernel, name: str) -> int | None:
    """How many rows there are to choose from when `name` is used as an index, else None."""
    own = {a.name for a in accesses(kernel.schedule) if a.operand == name}
    for access in accesses(kernel.schedule):
        for index, dim in zip(access.indices, _dims(kernel, access.operand), strict=False):
            if access.data_index and isinstance(dim, Num) and any(getattr(n, "name", None) in own for n in walk(index)):
                return int(dim.value)
    return None


def _dims(kernel: Kernel, name: str) -> tuple[object, ...]:
    return next((o.dims for o in kernel.operands if o.name == name), ())


def _real(kernel: Kernel, operand: Operand, shape: tuple[int, ...], case: Case, seen: Visible | None) -> Drawn:
    if overlaps(operand, shape):
        rows, columns = shape
        buffer = _fill(kernel, operand, ((rows - 1) * ROW_STEP + columns,), case)
        steps = (ROW_STEP * buffer.itemsize, buffer.itemsize)
        return Drawn(np.lib.stride_tricks.as_strided(buffer, shape, steps, writeable=False), buffer)
    if isinstance(kernel.schedule, Recurrent):
        drawn = recurrent.values(kernel.schedule, operand.name, shape, case, _rng(case, operand.name))
        return Drawn(round_to(drawn, operand.stored(case.dtype)))
    if seen is not None and case.family in _ATTENTION:
        values = _ATTENTION[case.family](kernel, operand, shape, case, seen)
    else:
        values = _fill(kernel, operand, shape, case)
    unused = None if seen is None else _unused(seen, operand.name, shape, case)
    return Drawn(round_to(values, operand.stored(case.dtype)), None, unused)


def _unused(seen: Visible, name: str, shape: tuple[int, ...], case: Case) -> npt.NDArray[np.bool_] | None:
    """Keys that no row sees. Those that a prefill kernel may read anyway, in every second case only, since NaN there
    makes it take keys one by one."""
    unused = seen.unused(name, shape)
    if unused is None or seen.decode or case.seed % 2 == 0:
        return unused
    first, last = seen.read
    keys = np.arange(shape[0]).reshape(-1, *(1,) * (len(shape) - 1))
    return np.asarray(unused & ((keys < first) | (keys >= last)))


def _fill(kernel: Kernel, operand: Operand, shape: tuple[int, ...], case: Case) -> Array:
    rng = _rng(case, operand.name)
    family = case.family
    is_weight = operand.role is Role.WEIGHT
    if family == "integers":
        return rng.integers(-3, 4, size=shape).astype(np.float64)
    if family == "constant":
        return np.full(shape, 1.0 if is_weight else case.magnitude)
    if family == "sparse" and not (is_weight and isinstance(kernel.schedule, RowReduction)) and shape:
        return _sparse(rng, shape, case)
    scale = 1.0 if is_weight else case.magnitude
    return round_to(rng.standard_normal(shape) * scale, operand.stored(case.dtype))


MANTISSA = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}


def _sparse(rng: np.random.Generator, shape: tuple[int, ...], case: Case) -> Array:
    """Zero but for the first, the last and one more element of each row, whose mantissas are full. Products of float32
    ones stay exact when they are cut to 12 bits each."""
    values = np.zeros(shape)
    bits = min(MANTISSA[case.dtype], 12)
    rows = values.reshape(-1, shape[-1])
    for column in (0, int(rng.integers(shape[-1])), shape[-1] - 1):
        whole = rng.integers(1 << (bits - 1), 1 << bits, size=len(rows)) | 1
        rows[:, column] = rng.choice([-1.0, 1.0], size=len(rows)) * whole * 2.0 ** -(bits - 1)
    return values


def _edges(kernel: Kernel, operand: Operand, shape: tuple[int, ...], case: Case, seen: Visible) -> Array:
    schedule = kernel.schedule
    assert isinstance(schedule, Attention)
    if operand.name == schedule.v.operand:
        values = np.zeros(shape)
        rng = _rng(case, operand.name)
        for place in seen.edge_places(shape):
            values[place] = rng.integers(1, 4, size=values[place].shape)
        return values
    return np.zeros(shape) if operand.name == schedule.q.operand else _fill(kernel, operand, shape, case)


def _selected(kernel: Kernel, operand: Operand, shape: tuple[int, ...], case: Case, seen: Visible) -> Array:
    schedule = kernel.schedule
    assert isinstance(schedule, Attention)
    values = np.zeros(shape)
    if operand.name == schedule.q.operand:
        values[..., 0] = 16.0
        return values
    if operand.name == schedule.k.operand:
        for place in seen.edge_places(shape):
            values[place][..., 0] = 4.0
        for place in seen.outside_places(shape):
            values[place][..., 0] = 8.0
        return values
    return _rng(case, operand.name).integers(-8, 9, size=shape).astype(np.float64)


def _deep(kernel: Kernel, operand: Operand, shape: tuple[int, ...], case: Case, seen: Visible) -> Array:
    schedule = kernel.schedule
    assert isinstance(schedule, Attention)
    values = np.zeros(shape)
    if operand.name == schedule.q.operand:
        values[..., 0] = 1024.0
    elif operand.name == schedule.k.operand:
        values[..., 0] = -1024.0
    else:
        return _rng(case, operand.name).integers(-8, 9, size=shape).astype(np.float64)
    return values


def _steps(kernel: Kernel, operand: Operand, shape: tuple[int, ...], case: Case, seen: Visible) -> Array:
    schedule = kernel.schedule
    assert isinstance(schedule, Attention)
    values = np.zeros(shape)
    if operand.name == schedule.q.operand:
        values[..., 0] = 1.0
    elif operand.name == schedule.k.operand:
        values[..., 0] = -_rng(case, operand.name).integers(0, 4, size=shape[:-1])
    else:
        return _rng(case, operand.name).integers(-8, 9, size=shape).astype(np.float64)
    return values


def _heads(kernel: Kernel, operand: Operand, shape: tuple[int, ...], case: Case, seen: Visible) -> Array:
    schedule = kernel.schedule
    assert isinstance(schedule, Attention)
    if operand.name == schedule.v.operand:
        return np.broadcast_to(np.arange(1.0, shape[-2] + 1)[:, None], shape).copy()
    return _fill(kernel, operand, shape, case)


SEGMENTS = 4
"""Parts of the keys whose scores are far apart."""


def _peaks(kernel: Kernel, operand: Operand, shape: tuple[int, ...], case: Case, seen: Visible) -> Array:
    schedule = kernel.schedule
    assert isinstance(schedule, Attention)
    values = np.zeros(shape)
    if operand.name == schedule.q.operand:
        values[..., 0] = 16.0
    elif operand.name == schedule.k.operand:
        levels = np.roll(np.arange(SEGMENTS), case.seed % SEGMENTS)[seen.parts(SEGMENTS)]
        if case.seed % 2 == 0:
            levels = np.where(seen.last(), SEGMENTS, levels)
        values[..., 0] = 64.0 * levels[..., None]
    else:
        return _rng(case, operand.name).integers(-8, 9, size=shape).astype(np.float64)
    return values


def _spoiled(kernel: Kernel, operand: Operand, shape: tuple[int, ...], case: Case, seen: Visible) -> Array:
    schedule = kernel.schedule
    assert isinstance(schedule, Attention)
    values, rng = _fill(kernel, operand, shape, case), _rng(case, operand.name)
    shared = seen.shared()
    if operand.name == schedule.q.operand or not len(shared):
        return values
    for key in rng.choice(shared, 2):
        values[key, ..., rng.integers(shape[-1])] = rng.choice([np.nan, np.inf, -np.inf])
    return values


_ATTENTION: Mapping[str, Callable[[Kernel, Operand, tuple[int, ...], Case, Visible], Array]] = {
    "steps": _steps,
    "edges": _edges,
    "selected": _selected,
    "deep": _deep,
    "heads": _heads,
    "peaks": _peaks,
    "spoiled": _spoiled,
}
