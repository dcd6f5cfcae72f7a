"""Makes the cases that gpu_check.py carries to a GPU: shapes, and for sampled results the interval a kernel must hit.

python bench/make_gpu_cases.py [SPEC…] [--out bench/gpu_cases.npz]
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from specc import pipeline
from specc.bounds import bound, store_interval
from specc.evidence.case import Case
from specc.evidence.draw import gathered_extent
from specc.evidence.execute import CudaExecutor, TritonExecutor
from specc.evidence.recurrent import part_of
from specc.evidence.tables import table_values
from specc.ir import NodeVariant, Phase
from specc.kernels import Attention, Contraction, Kernel, Operand, Recurrent
from specc.ops import Expr, Formula, FormulaEquation, FormulaTensor, Num, Size, Sort
from specc.oracle import evaluate
from specc.resources import shipped
from specc.targets.cuda.names import namespace

sys.path.insert(0, str(Path(__file__).parent))
from gpu_cases import write_cases  # noqa: E402
from gpu_launches import Given, launches, tables  # noqa: E402
from gpu_operands import Layout, numpy_operand  # noqa: E402

Sizes = dict[str, int]


class Plan(NamedTuple):
    """A launch to look at. `places`: values of lengths and positions; `integers`: how they are stored; `skew`: how
    many elements operands of reals lie past a multiple of 16 bytes."""

    sizes: Sizes
    dtype: str
    places: tuple[int, ...]
    timed: bool = False
    integers: str = "int64"
    skew: int = 0


WIDE = 100_000
"""Columns from which on a contraction gets fewer rows."""
LONG_BITS = 20
"""Bits of an element in float32 cases: more than a shorter type multiplies."""
TERMS = 6
"""Terms of a sum that are not 0 in float32 cases: the last ones."""
PICKED = {1: 24, 2: 8, 3: 4}
"""Positions sampled on each axis of a result, by its rank."""


def plans(kernel: Kernel) -> tuple[Plan, ...]:
    """The shapes at which a kernel is looked at: few rows, many rows, and float32."""
    s = kernel.schedule
    if isinstance(s, Attention) and s.decode:
        return (
            Plan({"B": 4, "S": 3000}, "bfloat16", (1, 0, 1025, 3000)),
            Plan({"B": 3, "S": 300}, "float32", (300, 17, 1)),
            Plan({"B": 8, "S": 8192}, "bfloat16", (8192,), True),
        )
    if isinstance(s, Attention):
        return (
            Plan({"T": 33, "L": 1500}, "bfloat16", tuple(range(1467, 1500))),
            Plan({"T": 70, "L": 70}, "float32", tuple(range(70))),
            Plan({"T": 4096, "L": 4096}, "bfloat16", tuple(range(4096)), True),
        )
    if kernel.sizes[0] == "B":
        return _thrice("B", 3, 17, 256)
    if isinstance(s, Recurrent):
        return _thrice("T", 7, 40, 256)
    wide = isinstance(s, Contraction) and isinstance(s.columns.extent, Num) and s.columns.extent.value > WIDE
    places = (0, 1, 131_071, 262_143)
    return (
        Plan({"T": 7}, "bfloat16", places, isinstance(s, Contraction)),
        Plan({"T": 65}, "float32", places),
        Plan({"T": 512 if wide else 4096}, "bfloat16", places, True),
    )


def _thrice(size: str, few: int, long: int, many: int) -> tuple[Plan, ...]:
    return (
        Plan({size: few}, "bfloat16", (0,)),
        Plan({size: long}, "float32", (0,)),
        Plan({size: many}, "bfloat16", (0,), True),
    )


def variants(kernel: Kernel) -> tuple[Plan, ...]:
    """The other instances of a kernel, at few rows: float16 with short integers, and operands that lie askew."""
    few = plans(kernel)[0]._replace(timed=False)
    return few._replace(dtype="float16", integers="int32"), few._replace(skew=1)


def layouts(kernel: Kernel, sizes: Mapping[str, int], plan: Plan) -> Iterator[Layout]:
    """The operands of a launch, in its order. In float32 mantissas are long and sums have few terms, so that products
    in a shorter type do not hide in the bound."""
    narrow = {a.operand for a in _narrow(kernel)}
    for operand in (o for o in kernel.operands if not o.output):
        shape, seed = _shape(operand, sizes), zlib.crc32(operand.name.encode()) & 0xFFFF
        if operand.sort is Sort.REAL:
            found = _real(operand.name, shape, seed, operand.name in narrow, plan.dtype == "float32")
            yield replace(found, dtype=operand.stored(plan.dtype), kind=_kind(kernel, operand), skew=plan.skew)
        elif (top := gathered_extent(kernel, operand.name)) is not None:
            yield Layout(operand.name, shape, "index", seed, top=top, dtype=plan.integers)
        else:
            yield Layout(operand.name, shape, "places", seed, places=plan.places, dtype=plan.integers)


def _real(name: str, shape: tuple[int, ...], seed: int, narrow: bool, long: bool) -> Layout:
    if not long:
        return Layout(name, shape, "real", seed, shift=4 if narrow else 0)
    return Layout(name, shape, "real", seed, shift=1 if narrow else 0, bits=LONG_BITS, tail=TERMS if narrow else 0)


def _kind(kernel: Kernel, operand: Operand) -> str:
    """Decays and rates of a recurrence are units."""
    s = kernel.schedule
    return "unit" if isinstance(s, Recurrent) and part_of(s, operand.name) in ("decay", "rate") else "real"


def _narrow(kernel: Kernel) -> Sequence[Any]:
    """Operands of small values, so that scores stay a few units, a soft cap does not saturate, and keys are not longer
    than 1."""
    match kernel.schedule:
        case Recurrent(loads=loads) as r:
            return [a for a in loads if part_of(r, a.operand) == "key"]
        case Attention(q=q):
            return (q,)
        case Contraction(a_loads=loads):
            return loads
    return ()


def _shape(operand: Operand, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(_extent(d, sizes) for d in operand.dims)


def case(spec: str, space: str, kernel: Kernel, node: NodeVariant, plan: Plan) -> dict[str, Any]:
    """What gpu_check.py needs of a case, but for its samples, as values for JSON. `space`: namespace of CUDA files."""
    sizes = {**plan.sizes, **_extra(kernel, node)}
    results = [(o.name, _shape(o, sizes), o.stored(plan.dtype)) for o in kernel.operands if o.output]
    given = Given(plan.dtype, plan.integers, plan.skew)
    planned, workspace = launches(kernel, space, {n: sizes[n] for n in kernel.sizes}, given)
    return {
        "spec": spec,
        "kernel": kernel.name,
        "op": kernel.op,
        "schedule": kernel.schedule_name,
        "dtype": plan.dtype,
        "sizes": {n: sizes[n] for n in kernel.sizes},
        "operands": [asdict(o) for o in layouts(kernel, sizes, plan)],
        "results": results,
        "constants": constants(node),
        "flops": flops(kernel, sizes, plan.places, node),
        "timed": plan.timed,
        "launches": planned,
        "workspace": workspace,
    }


def _extra(kernel: Kernel, node: NodeVariant) -> Sizes:
    """Extents in which the applications of a node differ: those of the first."""
    first = node.phase(Phase(kernel.phase))[0].formula
    dims = zip((d for o in kernel.operands if not o.output for d in o.dims), _dims(kernel, first), strict=True)
    return {d.name: int(n.value) for d, n in dims if isinstance(d, Size) and isinstance(n, Num)}


def _dims(kernel: Kernel, formula: Formula) -> list[Expr]:
    return [d for o in kernel.operands if not o.output for d in formula.tensor(o.name).dims]


def intervals(kernel: Kernel, meta: Mapping[str, Any]) -> dict[str, tuple[list[Any], Any, Any]]:
    """For every result the sampled places on each axis, and the intervals of what may be stored there: within the wider
    of the two targets' bounds."""
    rng, dtype, known = np.random.default_rng(0), meta["dtype"], meta["sizes"]
    shapes = {name: shape for name, shape, _ in meta["results"]}
    operands = {o["name"]: numpy_operand(Layout(**o)) for o in meta["operands"]}
    at = {}
    for q in kernel.formula.equations:
        extents = zip(q.indices, shapes[q.tensor.name], strict=True)
        at[q.tensor.name] = {v: picked(n, len(q.indices), rng) for v, n in extents}
    oracle = evaluate(kernel.formula, operands, known, at)
    inputs = {**operands, **{t.name: table_values(t) for t in kernel.tables}}
    one = Case(dtype, tuple(known.items()))
    numerics = [target.numerics(kernel, one) for target in (TritonExecutor(), CudaExecutor())]
    limits = [bound(kernel.lowered, inputs, n, known, at) for n in numerics]
    found = {}
    for name, _, stored in meta["results"]:
        error = np.maximum(*(limit[name].error for limit in limits))
        found[name] = (list(at[name].values()), *store_interval(oracle[name], error, stored))
    return found


def picked(extent: int, rank: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Both ends of an axis and some places between."""
    return np.unique(np.concatenate(([0, extent - 1], rng.integers(0, extent, PICKED.get(rank, 3)))))


def constants(node: NodeVariant) -> dict[str, float]:
    """The numbers among the constants of a node; what is so or not is 1 or 0."""
    given = {p.name: p.default for p in node.op.params if p.default is not None} | dict(node.constants)
    return {
        n: float(v) if isinstance(v, bool) else _value(v) for n, v in sorted(given.items()) if not isinstance(v, str)
    }


def _value(e: Expr) -> float:
    tensor = FormulaTensor("c", (Num(1, Sort.INDEX),))  # type: ignore[arg-type]
    return float(evaluate(Formula("c", (), (FormulaEquation(tensor, ("i",), e),)), {})["c"][0])


def flops(kernel: Kernel, sizes: Sizes, places: tuple[int, ...], node: NodeVariant) -> float:
    """Floating-point operations of the matrix products."""
    match kernel.schedule:
        case Contraction(rows=rows, columns=n, inner=k):
            return 2.0 * float(np.prod([_extent(a.extent, sizes) for a in (*rows, n, k)]))
        case Attention(head=head, inner=e, columns=d, decode=decode):
            seen = np.resize(np.array(places), sizes["B" if decode else "T"])
            keys = np.minimum(seen + (0 if decode else 1), constants(node).get("window", np.inf)).sum()
            heads, width = _extent(head.extent, sizes), _extent(e.extent, sizes) + _extent(d.extent, sizes)
            return float(2.0 * keys * heads * width)
    return 0.0


def _extent(e: Expr, sizes: Mapping[str, int]) -> int:
    return int(e.value) if isinstance(e, Num) else sizes[e.name] if isinstance(e, Size) else 1


def bundle(specs: Sequence[Path], out: Path) -> None:
    """Writes all cases of all kernels; of a kernel that only has another name, the first. Of the kernels of an op, one
    of each spec comes in its other instances."""
    cases: list[dict[str, Any]] = []
    samples: list[dict[str, tuple[list[Any], Any, Any]]] = []
    numbers: list[Any] = []
    known: dict[tuple[Kernel, int], int] = {}
    varied: set[tuple[Path, str]] = set()
    for path in specs:
        model = pipeline.load(path)
        space = namespace(model)
        for lowered in pipeline.lower(model):
            for kernel in lowered.kernels:
                same = replace(kernel, name="", keys=())
                repeats = (same, 0) in known
                own = tables(kernel, space)
                other = () if repeats or (path, kernel.op) in varied else variants(kernel)
                if other:
                    varied.add((path, kernel.op))
                for n, plan in enumerate([*plans(kernel)[: 1 if repeats else None], *other]):
                    meta = case(path.stem, space, kernel, lowered.node, plan)
                    if (same, n) not in known:
                        known[same, n] = len(samples)
                        samples.append(intervals(kernel, meta))
                    places = {name: len(numbers) + at for at, name in enumerate(own)}
                    more = {"repeats": repeats, "plan": n, "tables": places, "samples": known[same, n]}
                    cases.append({**meta, **more})
                    print(f"{path.stem} {kernel.name} {plan[0]} {plan[1]}", file=sys.stderr, flush=True)
                numbers += own.values()
    write_cases(out, cases, samples, numbers)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the cases of gpu_check.py.")
    parser.add_argument("specs", type=Path, nargs="*", default=sorted(shipped("specs").glob("*.spec")))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "gpu_cases.npz")
    options = parser.parse_args()
    bundle(options.specs, options.out)


if __name__ == "__main__":
    main()
