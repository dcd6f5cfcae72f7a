from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specc
from specc.diagnostics import SpecError
from specc.resources import shipped

SPEC = shipped("specs") / "gemma4.spec"


@pytest.fixture(scope="module")
def spec() -> specc.Spec:
    return specc.load(SPEC)


@pytest.fixture(scope="module")
def small(spec: specc.Spec) -> specc.Spec:
    return spec.reduced(hidden=48, vocab=64, inter=80, heads=4, sliding__D=16, global__D=32, kv_heads=2)


def test_a_spec_is_loaded_by_path_and_by_key(spec: specc.Spec) -> None:
    other = specc.load("google/gemma-4-31B")
    assert (other.key, other.version) == (spec.key, spec.version) == ("google/gemma-4-31B", "1.0")
    assert spec.parameter_count == 30_697_345_340


def test_nodes_are_the_rows_of_the_table_and_their_keys_lead_back(spec: specc.Spec) -> None:
    assert len(spec.nodes) == 24
    assert [spec.node(n.key).variant for n in spec.nodes] == [n.variant for n in spec.nodes]
    assert len({n.key for n in spec.nodes}) == 24


def test_a_key_that_names_two_variants_is_refused_with_both(spec: specc.Spec) -> None:
    with pytest.raises(SpecError, match=r"layers\[0\].attn.core.*layers\[5\].attn.core"):
        spec.node("layers[*].attn.core")


def test_reduced_sizes_reach_every_node(small: specc.Spec) -> None:
    assert small.node("layers[*].mlp.down").formula() == ("y[t, n] = Σ_k x[t, k] · w[n, k]",)
    assert [w.shape for w in small.node("layers[0].attn.qkv_proj").variant.weights] == [((4 + 2 * 2) * 16, 48)]
    assert small.node("lm_head").variant.weights[0].shape == (64, 48)


def test_the_oracle_and_the_reference_agree_in_both_phases(small: specc.Spec) -> None:
    rng = np.random.default_rng(1)
    node = small.node("layers[0].attn.core")
    assert node.phases == ("prefill", "decode")
    decode = {
        "q": rng.standard_normal((2, 4, 16)), "k": rng.standard_normal((2, 5, 2, 16)),
        "v": rng.standard_normal((2, 5, 2, 16)), "seq_lens": np.array([0, 4]),
    }  # fmt: skip
    prefill = {
        "q": rng.standard_normal((3, 4, 16)), "k": rng.standard_normal((5, 2, 16)),
        "v": rng.standard_normal((5, 2, 16)), "pos": np.array([2, 3, 4]),
    }  # fmt: skip
    for phase, tensors in (("decode", decode), ("prefill", prefill)):
        want = node.oracle(phase=phase, **tensors)["o"]
        got = node.run("torch", dtype="float64", phase=phase, **tensors)["o"]
        assert np.abs(got - want).max() < 1e-14
        assert np.abs(want).max() > 0.1


def test_the_generated_kernel_runs_on_the_same_operands(small: specc.Spec) -> None:
    rng = np.random.default_rng(2)
    node = small.node("layers[*].mlp.act")
    x = rng.standard_normal((3, 160))
    want, got = node.oracle(gu=x)["y"], node.run("triton", gu=x)["y"]
    assert got.shape == want.shape == (3, 80)
    assert np.abs(got - want).max() < 1e-6


def test_an_application_is_chosen_by_its_shapes(small: specc.Spec) -> None:
    node = small.node("layers[0].attn.qk_norm")
    ones = {heads: np.ones((2, heads, 16)) for heads in (4, 2)}
    for heads, x in ones.items():
        assert node.oracle(x=x, w=np.ones(16))["y"].shape == (2, heads, 16)


@pytest.mark.parametrize("heads", [3, 5])
def test_operands_that_fit_no_application_are_a_message(small: specc.Spec, heads: int) -> None:
    with pytest.raises(SpecError, match="E507"):
        small.node("layers[0].attn.qk_norm").oracle(x=np.ones((2, heads, 16)), w=np.ones(16))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda n: n.run("metal", x=np.ones((1, 48))), "no target `metal`"),
        (lambda n: n.run("torch", dtype="int8", x=np.ones((1, 48))), "no type `int8`"),
        (lambda n: n.oracle(phase="train", x=np.ones((1, 48))), "no phase `train`"),
        (lambda n: n.oracle(x=np.ones((1, 48))), "needs operand `w`"),
        (lambda n: n.oracle(phase=3), "`phase` is a name, not a value of type `int`"),
        (lambda n: n.formula(3), "`phase` is a name"),
        (lambda n: n.run(3), "`target` is a name"),
        (lambda n: n.run("torch", dtype=np.float32), "`dtype` is a name, not a value of type `type`"),
        (lambda n: n.run("torch", phase=np.ones(2)), "`phase` is a name"),
        (lambda n: n.run("torch", tiles=3), "`tiles` is a path, not a value of type `int`"),
        (lambda n: n.run("torch", gpu=90), "`gpu` is a name"),
    ],
)
def test_a_wrong_call_is_a_message(small: specc.Spec, call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SpecError, match=message):
        call(small.node("layers[*].input_norm"))


@pytest.mark.parametrize(
    "options", [{"out": 3}, {"tiles": 3}, {"targets": [3]}], ids=lambda options: next(iter(options))
)
def test_a_build_says_what_its_options_may_be(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="`(out|tiles|target)` is a (name|path), not a value of type `int`"):
        specc.build(SPEC, **{"out": tmp_path, **options})


def test_reduced_refuses_what_is_no_size(spec: specc.Spec) -> None:
    with pytest.raises(SpecError, match="did you mean `hidden`"):
        spec.reduced(hiden=48)


def test_a_build_from_python_is_that_of_the_command(tmp_path) -> None:  # type: ignore[no-untyped-def]
    done = specc.build(SPEC, tmp_path, targets=["torch"])
    assert done.folder == tmp_path / "gemma4"
    assert done.written is not None and "torch/model.py" in done.written.wrote
    assert specc.build(SPEC, tmp_path, targets=["torch"]).written is None


def test_the_error_that_calls_raise_has_a_name_in_the_package() -> None:
    assert specc.SpecError is SpecError
    with pytest.raises(specc.SpecError, match="E504"):
        specc.build("google/gemma-4-32B")


def test_the_package_has_no_other_names() -> None:
    with pytest.raises(AttributeError):
        _ = specc.lod  # type: ignore[attr-defined]
