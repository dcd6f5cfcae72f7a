"""Hypothesis strategies: which cases a kernel is tried on. Small choices come first, so that cases shrink to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from specc.evidence.case import Case
from specc.evidence.draw import gathered_extent
from specc.kernels import Attention, Contraction, Kernel, Operand, Pointwise, Recurrent, RowReduction
from specc.ops import Call, Num, Size, Sort, walk

DTYPES = ("float32", "bfloat16", "float16")
INDEX_TYPES = ("int64", "int32")
LARGEST_POSITION = 262_143
"""Last position of the founding page's domain; angles are largest there."""
MAGNITUDES = (1.0, 1e-4, 16.0, 1e4)
HALF_MAGNITUDES = (1.0, 1e-3, 16.0)
"""Magnitudes whose squares and sums stay below 65504, the largest float16."""


def cases(kernel: Kernel, dtypes: Sequence[str] = DTYPES) -> st.SearchStrategy[Case]:
    """Cases of every axis along which kernels have been wrong: sizes around tiles and windows, magnitudes, ties,
    strides, odd offsets, index types."""
    return st.composite(_case)(kernel, tuple(dtypes))


def _case(draw: st.DrawFn, kernel: Kernel, dtypes: tuple[str, ...]) -> Case:
    dtype = draw(st.sampled_from(dtypes))
    family = draw(st.sampled_from(families(kernel)))
    sizes = {name: draw(st.sampled_from(lengths(kernel, name, family))) for name in kernel.sizes}
    if "L" in sizes:
        sizes["L"] = max(sizes["L"], 1)
    moved, offset, pad, axis = draw(st.sampled_from((("", 0, 0, 0), *alone(kernel))))
    if not moved:
        offset, pad = draw(st.sampled_from((0, 1, 3, 8))), draw(st.sampled_from((0, 8, 5)))
    magnitude = draw(st.sampled_from(HALF_MAGNITUDES if dtype == "float16" else MAGNITUDES))
    return Case(
        dtype,
        tuple(sorted(sizes.items())),
        family,
        magnitude if family in ("normal", "constant", "heads", "spoiled") else 1.0,
        _places(draw, kernel, sizes),
        offset,
        pad,
        draw(st.sampled_from(INDEX_TYPES)),
        draw(st.integers(0, 2**16)),
        moved,
        axis,
    )


def alone(kernel: Kernel) -> tuple[tuple[str, int, int, int], ...]:
    """Every way in which one real operand or result alone lies off the boundaries of vectors, the others on them: its
    name, and offset, padding and axis of a case."""
    reals = [o for o in kernel.operands if o.sort is Sort.REAL]
    starts = [(o.name, 1, 0, 0) for o in reals]
    return (*starts, *((o.name, 0, 5, axis) for o in reals for axis in range(len(o.dims) - 1)))


def pinned(kernel: Kernel, dtypes: Sequence[str] = DTYPES) -> tuple[Case, ...]:
    """One case per family, storage types in turn, and two by two the types of indices, at sizes that cross a tile, a
    window and a row, every third at the largest: always tried."""
    found = []
    for n, family in enumerate(families(kernel)):
        pick = max if n % 3 == 1 else _middle
        sizes = {name: pick(lengths(kernel, name, family)) for name in kernel.sizes}
        case = Case(dtypes[n % len(dtypes)], tuple(sorted(sizes.items())), family, seed=n, pad=8 * (n % 2))
        index_type = INDEX_TYPES[n // 2 % 2] if _indices(kernel) else INDEX_TYPES[0]
        found.append(replace(case, places=_pinned_places(kernel, sizes, family), index_type=index_type))
    tiny = replace(found[0], family="normal", magnitude=1e-4, dtype=dtypes[0])
    return (*found, tiny)


def _indices(kernel: Kernel) -> list[Operand]:
    return [o for o in kernel.operands if o.sort is Sort.INDEX and not o.output]


def _middle(options: Sequence[int]) -> int:
    return options[len(options) // 2]


def _pinned_places(kernel: Kernel, sizes: dict[str, int], family: str) -> tuple[int, ...]:
    schedule = kernel.schedule
    if isinstance(schedule, Attention) and isinstance(schedule.keys.extent, Size):
        keys = sizes[schedule.keys.extent.name]
        rows = sizes[schedule.row.extent.name] if isinstance(schedule.row.extent, Size) else 1
        edges = (keys, *(w for w in windows(kernel) if w <= keys), 0, 1)
        along = tuple(min(max(keys - rows, 0) + n, keys - 1) for n in range(rows))
        return edges if schedule.decode else (*_apart(kernel, keys, rows, family), *along)[:rows]
    return (0, 1, 1857, LARGEST_POSITION) if _turns(kernel) else (0, 3)


def _apart(kernel: Kernel, keys: int, rows: int, family: str) -> tuple[int, ...]:
    """Of one family, positions of the first two rows a window apart: of a tile of keys that one sees, the other sees
    none, and every key between is seen."""
    window = min(windows(kernel), default=keys)
    return (keys - 1 - window, keys - 1) if family == "heads" and window < keys and rows > 1 else ()


def families(kernel: Kernel) -> tuple[str, ...]:
    """Ways of filling operands that say something about this kernel."""
    match kernel.schedule:
        case Attention(decode=decode):
            common = ("steps", "edges", "selected", "normal", "heads", "deep", "peaks")
            return common if decode else (*common, "spoiled")
        case Recurrent():
            return ("dyadic", "normal", "decays", "alike", "normal", "dyadic")
        case Contraction() | RowReduction():
            return ("integers", "sparse", "sparse", "normal", "constant")
        case Pointwise():
            return ("integers", "normal", "normal", "constant")


def lengths(kernel: Kernel, name: str, family: str = "") -> tuple[int, ...]:
    """Values of a run-time size, small ones first. Few where kernels may take keys one by one."""
    match kernel.schedule:
        case Attention(row=row, keys=keys) if family == "spoiled":
            return {row.extent: (2, 17), keys.extent: (40, 20)}.get(Size(name), (1,))
        case Attention(decode=decode, row=row, keys=keys):
            if isinstance(row.extent, Size) and row.extent.name == name:
                return (1, 2, 3) if decode else (1, 2, 17, 65, 33)
            if isinstance(keys.extent, Size) and keys.extent.name == name:
                return tuple(sorted({n for c in windows(kernel) for n in (c - 1, c, c + 1, c + 70)} | {1, 2, 65, 130}))
        case Contraction():
            return (1, 2, 17, 16, 33, 129)
        case Recurrent(time=time) if isinstance(time.extent, Size) and time.extent.name == name:
            return (1, 2, 15, 16, 17, 33, 32, 31, 63, 64, 65)
    return (1, 2, 3, 4, 17, 33) if name == "T" else (1, 2, 4, 16)


def windows(kernel: Kernel) -> tuple[int, ...]:
    """Window lengths that a visibility predicate mentions, as far as they are longer than a few keys."""
    schedule = kernel.schedule
    if not isinstance(schedule, Attention) or schedule.low is None:
        return ()
    found = {int(n.value) for n in walk(schedule.low) if isinstance(n, Num)}
    return tuple(sorted(w for c in found if c > 4 for w in (c, c + 1)))


def _places(draw: st.DrawFn, kernel: Kernel, sizes: dict[str, int]) -> tuple[int, ...]:
    indices = _indices(kernel)
    if not indices or all(gathered_extent(kernel, o.name) is not None for o in indices):
        return (0,)
    schedule = kernel.schedule
    if isinstance(schedule, Attention):
        assert isinstance(schedule.keys.extent, Size) and isinstance(schedule.row.extent, Size)
        keys, rows = sizes[schedule.keys.extent.name], sizes[schedule.row.extent.name]
        return _lengths(draw, kernel, keys, rows) if schedule.decode else _positions(draw, keys, rows)
    top = LARGEST_POSITION if _turns(kernel) else 64
    start = draw(st.sampled_from((0, 1, 5, 1857, top - 40, top)))
    return tuple(min(start + n, top) for n in range(sizes.get("T", 1)))


def _lengths(draw: st.DrawFn, kernel: Kernel, keys: int, rows: int) -> tuple[int, ...]:
    """Cached lengths of the sequences of a batch: empty, one, around the window, full."""
    special = {0, 1, 2, keys - 1, keys} | {n for w in windows(kernel) for n in (w - 1, w, w + 1)}
    options = sorted(n for n in special if 0 <= n <= keys)
    return tuple(draw(st.sampled_from(options[::-1])) for _ in range(rows))


def _positions(draw: st.DrawFn, keys: int, rows: int) -> tuple[int, ...]:
    """Consecutive positions, from 0 or from a later chunk; the last one at most the last key."""
    last = max(keys - rows, 0)
    start = draw(st.sampled_from(sorted({0, last, last // 2}, reverse=True)))
    return tuple(min(start + n, keys - 1) for n in range(rows))


def _turns(kernel: Kernel) -> bool:
    """Whether the kernel takes the sine or cosine of something."""
    exprs = [q.expr for q in kernel.lowered.equations]
    return any(isinstance(n, Call) and n.fn in ("sin", "cos") for e in exprs for n in walk(e))
