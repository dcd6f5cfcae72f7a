"""What a build does grows with the kinds of layers, hardly with their number."""

from __future__ import annotations

import re
import time
from math import prod
from pathlib import Path

import pytest

from specc import pipeline
from specc.inputs import Options
from specc.ir import Model

SPEC = (Path(__file__).parents[1] / "specs" / "gemma4.spec").read_text(encoding="utf-8")
MANY = 9_996
"""As many as `layers` allows, and a multiple of six."""
QUADRATIC = (MANY / 60) ** 0.5
"""A build that is slower by this factor does something for each layer that it should do for each kind."""


def timed(layers: int, folder: Path) -> tuple[float, Model]:
    """Seconds of the processor that all stages take, and the model."""
    path = folder / f"{layers}.spec"
    path.write_text(re.sub(r"^layers 60\b", f"layers {layers}", SPEC, flags=re.MULTILINE), encoding="utf-8")
    start = time.process_time()
    model = pipeline.load(path)
    pipeline.files(model, pipeline.lower(model), Options())
    return time.process_time() - start, model


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[float, Model], ...]:
    folder = tmp_path_factory.mktemp("layers")
    timed(60, folder)
    return timed(60, folder), timed(MANY, folder)


def test_a_model_of_very_many_layers_is_built_about_as_fast(builds: tuple[tuple[float, Model], ...]) -> None:
    (few, _), (many, _) = builds
    assert many < QUADRATIC * few


def test_layers_of_the_last_kind_are_found_at_the_end(builds: tuple[tuple[float, Model], ...]) -> None:
    model = builds[1][1]
    assert [n.path for n in model.in_layer(MANY - 1)] == [n.path for n in model.in_layer(5)]
    assert model.in_layer(MANY) == ()


def test_parameters_of_all_layers_are_counted(builds: tuple[tuple[float, Model], ...]) -> None:
    (_, small), (_, large) = builds
    size = {i: sum(prod(w.shape) for n in small.in_layer(i) for w in n.weights) for i in (0, 5)}
    more = (MANY - 60) // 6 * (5 * size[0] + size[5])
    assert large.parameter_count - small.parameter_count == more
