"""The official classes and the configuration that is rendered for them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from specc import pipeline
from specc.diagnostics import SpecError
from specc.verify.official import build
from tests.models.test_shipped import every_model, model
from tests.verify.models import reduced


@every_model
def test_the_official_class_takes_the_configuration_as_it_is_rendered(name: str) -> None:
    import transformers

    shipped = model(name)
    values = json.loads(pipeline.config_text(shipped))
    kind = getattr(transformers, shipped.official_class.rpartition(".")[2]).config_class
    assert kind(**values).get_text_config().num_hidden_layers == shipped.layer_count
    assert kind.from_dict(values).to_dict() == kind(**values).to_dict()


def test_an_integer_where_the_official_class_wants_a_float_is_refused_and_told() -> None:
    small = reduced("gemma4").spec.model
    config = dict(small.config) | {"text_config.final_logit_softcapping": 30}
    with pytest.raises(SpecError) as caught:
        build(replace(small, config=tuple(config.items())))
    (found,) = caught.value.diagnostics
    assert (found.code, found.help) == ("E521", "a number that is written with a point, as `30.0`, is a float")
    assert "final_logit_softcapping" in found.message
