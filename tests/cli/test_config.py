from __future__ import annotations

import json

import pytest

from specc.cli import run
from tests.models.published import texts
from tests.models.test_shipped import MODELS, every_model, model


@every_model
def test_config_prints_the_published_configuration(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", model(name).key]) == 0
    assert texts(json.loads(capsys.readouterr().out)) == texts(MODELS[name].config)


def test_a_model_that_is_not_here_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "google/gemma-4-31"]) == 2
    assert "did you mean `google/gemma-4-31B`?" in capsys.readouterr().err
