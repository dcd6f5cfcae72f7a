"""Kernels of nodes and models: one a phase, shared by applications; 64-bit offsets exactly where they are needed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import pytest

from specc.diagnostics import SpecError
from specc.instantiate import instantiate
from specc.ir import BoundOp, Model, NodeVariant, Phase, Role, WireRead
from specc.library import load_library
from specc.lower.applications import Apart, shared_formula
from specc.lower.lower import NoSchedule, Setting, lower_formula, lower_model, lower_node, lower_parts
from specc.ops import Expr, Formula, Num, Size, Sort
from specc.parse_spec import parse_spec
from specc.source import Source
from specc.targets.triton.target import emit_all
from specc.typecheck.model import check_model
from tests.lower.cases import Case, assert_lowered, formula_of, kernel_of, operands
from tests.lower.slots import value
from tests.typecheck.mini import MINI

SPEC = Path(__file__).parent.parent.parent / "specs" / "gemma4.spec"


@cache
def gemma() -> Model:
    return check_model(parse_spec(Source.read(SPEC)), load_library())


@cache
def mini() -> Model:
    return check_model(parse_spec(Source("mini.spec", MINI)), load_library())


def test_every_node_of_the_shipped_spec_has_its_kernels() -> None:
    kernels = {k.name: k.schedule_name for k in lower_model(gemma())}
    assert len(kernels) == 26
    assert kernels["attn_core_global_decode"] == "attention_decode"
    assert kernels["attn_core_sliding_prefill"] == "attention_prefill"
    assert {k.phase for k in lower_node(gemma(), gemma().variants("attn.core")[0])} == set(Phase)


def test_lowering_gives_the_same_every_time() -> None:
    assert lower_model(gemma()) == lower_model(gemma())


def largest(model: Model) -> dict[str, int]:
    found = {d.name: d.high for d in model.domain}
    return {**found, "L": found["S"]}


def last_offset(dims: tuple[Expr, ...], sizes: dict[str, int], row_pitch: int | None) -> int:
    """Offset of the last element; the first axis has the pitch of the buffer that the tensor is a view of."""
    lengths = [int(value(d, {}, sizes)) for d in dims]
    strides = [prod(lengths[n + 1 :]) for n in range(len(lengths))]
    if row_pitch is not None:
        strides[0] = row_pitch
    return sum((n - 1) * s for n, s in zip(lengths, strides, strict=True))


def row_pitch(model: Model, read: WireRead | None, sizes: dict[str, int]) -> int | None:
    if read is None or read.state is not None:
        return None
    for write in (w for n in model.nodes for a in n.applications for w in a.writes):
        if read.wire in dict(write.views) and len(write.views) > 1:
            return sum(prod(int(value(d, {}, sizes)) for d in dims[1:]) for _, dims in write.views)
    return None


def reaches(model: Model, node: NodeVariant, phase: Phase, operand: str) -> int:
    """The largest offset of an operand over all applications, from the wires and shapes alone."""
    sizes, found = largest(model), []
    for bound in node.phase(phase):
        read = next((r for r in bound.reads if r.operand == operand), None)
        found.append(last_offset(bound.formula.tensor(operand).dims, sizes, row_pitch(model, read, sizes)))
    return max(found)


@pytest.mark.parametrize("model", [gemma, mini], ids=["gemma4", "mini"])
def test_offsets_have_64_bits_exactly_where_they_pass_31(model: Any) -> None:
    seen = []
    for node in model().nodes:
        for kernel in lower_node(model(), node):
            for o in kernel.operands:
                reach = reaches(model(), node, Phase(kernel.phase), o.name)
                assert o.wide == (reach > 2**31 - 1), (kernel.name, o.name, reach)
                seen.append(o.wide)
    assert False in seen
    assert (True in seen) == (model is gemma)


@pytest.mark.parametrize(
    ("kernel", "operand", "wide"),
    [
        ("mlp_gate_up", "y", True),  # row 49,933 of 43,008 elements passes 2**31
        ("mlp_gate_up", "x", False),
        ("attn_core_sliding_decode", "k", True),
        ("attn_qk_norm_sliding", "x", True),  # rows of a fused projection, 16,384 elements apart
        ("attn_qk_norm_sliding", "y", False),  # 262,144 · 32 · 256 is 2**31 elements, the last offset one less
        ("lm_head", "logits", True),
        ("lm_head", "w", False),
        ("embed", "w", False),
    ],
)
def test_known_widths(kernel: str, operand: str, wide: bool) -> None:
    (found,) = (k for k in lower_model(gemma()) if k.name == kernel)
    assert found.operand(operand).wide is wide


@pytest.mark.parametrize("step", [1, -1], ids=["as on the page", "rows in the other order"])
def test_rows_of_a_fused_buffer_are_as_far_apart_as_in_the_layers_of_their_reader(step: int) -> None:
    # 16,384 elements in sliding layers, 18,432 in global ones: only these pass 2**31 at 131,072 rows.
    shorter = tuple(replace(d, high=2**17) if d.name == "T" else d for d in gemma().domain)
    model = replace(gemma(), domain=shorter, nodes=gemma().nodes[::step])
    wide = {k.name: k.operand("x").wide for n in model.variants("attn.qk_norm") for k in lower_node(model, n)}
    assert wide == {"attn_qk_norm_sliding": False, "attn_qk_norm_global": True}


@pytest.mark.parametrize(("rows", "wide"), [(2**16, False), (2**16 + 1, True)])
def test_the_last_element_decides(rows: int, wide: bool) -> None:
    formula = formula_of("op f(x[T, H]) -> y[T, H]\n  y[t, i] = x[t, i]", H=2**15)
    kernel = lower_formula(formula, Setting("f", domain={"T": rows}))
    assert [o.wide for o in kernel.operands] == [wide, wide]


def test_an_extent_of_sums_of_sizes_is_measured() -> None:
    formula = formula_of("op f(x[2·T + 3, H], s[T]) -> y[T, H]\n  y[t, i] = s[t]·x[t + T + 3, i]", H=2**15)
    kernel = lower_formula(formula, Setting("f", domain={"T": 2**15}))
    assert {o.name: o.wide for o in kernel.operands} == {"x": True, "s": False, "y": False}
    assert kernel.sizes == ("T",)


def test_an_operand_stays_for_the_size_that_it_alone_has() -> None:
    text = "op f(x[T, H], n[B]: index) -> y[T, H]\n  y[t, i] = if t < B then x[t, i] else 0"
    kernel = lower_formula(formula_of(text, H=4), Setting("f"))
    assert kernel.sizes == ("T", "B")
    assert [o.name for o in kernel.operands] == ["x", "n", "y"]


def bound(formula: Formula, **roles: Role) -> BoundOp:
    given = tuple((t.name, roles.get(t.name, Role.ACTIVATION)) for t in (*formula.inputs, *formula.outputs))
    return BoundOp(load_library().op(formula.op), formula, given, ())


def norm(*lead: Expr, width: int = 8) -> Formula:
    """A norm over the last axis of a tensor with these leading axes."""
    axes = [(f"r{n}", d) for n, d in enumerate(lead)]
    return instantiate(load_library().op("rmsnormUnit"), {"H": whole(width), "eps": whole(1)}, axes)


def whole(n: int) -> Num:
    return Num(Fraction(n), Sort.INDEX)


def test_applications_that_differ_in_an_extent_share_a_formula() -> None:
    formula, extents = shared_formula((bound(norm(Size("T"), whole(32))), bound(norm(Size("T"), whole(16)))))
    assert formula.inputs[0].dims == formula.outputs[0].dims == (Size("T"), Size("rows_1"), whole(8))
    assert extents == {"rows_1": 32}


def test_equal_applications_keep_their_formula() -> None:
    assert shared_formula((bound(norm(Size("T"))), bound(norm(Size("T"))))) == (norm(Size("T")), {})


@pytest.mark.parametrize(
    ("one", "two", "reason"),
    [
        (bound(norm(Size("T"))), bound(norm(Size("T"), whole(4))), "differ in more than the length of an axis"),
        (bound(norm(Size("T"), width=8)), bound(norm(Size("T"), width=4)), "differ in more than the length of an axis"),
        (bound(norm(Size("T"))), bound(norm(Size("B"))), "have `T` and `B` where they would share an axis"),
        (bound(norm(Size("T"))), bound(norm(Size("T")), x=Role.CACHE), "store `x` differently, as activation and as"),
    ],
)  # fmt: skip
def test_applications_that_cannot_share_a_kernel_are_refused(one: BoundOp, two: BoundOp, reason: str) -> None:
    with pytest.raises(Apart, match=reason):
        shared_formula((one, two))


def test_a_node_whose_applications_differ_is_to_be_parted() -> None:
    applications = (bound(norm(Size("T"))), bound(norm(Size("B"))))
    node = replace(mini().variants("norm")[0], bound=((Phase.PREFILL, applications),))
    with pytest.raises(NoSchedule, match="give `norm` one row for each"):
        lower_node(mini(), node)


def test_two_kernels_of_one_name_are_no_files() -> None:
    kernel = kernel_of("op f(x[T, H]) -> y[T, H]\n  y[t, i] = 2·x[t, i]", H=40)
    for clash in ([kernel, kernel], [replace(kernel, name="launch")]):
        with pytest.raises(SpecError, match="E229"):
            emit_all(clash)


@pytest.mark.parametrize(("op", "sizes"), [("causalConvSiluFrom", {"T": 2}), ("causalConvSiluFrom", {"T": 6}),
                                           ("causalConvSiluStep", {"B": 3})])  # fmt: skip
def test_results_of_different_shapes_have_a_kernel_each(op: str, sizes: dict[str, int]) -> None:
    formula = Case(op, "", {"C": 5, "K": 4, "W": 3}).formula()
    kernels = lower_parts(formula, Setting("conv"))
    assert [k.name for k in kernels] == ["conv_c2", "conv_y"]
    for kernel in kernels:
        assert kernel.schedule_name == "pointwise"
        assert_lowered(kernel, operands(kernel.formula, sizes, 0), sizes)
