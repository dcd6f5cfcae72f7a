"""Faults that only a GPU would show, or hide, planted in copies of generated kernels: each is reported by name."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from specc.evidence.case import Case
from specc.evidence.check import try_case
from specc.evidence.execute import CudaExecutor
from specc.evidence.strategy import alone, pinned
from specc.kernels import Kernel
from specc.targets.cuda import host
from specc.targets.cuda.emit import emit, symbol
from specc.targets.cuda.names import legal
from specc.targets.cuda.session import Buffer, KernelFault, call
from specc.targets.cuda.tiles import CPU
from specc.targets.cuda.wrapper import arguments
from tests.evidence.planted import HEADS, NODES, Node, library, nat
from tests.targets.cuda.storage import single

WIDE = Node("slidingGQA", {**HEADS, "D": nat(272), "window": nat(96)}, ())
"""Attention whose value columns two warps share."""
KERNELS = {n: NODES[n].kernel(library()) for n in ("lmHead", "decodeGQA")} | {"wide": WIDE.kernel(library())}
BOUND = "outside their bound"


@dataclass(frozen=True)
class Fault:
    """`old` becomes `new` in the kernel of a node; `found` is what the report says. `rows`: of the cases."""

    node: str
    old: str
    new: str
    found: str
    rows: int | None = None


SUM = "specc::reduce_lanes<specc::Sum, specc::WARP>(own)"
STAGED = "specc::wait_copies<Shape::STAGES - 2>();\n"
BARRIER = "        __syncthreads();\n"
ARRIVED = "specc::wait_copies<1>();\n"
BRING = "bring_values(start);\n"
WEIGHTED = "        specc::multiply_columns"
BASE = "const real base = largest"
SUMS = "sums[1][Shape::WARP_D / 8][4]"
UNREADY = "race|uninitialised"
FIRST_ROW = "const int first_row = blockIdx.x * Shape::ROWS;\n"
PRODUCT = "specc::multiply_rows<Shape::K>(sums, left_tile(step), warp_m, right_tile(step), warp_n);"
TILES = ("left_tile(step), warp_m", "right_tile(step), warp_n")
FAULTS = {
    "barrier removed before a tile is read": Fault("lmHead", STAGED + BARRIER, STAGED, UNREADY),
    "barrier removed before results are read": Fault(
        "lmHead", "warp_n, sums);\n    __syncthreads();", "warp_n, sums);", UNREADY
    ),
    "barrier removed between weights and their product": Fault("wide", BARRIER + WEIGHTED, WEIGHTED, UNREADY),
    "wait for cp.async missing": Fault("lmHead", STAGED, "\n", "before the wait for its cp.async"),
    "wait for one group too few": Fault(
        "wide", ARRIVED + BARRIER, "specc::wait_copies<2>();\n" + BARRIER, "before the wait for its cp.async"
    ),
    "shuffle mask without the upper lanes": Fault(
        "lmHead", SUM, "own + __shfl_xor_sync(0xffffu, own, 16)", "mask", rows=1
    ),
    "shuffle that half of the lanes do not reach": Fault(
        "lmHead", f"sum = {SUM}", f"sum = lane < 16 ? {SUM} : own", "divergence|left the kernel", rows=1
    ),
    "stage of shared memory out of range": Fault(
        "lmHead", "step % Shape::STAGES * (", "step * (", "out of range.*dynamic|writes no shared memory"
    ),
    "bounds of fewer threads than are launched": Fault(
        "lmHead",
        "__launch_bounds__(Shape::THREADS)",
        "__launch_bounds__(Shape::THREADS / 2)",
        "__launch_bounds__ allows",
    ),
    "sums of few rows that nobody set": Fault(
        "lmHead", "sums[2][ROWS][COLUMNS] = {}", "sums[2][ROWS][COLUMNS]", BOUND, 1
    ),
    "sums of values that nobody set": Fault("decodeGQA", SUMS + " = {}", SUMS, BOUND),
    "a sum of weights that nobody set": Fault("decodeGQA", "total[2] = {}", "total[2]", BOUND),
    "more shared memory than a GPU has": Fault(
        "lmHead", "size_t(bytes)", "size_t(bytes) + 232000", "dynamic shared memory is not possible"
    ),
    "atomic operation read without a barrier": Fault(
        "wide",
        FIRST_ROW,
        FIRST_ROW + "__shared__ unsigned hits;\n if (threadIdx.x == 0) hits = 0;\n __syncthreads();\n"
        "atomicAdd(&hits, 1u);\n if (hits == 0) return;\n",
        "race: thread .* byte 0 of shared `hits`",
    ),
    "matrix instructions in two branches of a warp": Fault(
        "lmHead",
        PRODUCT,
        f"if (threadIdx.x % 2) {{\n {PRODUCT} sums[0][0][0] += 0.0f;\n }} else {{\n {PRODUCT}\n}}",
        "divergence: .* ldmatrix",
    ),
    "tail of the sum not masked": Fault(
        "lmHead", "left = own < 130 ? 200 - k_first : 0", "left = VEC", f"out of range|{BOUND}"
    ),
    "tail of the rows not masked": Fault("lmHead", "row >= rows || n_", "n_", "out of range|written"),
    "keys past the last not masked": Fault("decodeGQA", "l < last && l < seq_lens ?", "l >= 0 ?", BOUND),
    "fragment layout swapped": Fault("lmHead", ", ".join(TILES), ", ".join(TILES[::-1]), BOUND),
    "shared memory that nobody filled": Fault("wide", BRING, f"if (start < 0) {BRING}", "uninitialised"),
    "rows that another row's NaN reaches": Fault("wide", "__syncthreads_or(!good)", "__syncthreads_or(false)", BOUND),
    "parts merged over the largest score of the first": Fault(
        "decodeGQA", "n < splits; ++n) largest", "n < 1; ++n) largest", BOUND
    ),
    "parts without keys merged as NaN": Fault(
        "decodeGQA", f"{BASE} == specc::Max::neutral() ? real(0) : largest", BASE, BOUND
    ),
}


def each_report(kernel: Kernel, text: str, rows: int | None = None) -> Iterator[str]:
    """What the suite says about pinned cases in bfloat16."""
    executor = CudaExecutor({kernel.name: single(text, "bfloat16")})
    for case in pinned(kernel, ("bfloat16",)):
        if rows is not None:
            case = replace(case, sizes=(("T", rows),))
        outcome = try_case(kernel, executor, case)
        if outcome.failed:
            yield outcome.describe()


def reports(kernel: Kernel, text: str, rows: int | None = None) -> list[str]:
    return list(each_report(kernel, text, rows))


@pytest.mark.parametrize("node", KERNELS)
def test_a_kernel_without_fault_is_not_reported(node: str) -> None:
    kernel = KERNELS[node]
    assert reports(kernel, emit(kernel, arch=CPU)) == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_reported(name: str) -> None:
    fault = FAULTS[name]
    kernel = KERNELS[fault.node]
    text = emit(kernel, arch=CPU)
    assert fault.old in text
    found = reports(kernel, text.replace(fault.old, fault.new), fault.rows)
    assert found and any(re.search(fault.found, x) for x in found), found


SCORES = "scores[1][Shape::WARP_KEYS / 8][4]"
FADED = "*= fade[part / 2]"
REPAIRED = {
    "scores that nobody set": (SCORES + " = {};", SCORES + ";"),
    "sums of values that nobody set": (SUMS + " = {}", SUMS),
    "a sum of weights that nobody set": ("total[2] = {}", "total[2]"),
    "rows without keys that fade as NaN": (f"{BASE}[half] == specc::Max::neutral() ? real(0) : largest", BASE),
    "a division by zero": (FADED, FADED + " / real(0)"),
    "results that are never good": ("good = good && specc::finite(sums[0][n][part])", "good = false"),
}
"""Faults of the fast way through a prefill kernel that its slow way makes good."""


def test_a_kernel_whose_fast_way_has_no_fault_is_not_reported() -> None:
    kernel = NODES["slidingGQA"].kernel(library())
    assert reports(kernel, emit(kernel, arch=CPU)) == []


@pytest.mark.parametrize("name", REPAIRED)
def test_a_fault_that_the_slow_way_makes_good_is_reported(name: str) -> None:
    kernel = NODES["slidingGQA"].kernel(library())
    old, new = REPAIRED[name]
    text = emit(kernel, arch=CPU)
    assert text.count(old) == 1
    found = next(each_report(kernel, text.replace(old, new)), "")
    assert re.fullmatch(
        r"the fast way .* in \d+ of \d+ blocks, .* every operand is finite and nothing overflows", found
    )


@pytest.mark.parametrize("node", ["rope", "slidingGQA"])
def test_an_index_that_is_always_taken_for_64_bits_is_reported(node: str) -> None:
    kernel = NODES[node].kernel(library())
    text, count = re.subn(r"(index_at\(\w+, index_bytes)", r"\1 >= 4 ? 8 : 4", emit(kernel, arch=CPU))
    assert count
    assert "out of range" in next(each_report(kernel, text), "")


CONDITION = re.compile(r"specc::aligned\((\w+)(?:,\s+[^)]*\))?\)\s*(?:&&\s*)?")
"""Of the launch wrapper: that an operand, or a stride, leaves vectors on their boundaries."""


@pytest.mark.parametrize("node", KERNELS)
def test_each_condition_on_boundaries_is_held_against_a_case_that_breaks_it_alone(node: str) -> None:
    kernel = KERNELS[node]
    text = single(emit(kernel, arch=CPU), "bfloat16")
    sizes = tuple((name, 2 if name in ("T", "B") else 3) for name in sorted(kernel.sizes))
    tried = [Case("bfloat16", sizes, places=(1, 2), moved=m, offset=o, pad=p, axis=a) for m, o, p, a in alone(kernel)]
    right = CudaExecutor({kernel.name: text})
    assert [o.describe() for o in (try_case(kernel, right, c) for c in tried) if o.failed] == []
    start = text.index("if (specc::aligned", text.index("using Element"))
    blind = CudaExecutor({kernel.name: text[:start] + "if (true) " + text[text.index("return", start) :]})
    failed = [c for c in tried if "misaligned" in try_case(kernel, blind, c).describe()]
    axes = {o.name: o.axes for o in legal(kernel).operands}
    broken = {c.moved if c.offset else f"{c.moved}_stride_{axes[c.moved][c.axis]}" for c in failed}
    assert broken == {c[1] for c in CONDITION.finditer(text[start:])} != set()


STRIDE = 2**29
ROWS = 5


def far_rows(text: str, folder: Path) -> None:
    """Runs `lmHead` on rows that lie 2**29 elements apart, in a file of which few blocks exist."""
    kernel = KERNELS["lmHead"]
    reach = (ROWS - 1) * STRIDE + 200
    x = np.memmap(folder / "x", np.int16, "w+", shape=(reach,))
    w, logits = np.zeros(130 * 200, np.int16), np.zeros(ROWS * 130, np.int16)
    buffers = [Buffer("x", x), Buffer("w", w), Buffer("logits", logits, True)]
    places = {b.name: ctypes.c_void_p(b.array.ctypes.data) for b in buffers}
    sizes = {"T": ROWS, "x_stride_t": STRIDE, "w_stride_n_": 200, "logits_stride_t": 130}
    numbers = {n: ctypes.c_int64(v) for n, v in sizes.items()}
    known = {**places, **numbers, "type": ctypes.c_int(0), "stream": ctypes.c_void_p(None)}
    values = [known[a.name] for a in arguments(legal(kernel))]
    trace = call(host.load(host.build(single(text, "bfloat16"))), symbol(kernel), values, buffers)
    assert np.all(trace.counts["logits"] == 1)


def test_an_int32_offset_at_a_large_row_is_reported_and_a_right_one_is_not(tmp_path: Path) -> None:
    text = emit(KERNELS["lmHead"], arch=CPU)
    far_rows(text, tmp_path)
    narrow, count = re.subn(r"x_ptr \+ t \*\s+x_stride_t", "x_ptr + t * int(x_stride_t)", text)
    assert count == 2
    with pytest.raises(KernelFault, match=r"line \d+: thread \d+: a product overflows its integer type"):
        far_rows(narrow, tmp_path)
