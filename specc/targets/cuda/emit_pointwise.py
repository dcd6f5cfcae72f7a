"""The pointwise and gather schedules: a thread handles VEC neighbouring columns of one row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from specc.kernels import Access, Kernel, Pointwise, Store, Strip
from specc.targets.cuda.names import local_names
from specc.targets.cuda.scope import Inner, Scope
from specc.targets.cuda.slots import Slots, parameters, product_text, unravel

THREADS = 256
MOST_ACROSS = 65535
"""Blocks along an axis of a grid other than its first."""


@dataclass(frozen=True)
class StripText:
    """A strip as its template prints it: `condition` says which threads take part (all, if None)."""

    condition: str | None
    pointers: list[str]
    vectors: list[str]
    elements: list[str]
    stores: list[str]


def pointwise_slots(kernel: Kernel) -> Slots:
    p = kernel.schedule
    assert isinstance(p, Pointwise)
    longest = max(s.length for s in p.strips)
    names = local_names(kernel)
    first = names.fresh(f"{p.inner}_first")
    rows = [a.var for a in p.rows]
    scope = Scope(kernel, names, rows, Inner(p.inner, first, longest))
    head = [line for a in p.row_loads for line in scope.load_row(a)]
    strips = [_strip(scope, s, longest) for s in p.strips]
    few = longest <= MOST_ACROSS * THREADS
    across = "blockIdx.y" if few else "(blockIdx.z * gridDim.y + blockIdx.y)"
    values: dict[str, object] = {
        "threads": THREADS, "row_variables": unravel(p.rows), "head": head, "strips": strips, "first": first,
        "longest": longest, "unsafe": "row >= rows", "across": across,
    }  # fmt: skip
    places: list[Access | Store] = [a for s in p.strips for a in s.loads]
    places += [s for strip in p.strips for s in strip.stores]
    aligned = [x.operand for x in places if scope.is_vector(x)]
    launch = (
        f"constexpr int PIECES = specc::ceil_div({longest}, VEC), X = specc::row_threads(PIECES, {THREADS});",
        f"constexpr int Y = {THREADS} / X;",
        *_grid(few),
        "const dim3 block(X, Y);",
    )
    return Slots(
        f"cuda/{kernel.schedule_name}.cu.j2", values, tuple(s.value for strip in p.strips for s in strip.stores),
        parameters(kernel, [values, "rows"]), product_text(p.rows), tuple(dict.fromkeys(aligned)), launch,
    )  # fmt: skip


def _grid(few: bool) -> tuple[str, ...]:
    """`few`: the blocks of a row need only one axis."""
    if few:
        return ("const specc::Grid grid{specc::ceil_div(rows, Y), specc::ceil_div(PIECES, X)};",)
    return (
        f"constexpr int64_t ACROSS = specc::ceil_div(PIECES, X), LAYERS = specc::ceil_div(ACROSS, {MOST_ACROSS});",
        "const specc::Grid grid{specc::ceil_div(rows, Y), specc::ceil_div(ACROSS, LAYERS), LAYERS};",
    )


def _strip(scope: Scope, strip: Strip, longest: int) -> StripText:
    scope.inner = Inner(scope.inner.var, scope.inner.first, strip.length)
    pointers = scope.pointers([*strip.loads, *strip.stores])
    whole = [a for a in strip.loads if scope.is_vector(a)]
    still = [a for a in strip.loads if a not in whole and not scope.moves(*a.indices, a.guard)]
    vectors = [line for a in still for line in scope.load_row(a)] + [scope.load_vector(a) for a in whole]
    condition = f"{scope.inner.first} < {strip.length}" if strip.length < longest else None
    return StripText(
        condition, pointers, *body(scope, strip.stores, [a for a in strip.loads if a not in still], vectors)
    )


def body(
    scope: Scope,
    stores: tuple[Store, ...],
    loads: Sequence[Access],
    vectors: Sequence[str],
    held: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[str], list[str], list[str]]:
    """Statements before the loop over a vector, inside it, and after it. `held`: vectors that are there under another
    name than NAME_v."""
    scope.results = {s: scope.names.fresh(f"{s.operand}_v") for s in stores if scope.is_vector(s)}
    computed = {s: scope.names.fresh(s.operand) for s in stores}
    elements = [scope.element(a, held.get(a.name)) for a in loads]
    elements += scope.printer.block([(name, s.value) for s, name in computed.items()])
    scope.printer.named.clear()
    for s, name in computed.items():
        if s in scope.results:
            elements.append(f"{scope.results[s]}.at[n] = specc::round_to<{scope.storage(s)}>({name});")
        else:
            guard = f"if ({scope.inner.var} < {scope.inner.length}) " if scope.inner.ragged else ""
            elements.append(guard + scope.store_single(s, name))
    if any(mentions(line, scope.inner.var) for line in elements):
        elements.insert(0, f"const int {scope.inner.var} = {scope.inner.first} + n;")
    made = [f"specc::Vec<{scope.storage(s)}, VEC> {v};" for s, v in scope.results.items()]
    return [*vectors, *made], elements, [scope.store_vector(s) for s in scope.results]


def mentions(line: str, name: str) -> bool:
    """Whether a line of C++ speaks of `name`."""
    return re.search(rf"\b{re.escape(name)}\b", line) is not None
