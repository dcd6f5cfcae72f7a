"""Functions of the CUDA files of a model: no two have one name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specc.diagnostics import SpecError
from specc.kernels import Kernel
from specc.lowered import Lowered
from specc.targets.cuda import target
from specc.targets.cuda.symbols import kernel_functions
from tests.lower.cases import kernel_of
from tests.lower.test_nodes import mini
from tests.targets.cuda.test_names import SCHEDULES


def build(*kernels: Kernel, one_node: bool = False) -> dict[str, str]:
    """The files of these kernels as those of a node each, or all of one."""
    model = mini()
    nodes = [replace(n, path=k.name) for n, k in zip(model.nodes, kernels, strict=False)]
    found = [Lowered(n, (k,)) for n, k in zip(nodes, kernels, strict=False)]
    return dict(target.emit_model(model, [Lowered(nodes[0], kernels)] if one_node else found))


def named(schedule: str, name: str) -> Kernel:
    return replace(SCHEDULES[schedule](), name=name)


def with_table() -> Kernel:
    return replace(kernel_of("op f(x[T, H]) -> y[T, H]\n  y[t, i] = x[t, i]·cos(i/7)", H=4), name="a")


@pytest.mark.parametrize(("first", "second", "name"), [
    (with_table(), "a_table_", "model_mini_a_table_"),
    (named("attention_decode", "a"), "a_workspace", "model_mini_a_workspace"),
    (named("attention_decode", "a"), "a_merge", "a_merge_kernel"),
    (named("contraction", "a"), "a_few", "a_few_kernel"),
])  # fmt: skip
def test_functions_of_one_name_are_refused(first: Kernel, second: str, name: str) -> None:
    other = named("row_reduction", second)
    for kernels in ((first, other), (other, first)):
        with pytest.raises(SpecError) as caught:
            build(*kernels)
        (found,) = caught.value.diagnostics
        nodes = f"`{kernels[1].name}` and `{kernels[0].name}`"
        assert (found.code, found.message) == ("E229", f"{nodes} would both have a function `{name}` in CUDA")
        assert found.span is not None and found.help == "choose another name; the first stands at mini.spec:35:5"
    with pytest.raises(SpecError, match="two kernels of `a` would both"):
        build(first, other, one_node=True)
    assert build(first, named("row_reduction", "b"))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_kernel_of_a_file_is_found(schedule: str) -> None:
    text = build(named(schedule, "a"))["a.cu"]
    found = kernel_functions(text)
    assert "a_kernel" in found and len(found) == text.count("__global__")
