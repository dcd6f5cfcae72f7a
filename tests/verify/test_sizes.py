"""Small sizes keep what a model's form rests on."""

from __future__ import annotations

from dataclasses import replace

import pytest

import specc
from specc.diagnostics import SpecError
from specc.ir import Model
from specc.ops import Num
from specc.verify.draw import draw_weights, shapes, vocabulary
from specc.verify.judge import layer_kind
from specc.verify.sizes import CHUNK, meeting, reduce
from tests.verify.models import NAMES, ROOT, reduced

EVERY = pytest.mark.parametrize("name", NAMES)


def full(name: str) -> Model:
    return specc.load(ROOT / "specs" / f"{name}.spec").model


def dims(model: Model) -> list[int]:
    tensors = [t for n in model.nodes for _, b in n.bound for x in b for t in (*x.formula.inputs, *x.formula.outputs)]
    return [int(d.value) for t in tensors for d in t.dims if isinstance(d, Num)]


@EVERY
def test_dims_that_differ_stay_different(name: str) -> None:
    origin: dict[int, int] = {}
    for large, small in zip(dims(full(name)), dims(reduced(name).spec.model), strict=True):
        assert origin.setdefault(small, large) == large


@EVERY
def test_constants_quotients_and_roots_that_differ_stay_different(name: str) -> None:
    assert meeting(full(name), reduced(name).spec.model) == {}


@pytest.mark.parametrize("sizes", [{"kv_heads": 2, "heads": 4, "D": 20}, {"kv_heads": 3, "heads": 12, "D": 144}])
def test_a_quotient_that_is_a_count_and_a_root_that_is_one_are_seen(sizes: dict[str, int]) -> None:
    spec = specc.load(ROOT / "specs" / "qwen3_0_6b.spec")
    small = spec.reduced(**sizes, hidden=60, inter=72, vocab=84, layers=5)
    met = set.union(*meeting(spec.model, small.model).values())
    assert {8.0, 2.0} <= met or {16.0, round(128**0.5, 9)} <= met


@EVERY
def test_every_layer_kind_is_there_and_little_else(name: str) -> None:
    large, small = full(name), reduced(name).spec.model
    kinds = [layer_kind(small, i) for i in range(small.layer_count)]
    assert set(kinds) == {layer_kind(large, i) for i in range(large.layer_count)}
    assert kinds == [layer_kind(large, i) for i in range(small.layer_count)]
    assert 2 <= small.layer_count <= 6
    assert small.parameter_count < 2_000_000


@EVERY
def test_texts_pass_the_window_and_a_chunk(name: str) -> None:
    found = reduced(name)
    windows = [value for size, value in found.sizes if size.endswith("window")]
    assert all(found.lengths[0] == window + 1 for window in windows)
    assert found.lengths[1] == CHUNK + 1


@EVERY
def test_constants_that_are_no_size_stay(name: str) -> None:
    kept = ("eps", "theta", "softcap", "r", "layer_scalar", "norm", "act")
    for large, small in zip(full(name).nodes, reduced(name).spec.model.nodes, strict=True):
        assert [c for c in large.constants if c[0] in kept] == [c for c in small.constants if c[0] in kept]


@EVERY
def test_weights_are_drawn_for_every_tensor_and_kept_by_bfloat16(name: str) -> None:
    import torch

    model = reduced(name).spec.model
    weights = draw_weights(model, (3,))
    assert {n: w.shape for n, w in weights.items()} == shapes(model)
    for value in weights.values():
        exact = torch.as_tensor(value)
        assert torch.equal(exact.to(torch.bfloat16).double(), exact)
        assert value.std() > 0 or value.size == 1
    again = draw_weights(model, (3,))
    assert all((again[n] == w).all() for n, w in weights.items())
    assert vocabulary(model) > 8


def test_a_model_that_fits_no_small_sizes_is_refused() -> None:
    spec = specc.load(ROOT / "specs" / "granite_3_3_8b.spec")
    sizes = spec.syntax.sizes
    assert sizes is not None
    odd = replace(spec.syntax, sizes=replace(sizes, sizes=tuple(s for s in sizes.sizes if s.name != "hidden")))
    spec.syntax = odd
    with pytest.raises(SpecError, match="no small sizes"):
        reduce(spec)
