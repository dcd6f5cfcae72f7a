"""A reference model with states that are replaced: chunks and single steps agree, sequences keep nothing of others."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch

from specc.ir import Model, Phase, Role
from specc.library import load_library
from specc.parse_spec import parse_spec
from specc.reduce import reduce_spec
from specc.resources import shipped
from specc.source import Source
from specc.targets.torch import target
from specc.typecheck.model import check_model
from tests.targets.torch.test_model import tokens, worst, write

SMALL = {
    "vocab": 50, "hidden": 24, "inter": 20, "layers": 4, "heads": 6, "kv_heads": 2, "D": 8, "rot": 4, "hk": 2, "hv": 6,
    "dk": 5, "dv": 3,
}  # fmt: skip
LENGTH = 11


def small_model() -> Model:
    source = Source("qwen3_8_27b.spec", (shipped("specs") / "qwen3_8_27b.spec").read_text())
    return check_model(reduce_spec(parse_spec(source), SMALL), load_library())


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("small") / "torch"
    yield target.load(write(target.emit(small_model()), folder))


def model_of(generated: ModuleType, precision: Any = None) -> Any:
    return generated.Model(generated.random_checkpoint(range(4), seed=3), precision or generated.FLOAT64)


def whole(generated: ModuleType, prompt: torch.Tensor) -> torch.Tensor:
    found = model_of(generated).prefill(prompt, generated.Cache(1, 16, generated.FLOAT64))
    assert isinstance(found, torch.Tensor)
    return found


@pytest.mark.parametrize("chunks", [(1, 10), (2, 9), (3, 8), (4, 4, 3), (10, 1), (1,) * LENGTH, (5, 0, 6)])
def test_prefill_at_once_and_in_chunks_agree(generated: ModuleType, chunks: tuple[int, ...]) -> None:
    prompt, cache = tokens(LENGTH), generated.Cache(1, 16, generated.FLOAT64)
    model = model_of(generated)
    parts = torch.cat([model.prefill(part, cache) for part in prompt.split(list(chunks))])
    assert worst(parts, whole(generated, prompt)) < 1e-12


@pytest.mark.parametrize("before", [0, 1, 2, 5])
def test_decode_after_a_prefill_agrees_with_prefill(generated: ModuleType, before: int) -> None:
    prompt, cache = tokens(LENGTH), generated.Cache(1, 16, generated.FLOAT64)
    model = model_of(generated)
    parts = [model.prefill(prompt[:before], cache)]
    parts += [model.decode(prompt[n : n + 1], cache) for n in range(before, LENGTH)]
    assert worst(torch.cat(parts), whole(generated, prompt)) < 1e-12


def test_sequences_of_a_batch_keep_nothing_of_each_other(generated: ModuleType) -> None:
    """Lengths 7, 0 and 4 in one batch, then one token more of each."""
    prompts = [tokens(n, seed=n) for n in (7, 0, 4)]
    model, cache = model_of(generated), generated.Cache(3, 16, generated.FLOAT64)
    for n, prompt in enumerate(prompts):
        model.prefill(prompt, cache, sequence=n)
    last = tokens(3, seed=9)
    step = model.decode(last, cache)
    for n, prompt in enumerate(prompts):
        alone = whole(generated, torch.cat([prompt, last[n : n + 1]]))[-1]
        assert worst(step[n], alone) < 1e-12


def test_a_slot_that_is_cleared_keeps_nothing(generated: ModuleType) -> None:
    model, cache, prompt = model_of(generated), generated.Cache(1, 16, generated.FLOAT64), tokens(LENGTH)
    model.prefill(tokens(5, seed=1), cache)
    cache.clear(0)
    assert torch.equal(model.prefill(prompt, cache), whole(generated, prompt))


def test_positions_that_do_not_follow_are_refused(generated: ModuleType) -> None:
    model, cache = model_of(generated), generated.Cache(1, 16, generated.FLOAT64)
    model.prefill(tokens(5), cache)
    for positions in (range(4, 8), range(6, 10)):
        with pytest.raises(ValueError, match="positions do not count on from 5$"):
            model.prefill(tokens(4), cache, torch.tensor(positions))


def test_the_state_is_kept_in_float32_and_the_window_is_not(generated: ModuleType) -> None:
    cache = generated.Cache(2, 16)
    assert cache.layers[0]["memory"].dtype is torch.float32
    assert tuple(cache.layers[0]["memory"].shape) == (2, 6, 3, 5)
    assert cache.layers[0]["window"].dtype is torch.bfloat16
    model_of(generated, generated.PROFILE).prefill(tokens(5), cache, sequence=1)
    assert cache.layers[0]["memory"][1].any() and not cache.layers[0]["memory"][0].any()


def test_what_the_profile_names_has_the_role_of_an_accumulator() -> None:
    model = small_model()
    (core,), (gates,) = model.variants("gdn.core"), model.variants("gdn.gates")
    for phase in Phase:
        roles = dict(core.phase(phase)[0].roles)
        kept = {n for n, role in roles.items() if role is Role.ACCUMULATOR}
        assert kept == {"S0", "S", "alpha", "beta"}
    roles = dict(gates.phase(Phase.PREFILL)[0].roles)
    assert roles["alpha"] is roles["beta"] is Role.ACCUMULATOR and roles["a"] is Role.ACTIVATION
