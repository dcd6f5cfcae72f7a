"""The reference model: prefill, chunks and cached decode agree; its layers are those of the spec and run alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from specc.ir import Model, Phase
from specc.library import load_library
from specc.parse_spec import parse_spec
from specc.reduce import reduce_spec
from specc.resources import shipped
from specc.source import Source
from specc.targets.torch import target
from specc.typecheck.model import check_model
from tests.typecheck.mini import MINI

SMALL = {
    "vocab": 50, "hidden": 24, "inter": 20, "heads": 4, "layers": 7, "sliding.D": 8, "sliding.kv_heads": 2,
    "sliding.window": 4, "global.D": 16, "global.kv_heads": 1,
}  # fmt: skip


def small_model(**sizes: int) -> Model:
    """Gemma 4 with small sizes: six sliding layers, one global one."""
    source = Source("gemma4.spec", (shipped("specs") / "gemma4.spec").read_text())
    return check_model(reduce_spec(parse_spec(source), {**SMALL, **sizes}), load_library())


def write(files: dict[str, str], folder: Path) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("small") / "torch"
    yield target.load(write(target.emit(small_model()), folder))


def float64_model(generated: ModuleType) -> Any:
    return generated.Model(generated.random_checkpoint(range(7), seed=3), generated.FLOAT64)


def tokens(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 50, (n,), generator=torch.Generator().manual_seed(seed))


def worst(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max())


@pytest.mark.parametrize("chunks", [(1, 12), (4, 9), (5, 5, 3), (12, 1), (13,)])
def test_prefill_at_once_and_in_chunks_agree(generated: ModuleType, chunks: tuple[int, ...]) -> None:
    model, prompt = float64_model(generated), tokens(13)
    whole = model.prefill(prompt, generated.Cache(1, 16, generated.FLOAT64))
    cache = generated.Cache(1, 16, generated.FLOAT64)
    parts = torch.cat([model.prefill(part, cache) for part in prompt.split(list(chunks))])
    assert whole.shape == (13, 50) and whole.dtype is torch.float64
    assert worst(parts, whole) < 1e-13


def test_prefill_and_token_by_token_decode_agree(generated: ModuleType) -> None:
    model, prompt = float64_model(generated), tokens(13)
    whole = model.prefill(prompt, generated.Cache(1, 16, generated.FLOAT64))
    cache = generated.Cache(1, 16, generated.FLOAT64)
    steps = torch.cat([model.decode(prompt[n : n + 1], cache) for n in range(13)])
    assert worst(steps, whole) < 1e-13


def test_decode_of_sequences_of_different_lengths_agrees_with_each_alone(generated: ModuleType) -> None:
    model = float64_model(generated)
    prompts = [tokens(n, seed=n) for n in (1, 4, 5, 9)]
    cache = generated.Cache(4, 12, generated.FLOAT64)
    for row, prompt in enumerate(prompts):
        model.prefill(prompt[:-1], cache, sequence=row)
    assert cache.lengths.tolist() == [0, 3, 4, 8]
    step = model.decode(torch.stack([prompt[-1] for prompt in prompts]), cache)
    for row, prompt in enumerate(prompts):
        alone = model.prefill(prompt, generated.Cache(1, 12, generated.FLOAT64))
        assert worst(step[row], alone[-1]) < 1e-13


def test_what_unused_slots_hold_does_not_matter(generated: ModuleType) -> None:
    model, prompt = float64_model(generated), tokens(9)
    caches = [generated.Cache(2, 12, generated.FLOAT64) for _ in range(2)]
    for states in caches[1].layers.values():
        for state in states.values():
            state.fill_(torch.nan)
    results = []
    for cache in caches:
        model.prefill(prompt, cache)
        model.prefill(prompt[:3], cache, sequence=1)
        results.append(model.decode(prompt[:2], cache))
    assert torch.equal(results[0], results[1]) and not results[0].isnan().any()


def test_the_window_and_the_class_of_each_layer_are_those_of_the_spec(generated: ModuleType) -> None:
    assert generated.config.KINDS == ("sliding",) * 5 + ("global", "sliding")
    model = float64_model(generated)
    h = torch.randn(9, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for layer, reach in ((0, 4), (5, 9)):
        moved = []
        for n in range(9):
            other = h.clone()
            other[n] = -other[n]
            pair = [
                model.layer(layer, x, generated.Cache(1, 9, generated.FLOAT64), torch.arange(9)) for x in (h, other)
            ]
            moved.append(not torch.equal(pair[0][8], pair[1][8]))
        assert moved == [n > 8 - reach for n in range(9)]


def test_one_layer_runs_with_its_own_weights_alone(generated: ModuleType) -> None:
    full = generated.random_checkpoint(range(7), seed=3)
    own = {name: t for name, t in full.items() if ".layers.5." in name}
    h = torch.randn(6, 24, dtype=torch.float64)
    found = [
        generated.Model(checkpoint, generated.FLOAT64).layer(
            5, h, generated.Cache(1, 6, generated.FLOAT64, layers=[5]), torch.arange(6)
        )
        for checkpoint in (full, own)
    ]
    assert torch.equal(*found)


def test_a_missing_or_misshapen_tensor_is_named(generated: ModuleType) -> None:
    checkpoint = generated.random_checkpoint(range(7))
    name = "model.language_model.norm.weight"
    cache = generated.Cache(1, 4, generated.FLOAT64)
    with pytest.raises(ValueError, match=name):
        generated.Model({**checkpoint, name: torch.ones(3)}, generated.FLOAT64).prefill(tokens(2), cache)
    del checkpoint[name]
    with pytest.raises(KeyError, match=name):
        generated.Model(checkpoint, generated.FLOAT64).prefill(tokens(2), cache)


def test_a_full_cache_is_refused(generated: ModuleType) -> None:
    model, cache = float64_model(generated), generated.Cache(1, 4, generated.FLOAT64)
    with pytest.raises(ValueError, match="4 slots"):
        model.prefill(tokens(5), cache)
    model.prefill(tokens(4), cache)
    with pytest.raises(ValueError, match="4 slots"):
        model.decode(tokens(1), cache)


@pytest.mark.parametrize("token", [-1, 50])
def test_tokens_outside_the_vocabulary_are_refused(generated: ModuleType, token: int) -> None:
    model, cache = float64_model(generated), generated.Cache(1, 4, generated.FLOAT64)
    for call in (model.prefill, model.decode):
        with pytest.raises(ValueError, match="tokens are 0 to 49"):
            call(torch.tensor([token]), cache)
    assert cache.lengths.tolist() == [0]


@pytest.mark.parametrize("positions", [[5, 6], [-1, 0], [0, 2], [1, 0], [2, 2], [2]])
def test_positions_that_leave_a_gap_or_go_back_are_refused(generated: ModuleType, positions: list[int]) -> None:
    model, cache = float64_model(generated), generated.Cache(1, 8, generated.FLOAT64)
    model.prefill(tokens(2), cache)
    with pytest.raises(ValueError, match="positions"):
        model.prefill(tokens(2), cache, torch.tensor(positions))


def test_positions_may_go_over_earlier_tokens_again(generated: ModuleType) -> None:
    model, cache = float64_model(generated), generated.Cache(1, 8, generated.FLOAT64)
    whole = model.prefill(tokens(4), cache)
    again = model.prefill(tokens(4)[1:], cache, torch.tensor([1, 2, 3]))
    assert worst(again, whole[1:]) < 1e-12 and cache.lengths.tolist() == [4]
    assert len(model.prefill(tokens(0), cache)) == 0


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32"])
def test_shorter_types_are_stored_and_lie_near_float64(generated: ModuleType, name: str) -> None:
    dtype = getattr(torch, name)
    precision = generated.Precision.storing(dtype)
    checkpoint = {n: t.to(dtype) for n, t in generated.random_checkpoint(range(7), seed=3).items()}
    cache = generated.Cache(1, 16, precision)
    short = generated.Model(checkpoint, precision).prefill(tokens(13), cache)
    exact = generated.Model(checkpoint, generated.FLOAT64).prefill(
        tokens(13), generated.Cache(1, 16, generated.FLOAT64)
    )
    assert short.dtype is dtype and cache.layers[0]["k_cache"].dtype is dtype
    assert 0 < worst(short.double(), exact) < 40 * torch.finfo(dtype).eps


def test_the_profile_is_that_of_the_spec(generated: ModuleType) -> None:
    profile = generated.PROFILE
    assert (profile.weight, profile.accumulator) == (torch.bfloat16, torch.float32)
    w = torch.ones(50, 24, dtype=torch.bfloat16)
    row = generated.nodes.embed(torch.tensor([1]), w, profile)
    assert row[0, 0].item() == torch.tensor(24**0.5).bfloat16().item()


def test_tokens_of_no_length_give_no_rows(generated: ModuleType) -> None:
    cache = generated.Cache(1, 4, generated.FLOAT64)
    assert float64_model(generated).prefill(tokens(0), cache).shape == (0, 50)
    assert cache.lengths.tolist() == [0]


def test_reduced_models_of_other_sizes_agree_with_themselves(tmp_path: Path) -> None:
    model = small_model(layers=6, heads=6, **{"sliding.kv_heads": 3, "global.kv_heads": 2, "sliding.window": 1})
    other = target.load(write(target.emit(model), tmp_path / "torch"))
    runner = other.Model(other.random_checkpoint(range(6)), other.FLOAT64)
    whole = runner.prefill(tokens(5), other.Cache(1, 5, other.FLOAT64))
    cache = other.Cache(1, 5, other.FLOAT64)
    assert worst(torch.cat([runner.decode(t[None], cache) for t in tokens(5)]), whole) < 1e-13


@pytest.mark.parametrize(
    ("edits", "kinds"),
    [
        ([("| add ", "| local.prefill ")], ["local_2", "full"]),
        (
            [("local", "a_b"), ("full", "a"), ("  a where", "  b where i % 2 == 1\n  a where"),
             ("| o_proj | linear           | a ", "| o_proj | linear           | b ")],
            ["a_b", "a_b_2"],
        ),
    ],
)  # fmt: skip
def test_functions_of_layers_have_names_of_their_own(edits: list[tuple[str, str]], kinds: list[str]) -> None:
    text = MINI
    for old, new in edits:
        text = text.replace(old, new)
    model = check_model(parse_spec(Source("mini.spec", text)), load_library())
    files = target.emit(model)
    defined = [node.name for node in ast.parse(files["layers.py"]).body if isinstance(node, ast.FunctionDef)]
    assert defined == ["before_layers", *(f"{kind}_{phase}" for kind in kinds for phase in Phase), "after_layers"]
    assert all(f"layers.{kind}_decode" in files["model.py"] for kind in kinds)
